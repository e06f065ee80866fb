"""The pages of a site: what each shows, and what none may."""

import json
import re
from html.parser import HTMLParser
from posixpath import join, normpath
from urllib.parse import unquote, urlsplit

import pytest
from markupsafe import Markup

from headwise.study.render.environment import POLICY
from headwise.study.render.maker import grouped, spoken
from headwise.study.site import STATIC, render_site


class Read(HTMLParser):
    """A page's links, ids and attributes."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids, self.attributes = [], [], []
        self.inline_scripts = 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.attributes += [(tag, name, value) for name, value in attributes]
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "script" and "src" not in given:
            self.inline_scripts += 1
        for name in ("href", "src", "action", "data-src", "data-search"):
            if name in given:
                self.links.append((tag, name, given[name]))


@pytest.fixture(scope="module")
def static(kept_guide):
    return render_site(kept_guide, "static")


@pytest.fixture(scope="module")
def served(kept_guide):
    return render_site(kept_guide, "server")


def pages(files):
    return {name: Read(content.decode()) for name, content in files.items() if name.endswith(".html")}


def test_every_activity_has_a_page(static, kept_guide):
    for name in kept_guide.activities:
        assert f"{name}/index.html" in static
    assert {"index.html", "sources/index.html", "numbers/index.html", "library/index.html"} <= set(static)
    assert {"search/index.html", "progress/index.html", "versions/index.html", "search.json"} <= set(static)


@pytest.mark.parametrize("files", ["static", "served"])
def test_links_within_the_site_are_relative_and_alive(files, request):
    files = request.getfixturevalue(files)
    found = pages(files)
    for name, page in found.items():
        for tag, attribute, link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                assert parts.scheme == "https", (name, link)
                assert tag == "a", (name, tag, link)
                continue
            assert not link.startswith("/"), (name, attribute, link)
            target = normpath(join("/" + name.rpartition("/")[0], parts.path or name.rpartition("/")[2]))
            target = target.lstrip("/")
            if parts.path.endswith("/") or not target:
                target = f"{target}/index.html".lstrip("/")
            assert target in files or target.removesuffix("/index.html") in ("", "."), (name, link)
            if parts.fragment and target in found:
                assert unquote(parts.fragment) in found[target].ids, (name, link)


def test_ids_are_unique_on_every_page(static):
    for name, page in pages(static).items():
        assert len(page.ids) == len(set(page.ids)), name


def test_nothing_is_inline(static):
    for name, page in pages(static).items():
        assert not page.inline_scripts, name
        for tag, attribute, _ in page.attributes:
            assert attribute != "style", (name, tag)
            assert not attribute.startswith("on"), (name, tag, attribute)
        assert "<style" not in static[name].decode(), name
        assert ("meta", "content", POLICY) in page.attributes, name


def test_links_out_send_no_referrer(static):
    for name, content in static.items():
        if name.endswith(".html"):
            for tag in re.findall(rb"<a\b[^>]*href=\"https://[^>]*>", content):
                assert b'rel="noreferrer"' in tag, (name, tag)


def test_each_block_shows_its_sources(static):
    page = static["first/index.html"].decode()
    block = page[page.index('id="ours"') : page.index('id="after"')]
    assert 'href="https://arxiv.org/html/1706.03762v7#S3.SS2.SSS2.p1"' in block
    assert "S3.SS2.SSS2.p1" in block
    assert "paragraph" in block
    assert "“a few words of it”" in block
    later = page[page.index('id="after"') : page.index('id="simple"')]
    assert "it came later" in later


def test_without_scripts_a_question_says_that_it_needs_one(static, served):
    said = re.compile(r"<noscript><p[^>]*>[^<]*checked by a script, which your browser doesn’t run")
    for files in (static, served):
        assert said.search(files["first-quiz/index.html"].decode())
        assert said.search(files["first/index.html"].decode())  # a question within a lesson


def test_places_that_use_a_source_can_be_told_apart(static):
    page = static["sources/index.html"].decode()
    lists = re.findall(r'<details class="used">.*?</details>', page, re.DOTALL)
    several = [re.findall(r'<a href="[^"]*">([^<]*)</a>', one) for one in lists]
    assert max(map(len, several)) > 3
    for texts in several:
        assert len(texts) == len(set(texts))
    assert "First steps: Four linears" in page


def test_whole_numbers_to_choose_from_have_commas():
    assert [grouped(text) for text in ("8", "1024", "37000", "0.5", "d_ff", "²")] == [
        "8",
        "1,024",
        "37,000",
        "0.5",
        "d_ff",
        "²",
    ]


def test_callouts_say_in_words_what_they_are(static):
    page = static["first/index.html"].decode()
    for words in (
        "Implementation detail",
        "Later research",
        "Our simplification",
        "Common mistake",
        "Where the paper is loose",
        "Check yourself",
        "Exercise",
    ):
        assert words in page


def test_a_detail_shows_the_source_of_its_symbol(static):
    page = static["first/index.html"].decode()
    assert "headwise/multihead" in page
    assert '<span class="nc">MultiHeadAttention</span>' in page


def test_code_is_run_and_what_it_prints_is_text(static):
    page = static["first/index.html"].decode()
    assert "<samp>width 8 &lt;b&gt;</samp>" in page
    assert "<samp>16</samp>" in page  # the solution goes on where the block stopped


def test_a_page_has_its_way_back_and_on(static):
    page = static["second/index.html"].decode()
    assert 'rel="prev" href="../first-quiz/"' in page
    assert 'rel="next" href="../deck/"' in page
    assert 'class="skip" href="#main"' in page
    assert "Second" in page[page.index('class="crumbs"') : page.index("</nav>", page.index('class="crumbs"'))]


def test_no_page_of_the_server_holds_an_answer(served):
    assert "answers.json" not in served
    assert not any(name.startswith("answers/") for name in served)
    for name, content in served.items():
        if not name.startswith("static/"):
            assert b"SECRET" not in content, name
            assert b"86753" not in content, name
            assert b"correct" not in content.lower(), name


def test_the_static_site_keeps_answers_apart_and_says_so(static):
    keys = json.loads(static["answers.json"])
    assert set(keys) == {"how-wide", "which-hold", "how-many", "what-name", "what-order", "what-shape"}
    for name, content in static.items():
        if not name.startswith(("static/", "answers")):
            assert b"SECRET" not in content, name
    assert b"answers.json" in static["first-quiz/index.html"]
    assert b"SECRETRIGHT" in static["answers/index.html"]


def test_a_question_has_the_hooks_of_its_script(static):
    page = static["first-quiz/index.html"].decode()
    assert 'data-question="how-wide" data-rev="1" data-kind="single"' in page
    assert page.count("data-option=") == 5
    assert page.count("data-item=") == 3
    assert 'inputmode="decimal"' in page
    assert page.index("<fieldset>\n    <legend>") > 0 or "<fieldset>" in page


def test_an_option_that_is_a_formula_alone_has_a_name():
    formula = Markup("<math><mi>d</mi><mi>k</mi></math>")
    assert spoken(formula) == "d k"
    assert spoken(Markup("divide by ") + formula) == ""


def test_modes_differ_in_little(static, served):
    others = {name for name in served if served[name] != static[name]}
    assert others == {"static/mode.js", "static/mode.css", "first-quiz/index.html"}  # the last has its note
    assert b"data-mode" not in b"".join(content for name, content in static.items() if name.endswith(".html"))


def test_the_search_index_holds_every_block_and_its_sources(static):
    index = json.loads(static["search.json"])
    urls = {one["url"]: one for one in index["entries"]}
    assert urls["first/#ours"]["sources"] == ["S3.p1", "S3.SS2.SSS2.p1"]
    assert "headwise.MultiHeadAttention" in urls["first/#ours"]["words"]
    assert urls["numbers/#model.width"]["title"] == "512"
    assert index["anchors"]["S3.E1"] == "equation 1"


def test_bundled_assets_are_listed_with_licence_and_hash():
    import hashlib

    listed = {one["file"]: one for one in json.loads((STATIC / "ASSETS.json").read_text())["assets"]}
    bundled = [
        path.relative_to(STATIC).as_posix()
        for folder in ("fonts", "vendor")
        for path in (STATIC / folder).rglob("*")
        if path.is_file()
        and not path.name.upper().startswith(("LICEN", "LICENC"))
        and ".LICENSE" not in path.name
    ]
    assert sorted(listed) == sorted(bundled)
    for name, one in listed.items():
        assert one["sha256"] == hashlib.sha256((STATIC / name).read_bytes()).hexdigest(), name
        assert one["version"], name
        assert one["licence"], name
        assert (STATIC / one["licence_file"]).is_file(), name
