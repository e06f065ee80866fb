"""The page of a paper that LaTeXML made: what stands where. Nothing in it is run, nothing is fetched."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from headwise.study.content.sources import AnchorKind, canonical
from headwise.study.errors import GuideError
from headwise.study.paper.plain import digest, plain_tex, plain_text

SECTIONS = frozenset(
    f"ltx_{name}"
    for name in (
        *(
            "part",
            "chapter",
            "section",
            "subsection",
            "subsubsection",
            "paragraph",
            "subparagraph",
            "appendix",
        ),
        *("bibliography", "acknowledgements", "theorem", "proof", "index", "glossary"),
    )
)
LISTS = frozenset({"ltx_itemize", "ltx_enumerate", "ltx_description"})
FIGURES = frozenset({"ltx_figure", "ltx_float", "ltx_algorithm", "ltx_listing"})
ABSTRACT = "abstract1"

_EQUATION = re.compile(r"(?:.*\.)?Ex?\d+")
_ARXIV = re.compile(
    r"(?:arxiv(?:\.org)?[:/]|/)(?:html/|abs/|pdf/|papers/)?(?P<id>\d{4}\.\d{4,5}(?:v\d+)?)\b", re.IGNORECASE
)
_UNREAD = frozenset({"script", "style", "nav", "template", "noscript", "annotation-xml", "svg"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_MARKS = frozenset({"ltx_note_mark", "ltx_note_type"})


@dataclass
class Passage:
    """A place of a page.

    Attributes:
        id: without a converter's suffix.
        number: what the paper calls it: "3.2.1", "Figure 2", "(1)"; "" for nothing.
        formulas: inline formulas in it, footnotes not counted.
        plain: its words, or an equation's TeX, as they are compared.
    """

    id: str
    kind: AnchorKind
    parent: str | None
    number: str = ""
    formulas: int = 0
    plain: str = ""
    words: list[str] = field(default_factory=list, repr=False)

    @property
    def sha256(self) -> str | None:
        return digest(self.plain)


@dataclass(frozen=True)
class Page:
    """A paper's page.

    Attributes:
        arxiv: what it says of its number: "1706.03762v7"; "" for nothing.
        passages: by id, in the page's order.
    """

    title: str
    authors: list[str]
    arxiv: str
    passages: dict[str, Passage]


def read_page(html: str, file: str = "") -> Page:
    """The places of a page.

    Args:
        file: its name, for errors.

    Raises:
        GuideError: it isn't a paper's page as LaTeXML makes them; arXiv answers with such a page, and says
            that all is well, where it has no HTML of a paper.
    """
    tree = LexborHTMLParser(html)
    main = tree.css_first("div.ltx_page_main")
    if main is None:
        raise GuideError(
            "this is no paper in LaTeXML's HTML: it has no div.ltx_page_main (nor has arXiv's page for a "
            "paper without HTML); save the page at arxiv.org/html/... and give that file",
            file,
        )
    passages = _passages(main)
    if not passages:
        raise GuideError("this page has no sections and no paragraphs with ids: was it saved whole?", file)
    title = main.css_first(".ltx_title_document")
    people = [_flat(one) for one in main.css(".ltx_personname")]
    return Page(
        title="" if title is None else _flat(title),
        authors=[person for person in people if person],
        arxiv=_arxiv(tree),
        passages=passages,
    )


def _passages(main: LexborNode) -> dict[str, Passage]:
    found: dict[str, Passage] = {}
    owners: dict[int, Passage | None] = {main.mem_id: None}  # of each node: the place it stands in
    unread: set[int] = set()  # nodes whose text isn't the passage's
    for node in main.traverse(include_text=True):
        if node.mem_id == main.mem_id:
            continue
        above = node.parent
        over = None if above is None else above.mem_id
        owner = owners.get(over) if over is not None else None
        inside = over in unread
        if node.is_text_node:
            if owner is not None and not inside:
                owner.words.append(node.text_content or "")
            continue
        classes = frozenset((node.attributes.get("class") or "").split())
        kind = None if inside else _kind(node, classes)
        if kind is not None:
            owner = _added(found, node, kind, classes, owner)
        owners[node.mem_id] = owner
        tag = node.tag
        heading = owner is not None and owner.id == ABSTRACT and tag in _HEADINGS
        if inside or tag in _UNREAD or classes & _MARKS or heading:
            unread.add(node.mem_id)
        elif tag == "math":
            unread.add(node.mem_id)
            if owner is not None:
                _add_formula(owner, node)
        elif "ltx_tag" in classes:
            unread.add(node.mem_id)
            if owner is not None and not owner.number:
                owner.number = _flat(node)
    for passage in found.values():
        passage.plain = (
            plain_tex("".join(passage.words))
            if passage.kind == "equation"
            else plain_text("".join(passage.words))
        )
    return found


def _added(
    found: dict[str, Passage],
    node: LexborNode,
    kind: AnchorKind,
    classes: frozenset[str],
    owner: Passage | None,
) -> Passage:
    name = ABSTRACT if "ltx_abstract" in classes else canonical(node.attributes.get("id") or "")
    if name in found:  # an id that stands twice: the first counts, as in a browser
        return found[name]
    passage = Passage(name, kind, None if owner is None else owner.id)
    found[name] = passage
    return passage


def _kind(node: LexborNode, classes: frozenset[str]) -> AnchorKind | None:
    """What kind of place this element is; None for no place of its own."""
    if "ltx_abstract" in classes:
        return "paragraph"
    name = node.attributes.get("id") or ""
    if not name:
        return None
    if classes & SECTIONS:
        return "section"
    if "ltx_para" in classes:
        return "paragraph"
    if _EQUATION.fullmatch(name) and node.tag in ("table", "tbody", "div", "tr"):
        return "equation"
    if "ltx_bibitem" in classes:
        return "reference"
    if "ltx_note" in classes:
        return "footnote" if "ltx_role_footnote" in classes else None
    if "ltx_table" in classes:
        return "table"
    if classes & FIGURES:
        return "figure"
    if classes & LISTS:
        return "list"
    return "item" if "ltx_item" in classes else None


def _add_formula(owner: Passage, node: LexborNode) -> None:
    if owner.kind == "equation":
        owner.words.append(_tex(node))
    elif node.attributes.get("display") != "block":
        owner.formulas += 1


def _tex(node: LexborNode) -> str:
    for one in node.css("annotation"):
        if one.attributes.get("encoding") == "application/x-tex":
            return one.text(deep=True)
    return node.attributes.get("alttext") or ""


def _flat(node: LexborNode) -> str:
    """The text of an element, on one line, without formulas and footnotes."""
    parts: list[str] = []
    left_out: set[int] = set()
    for one in node.traverse(include_text=True):
        over = one.parent
        inside = over is not None and over.mem_id in left_out
        if one.is_text_node:
            if not inside:
                parts.append(one.text_content or "")
        elif (
            inside
            or one.tag in _UNREAD
            or one.tag in ("math", "sup")
            or "ltx_note" in (one.attributes.get("class") or "").split()
        ):
            left_out.add(one.mem_id)
    return " ".join("".join(parts).split())


def _arxiv(tree: LexborHTMLParser) -> str:
    """The paper's number, from where converters write it; with its version, if any of these gives it."""
    places = [
        *((one.attributes.get("href") or "") for one in tree.css("base, link[rel=canonical]")),
        *((one.attributes.get("content") or "") for one in tree.css('meta[property="og:url"]')),
        *(one.text(deep=True) for one in tree.css("#watermark-tr, .ltx_page_header, .ltx_page_logo")),
    ]
    found = [match["id"] for place in places if (match := _ARXIV.search(place))]
    return next((one for one in found if "v" in one), found[0] if found else "")
