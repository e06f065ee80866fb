"""Pages of papers, as both generations of LaTeXML write them."""

from __future__ import annotations

import pytest
from lamp_pages import DATA, EARLIER, LATER, NO_HTML

from headwise.study.errors import GuideError
from headwise.study.paper import Page, read_page
from headwise.study.paper.labels import label
from headwise.study.paper.plain import holds, plain_text

PLACES = {  # id: kind, parent, formulas, label
    "abstract1": ("paragraph", None, 0, "abstract"),
    "S1": ("section", None, 0, "section 1"),
    "S1.p1": ("paragraph", "S1", 2, "1, paragraph 1"),
    "footnote1": ("footnote", "S1.p1", 1, "footnote 1"),
    "S1.p2": ("paragraph", "S1", 0, "1, paragraph 2"),
    "S1.I1": ("list", "S1.p2", 0, "1, list 1"),
    "S1.I1.i1": ("item", "S1.I1", 0, "1, list 1, item 1"),
    "S1.I1.i1.p1": ("paragraph", "S1.I1.i1", 0, "1, list 1, item 1, paragraph 1"),
    "S1.SS1": ("section", "S1", 0, "section 1.1"),
    "S1.SS1.SSS0.Px1": ("section", "S1.SS1", 0, "1.1, heading 1"),
    "S1.SS1.SSS0.Px1.p1": ("paragraph", "S1.SS1.SSS0.Px1", 0, "1.1, heading 1, paragraph 1"),
    "S1.SS1.p1": ("paragraph", "S1.SS1", 0, "1.1, paragraph 1"),
    "S1.E1": ("equation", "S1.SS1.p1", 0, "equation 1"),
    "S1.SS1.p2": ("paragraph", "S1.SS1", 0, "1.1, paragraph 2"),
    "S1.Ex1": ("equation", "S1.SS1.p2", 0, "1.1, formula Ex1, without a number"),
    "S1.F1": ("figure", "S1", 0, "figure 1"),
    "S1.T1": ("table", "S1", 0, "table 1"),
    "bib": ("section", None, 0, "references"),
    "bib.bib1": ("reference", "bib", 0, "reference 1"),
    "Sx1": ("section", None, 0, "section 1 without a number"),
    "Sx1.p1": ("paragraph", "Sx1", 0, "unnumbered section 1, paragraph 1"),
    "A1": ("section", None, 0, "appendix A"),
    "A1.p1": ("paragraph", "A1", 0, "A, paragraph 1"),
}


@pytest.mark.parametrize("html", [EARLIER, LATER], ids=["earlier", "later"])
def test_every_place_is_found_with_its_kind_parent_and_label(html: str) -> None:
    page = read_page(html)
    found = {
        name: (one.kind, one.parent, one.formulas, label(one, page.passages))
        for name, one in page.passages.items()
    }
    assert found == PLACES
    assert list(found) == list(PLACES)
    assert (page.title, page.authors, page.arxiv) == ("On Lamps", ["Ada Keeper"], "1234.56789v2")


def test_both_generations_hash_alike() -> None:
    """arXiv/html_feedback#1509: the whole collection was converted again; what a passage says is the same."""
    earlier, later = read_page(EARLIER), read_page(LATER)
    assert hashes(earlier) == hashes(later)
    assert earlier.passages["S1.p1"].plain == 'Alamp"turns"bytowardstheshipthatithears,withinmiles[1].'
    assert earlier.passages["footnote1"].plain == "Ashiphasabelloftones."
    assert earlier.passages["S1.T1"].plain == "Angles.north12"
    assert earlier.passages["abstract1"].plain == "Lampsthathearturnfaster."
    assert earlier.passages["S1.E1"].plain == r"a=\fracbc"
    empty = {"S1.I1", "S1.I1.i1", "S1.SS1.p1", "S1.SS1.p2"}
    assert {name for name, one in hashes(earlier).items() if one is None} == empty


@pytest.mark.parametrize(
    ("old", "new"),
    [("It hears.", "It listens."), ("12</td>", "13</td>"), (r"\frac{b}{c}", "b")],
)
def test_another_word_is_another_hash_of_that_passage_alone(old: str, new: str) -> None:
    assert old in EARLIER
    before, after = hashes(read_page(EARLIER)), hashes(read_page(EARLIER.replace(old, new)))
    assert sum(before[name] != after[name] for name in before) == 1


