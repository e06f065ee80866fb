"""Formulas are stored with the TeX they were made of; a build refuses what is missing or stale."""

import json
import re
import shutil

import pytest
from small_guide import FIRST, small_guide, store_formulas, write_guide

from headwise.study.authoring.formulas import CLASS_OF, converted, without_styles
from headwise.study.content import load_guide
from headwise.study.errors import GuideError
from headwise.study.maths import FILE, StoredMaths, digest, read_formulas
from headwise.study.render.texts import all_texts


def test_every_formula_of_the_guide_is_found(guide):
    stored = {(one.tex, one.display) for one in read_formulas(guide.folder)}
    long = r"\sqrt{d_k + d_v} = \sqrt{64 + 64}"
    assert {
        ("d_k", False),
        ("d_k = 512 / h", True),
        (r"\sqrt{d_k}", False),
        ("n", False),
        (long, False),
    } == stored


def test_how_tex_is_broken_into_lines_is_no_matter():
    assert digest("a\n  = b", True) == digest("a = b", True)
    assert digest("a = b", True) != digest("a = b", False)
    assert digest("a=b", True) != digest("a = b", True)


def test_a_changed_formula_is_refused_with_its_place_and_the_command(tmp_path):
    guide = small_guide(tmp_path / "g")
    changed = FIRST.replace("The width is", "The $\\alpha_7$ width is")
    write_guide(tmp_path / "g", first=changed)
    guide = load_guide(tmp_path / "g")
    texts = list(all_texts(guide))
    with pytest.raises(GuideError, match=r"alpha_7.*python -m headwise\.study\.authoring") as caught:
        [text.to_html(guide) for text in texts]
    assert caught.value.file.endswith("10-first.md")
    assert "alpha_7" in changed.splitlines()[caught.value.line - 1]


def test_tex_that_was_changed_in_the_store_is_refused(guide):
    path = guide.folder / FILE
    data = json.loads(path.read_text())
    data["formulas"][0]["tex"] += "+1"
    path.write_text(json.dumps(data, indent=1))
    with pytest.raises(GuideError, match="isn't the one its MathML was made of") as caught:
        StoredMaths.of(guide.folder)
    assert caught.value.line > 1


def test_a_broken_store_is_told(guide):
    (guide.folder / FILE).write_text("{")
    with pytest.raises(GuideError, match="delete it and run"):
        StoredMaths.of(guide.folder)


def test_storing_again_gives_the_same_bytes(guide):
    before = (guide.folder / FILE).read_bytes()
    store_formulas(guide.folder)
    assert (guide.folder / FILE).read_bytes() == before


def test_styles_become_classes():
    made = without_styles(
        '<math display="block" class="tml-display" style="display:block math;"><mi>a</mi></math>'
    )
    assert made == '<math class="tml-display" display="block"><mi>a</mi></math>'
    made = without_styles('<mtd class="tml-right" style="padding-left:0em;padding-right:0em;"></mtd>')
    assert made == '<mtd class="tml-right pl-0 pr-0"></mtd>'
    with pytest.raises(ValueError, match="color:#ff0000"):
        without_styles('<mi style="color:#ff0000;">x</mi>')


def test_the_sheet_has_every_class_that_styles_become():
    from headwise.study.site import STATIC

    sheet = (STATIC / "blocks.css").read_text()
    for name in filter(None, CLASS_OF.values()):
        assert re.search(rf"\.{name}\b", sheet), name


def test_the_paper_s_guide_stores_no_style_and_every_formula():
    from headwise.study.site import STATIC

    folder = STATIC.parents[3] / "guides" / "attention-is-all-you-need"
    if not folder.is_dir():
        pytest.skip("the guide lies beside a source checkout only")
    for one in read_formulas(folder):
        assert "style=" not in one.mathml
        assert one.mathml.startswith("<math")
    guide = load_guide(folder)
    maths = StoredMaths.of(folder)
    for text in all_texts(guide):
        text.to_html(guide, maths=maths)


@pytest.mark.skipif(shutil.which("node") is None, reason="formulas are made by Node.js")
def test_a_failing_temml_is_told(tmp_path):
    with pytest.raises(GuideError, match=r"Temml in .* failed"):
        converted([("x", False, "a.md", 3)], tmp_path)


@pytest.mark.skipif(shutil.which("node") is None, reason="formulas are made by Node.js")
def test_what_temml_refuses_is_told_with_its_place(tmp_path):
    dist = tmp_path / "dist"
    dist.mkdir()
    (dist / "temml.cjs").write_text(
        "exports.renderToString = (tex) => { if (tex === 'bad') throw new Error('no such command');"
        ' return `<math><mi style="padding:0;">${tex}</mi></math>`; };'
    )
    assert converted([("x", False, "a.md", 3)], tmp_path) == ['<math><mi class="p-0">x</mi></math>']
    with pytest.raises(GuideError, match="no such command") as caught:
        converted([("x", False, "a.md", 3), ("bad", True, "b.md", 7)], tmp_path)
    assert (caught.value.file, caught.value.line) == ("b.md", 7)
