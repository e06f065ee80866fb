"""Markdown to HTML that is safe to show."""

import re

import pytest

from headwise.study.errors import GuideError
from headwise.study.maths import TexMaths
from headwise.study.render.markdown import to_html


def html(text, guide, **more):
    return str(to_html(text, guide, maths=TexMaths(), **more))


def test_raw_html_is_text(kept_guide):
    made = html("<script>alert(1)</script>\n\nA <b onclick='x'>bold</b> word", kept_guide)
    assert "<script" not in made
    assert "<b" not in made
    assert "&lt;script&gt;" in made


@pytest.mark.parametrize("href", ["http://example.org", "ftp://example.org", "//example.org", "page.html"])
def test_other_links_are_refused(kept_guide, href):
    with pytest.raises(GuideError, match="can't be followed"):
        html(f"[text]({href})", kept_guide)


@pytest.mark.parametrize("href", ["javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc"])
def test_links_that_could_do_harm_are_text(kept_guide, href):
    assert "<a" not in html(f"[text]({href})", kept_guide)


def test_links_within_the_guide(kept_guide):
    made = html(
        "[a](activity:second#join) [b](source:S3.SS2.SSS2.p1.6) [c](symbol:headwise.attention)", kept_guide
    )
    assert re.findall(r'href="([^"]*)"', made) == [
        "../second/#join",
        "../sources/#S3.SS2.SSS2.p1",
        "../library/#headwise.attention",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[a](activity:nowhere)", "no activity 'nowhere'"),
        ("[a](activity:second#nowhere)", "no block 'nowhere'"),
        ("[a](source:S9.p1)", "sources.toml has no S9.p1"),
        ("[a](symbol:headwise.no_such_thing)", "the library has no headwise.no_such_thing"),
        ("{{fact:no.such}}", "facts.toml has no no.such"),
        ("{{ width }}", "names no number"),
        ("$$ x $$", "needs words"),
    ],
)
def test_what_is_missing_is_told_with_its_line(kept_guide, text, says):
    with pytest.raises(GuideError, match=says) as caught:
        html(
            f"One.\n\nTwo\nthree {text}" if not text.startswith("$$") else f"One.\n\nTwo\n\n{text}",
            kept_guide,
            file="lesson.md",
            line=10,
        )
    assert caught.value.file == "lesson.md"
    assert caught.value.line in (13, 14)


def test_a_later_link_sends_no_referrer(kept_guide):
    assert 'rel="noreferrer"' in html("[a](https://example.org/x)", kept_guide)


def test_numbers_are_put_in_and_lead_to_where_they_come_from(kept_guide):
    made = html("It has {{fact:model.parameters}}, or {{value:model.parameters}}.", kept_guide)
    assert (
        '<a class="fact" href="../numbers/#model.parameters">1,048,576\N{NO-BREAK SPACE}parameters</a>'
        in made
    )
    assert ">1,048,576</a>" in made


def test_numbers_in_labels_headings_links_code_and_formulas_are_no_links(kept_guide):
    assert html("{{value:model.width}}", kept_guide, inline=True, links=False) == "512"
    assert html("[w {{value:model.width}}](activity:first)", kept_guide, inline=True).count("<a") == 1
    assert "<code>512</code>" in html("`{{value:model.width}}`", kept_guide)
    assert r"\(d = 1{,}048{,}576\)" in html("$d = {{value:model.parameters}}$", kept_guide)
    assert r"1{,}048{,}576\ \text{parameters}" in html("$d = {{fact:model.parameters}}$", kept_guide)


def test_links_are_text_where_none_may_be(kept_guide):
    assert html("[the *join*](activity:second)", kept_guide, inline=True, links=False) == "the <em>join</em>"


def test_tables_scroll_by_themselves_and_have_no_style_attribute(kept_guide):
    made = html("| Head $d_k$ | B |\n|---|--:|\n| 1 | 2 |", kept_guide)
    assert '<div class="table scroll" role="group" aria-label="Table: Head d_k, B">' in made
    assert '<th scope="col">' in made
    assert '<td class="right">2</td>' in made
    assert "style=" not in made


def test_a_corner_without_words_is_no_heading(kept_guide):
    made = html("| | A $x$ | $y$ |\n|---|---|---|\n| 1 | 2 | 3 |", kept_guide)
    assert "<td></td>" in made
    assert made.count("<th") - made.count("<thead") == 2
    assert '<span class="unseen">y</span>' in made


def test_a_display_formula_has_its_words(kept_guide):
    made = html('$$\na\n= b\n$$ (equation: both, words="a is \\"b\\" (always)")', kept_guide)
    assert r"\[a = b\]" in made
    assert 'data-equation="both"' in made
    assert made.count("a is &#34;b&#34; (always)") == 2


def test_a_label_may_go_on_in_the_next_line_and_may_end_with_a_colon(kept_guide):
    made = html('$$ a $$ (both: words="a\nagain")', kept_guide)
    assert 'data-equation="both"' in made
    assert "a again" in made


def test_dollars_that_open_no_formula_stay(kept_guide):
    assert html("It costs $5 and $7 more", kept_guide) == "<p>It costs $5 and $7 more</p>\n"


def test_headings_come_below_the_blocks_own(kept_guide):
    assert "<h3>A</h3>" in html("# A", kept_guide)
    assert "<h3>B</h3>" in html("## B", kept_guide)
    assert "<h4>C</h4>" in html("### C", kept_guide)


def test_rows_named_by_a_letter_keep_it(kept_guide):
    assert html("rows (A) to (C)", kept_guide, inline=True) == "rows (A) to (C)"


def test_images_are_off(kept_guide):
    assert "<img" not in html("![a](https://example.org/a.png)", kept_guide)


def test_code_is_highlighted_by_classes(kept_guide):
    made = html("```python\ndef f(x):\n    return '<' # why\n```", kept_guide)
    assert '<span class="k">def</span>' in made
    assert "style=" not in made
    assert "&lt;" in made or "&#39;&lt;&#39;" in made