def test_formulas_and_layout_change_no_hash() -> None:
    other = EARLIER.replace("a_{t}", "a_{t+1}").replace(" towards\nthe ship", "\n\n  towards the\u00a0ship")
    assert other != EARLIER
    assert hashes(read_page(other)) == hashes(read_page(EARLIER))


def test_a_page_without_a_paper_is_refused() -> None:
    """arXiv answers "all is well" with such a page, where it has no HTML of a paper."""
    with pytest.raises(GuideError, match=r"^page\.html: .*no div\.ltx_page_main"):
        read_page(NO_HTML, "page.html")
    with pytest.raises(GuideError, match="no sections and no paragraphs"):
        read_page('<div class="ltx_page_main"> No content available <p>Nothing here has an id.</p></div>')


def test_what_latexml_really_writes_is_read_alike_with_and_without_its_ids_option() -> None:
    """Both pages are LaTeXML 0.8.7's of data/lamps.tex; the second names paragraphs by their formulas (p1.2),
    as the old pages of arXiv and ar5iv do, the first doesn't name their text at all."""
    plain, named = (
        read_page((DATA / f"lamps-0.8.7{name}.html").read_text(encoding="utf-8")) for name in ("", "-ids")
    )
    assert 'id="S1.p1.2"' in (DATA / "lamps-0.8.7-ids.html").read_text(encoding="utf-8")
    assert plain.passages == named.passages
    assert (plain.title, plain.authors) == ("On Lamps", ["Ada Keeper"])
    assert plain.passages["S1.E1"].plain == r"a=\fracbc"
    assert plain.passages["S1.Ex2"].plain == "w=x+1"
    assert plain.passages["S1.E3"].plain == "r=softmax(s)"
    assert plain.passages["S1.F1"].plain == "Alampdrawn.Alampwithrays."
    assert plain.passages["Sx1.p1"].plain == 'Theyshine"bright"-always.'
    assert {one.id: one.formulas for one in plain.passages.values() if one.formulas} == {
        "abstract1": 1,
        "S1.p1": 2,
        "footnote1": 1,
        "S1.I1.i1.p1": 1,
        "S1.SS1.SSS0.Px1.p1": 2,
        "S1.F1": 1,
        "S1.T1": 1,
    }
    labels = {label(one, plain.passages) for one in plain.passages.values()}
    assert len(labels) == len(plain.passages)
    assert {"1, list 1, item 2, paragraph 2", "equation 3", "appendix A", "references"} <= labels


def test_deep_and_broken_pages_are_read() -> None:
    deep = '<div class="ltx_page_main">' + "<div>" * 20_000 + '<div class="ltx_para" id="p1"><p>Deep'
    assert read_page(deep).passages["p1"].plain == "Deep"


@pytest.mark.parametrize(
    ("place", "number"),
    [
        ('<base href="/html/1706.03762v7/">', "1706.03762v7"),
        ('<link rel="canonical" href="https://ar5iv.labs.arxiv.org/html/1706.03762">', "1706.03762"),
        ('<meta property="og:url" content="https://arxiv.org/abs/2101.00001v12">', "2101.00001v12"),
        ("", ""),
    ],
)
def test_the_papers_number_is_found(place: str, number: str) -> None:
    body = '<div class="ltx_page_main"><div class="ltx_para" id="p1"><p>See 1999.00001v1.</p></div></div>'
    assert read_page(f"<html><head>{place}</head><body>{body}</body></html>").arxiv == number


@pytest.mark.parametrize(
    ("quote", "there"),
    [
        ('A lamp "turns" by $a_t$ towards the ship', True),
        ("A lamp “turns” by", True),
        ("A lamp ... that it hears", True),
        ("that it hears … A lamp", False),
        ("A lamp turned", False),
        ("within\nmiles", True),
    ],
)
def test_quotes_are_found_whatever_their_marks_formulas_and_omissions(quote: str, there: bool) -> None:
    passage = plain_text("A lamp “turns” by  towards the ship that it hears, within miles.")
    assert holds(passage, quote) is there


def hashes(page: Page) -> dict[str, str | None]:
    return {name: one.sha256 for name, one in page.passages.items()}
