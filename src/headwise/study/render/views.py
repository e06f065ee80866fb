"""What templates are given: the content of a guide, ready to show."""

from __future__ import annotations

from dataclasses import dataclass, field

from markupsafe import Markup

from headwise.study.content import Activity, Question, Resource, Visual
from headwise.study.render.kinds import Kind
from headwise.study.render.symbols import Symbol


@dataclass(frozen=True)
class Link:
    """Text that leads somewhere."""

    text: str
    href: str


@dataclass(frozen=True)
class SourceView:
    """A place of the paper, beside what rests on it."""

    id: str
    label: str
    kind: Kind
    url: str
    href: str
    quote: str = ""


@dataclass(frozen=True)
class SymbolView:
    """A name of the library's, with a piece of its source."""

    symbol: Symbol
    code: Markup
    href: str


@dataclass(frozen=True)
class QuestionView:
    """A question without its answer. `first` is the prompt's first paragraph, `rest` what follows it."""

    question: Question
    word: str
    first: Markup
    rest: Markup
    code: Markup
    options: list[tuple[str, Markup]]
    sources: list[SourceView]
    reason: str = ""
    again: Link | None = None


@dataclass(frozen=True)
class TableView:
    """Numbers as text, the first cell of each row naming it."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class InputView:
    """Something a learner can set."""

    name: str
    id: str
    label: Markup
    kind: str
    value: str
    checked: bool
    attributes: dict[str, str]
    options: list[tuple[str, str, bool]]
    unit: str
    help: Markup


@dataclass(frozen=True)
class VisualView:
    """A visual with what it shows at first."""

    visual: Visual
    src: str
    inputs: list[InputView]
    words: Markup
    seen: str
    table: TableView
    sources: list[SourceView]
    page: str


@dataclass(frozen=True)
class BlockView:
    """A block of a lesson."""

    id: str
    kind: str
    word: Kind
    title: Markup
    plain_title: str
    html: Markup
    sources: list[SourceView]
    reason: Markup
    symbols: list[SymbolView] = field(default_factory=list)
    link: Link | None = None
    visual: VisualView | None = None
    question: QuestionView | None = None
    children: list[BlockView] = field(default_factory=list)


@dataclass(frozen=True)
class CardView:
    """A flashcard."""

    id: str
    rev: int
    front: Markup
    back: Markup
    why: Markup
    sources: list[SourceView]
    again: Link | None


@dataclass(frozen=True)
class ResourceView:
    """Something to read beside the guide."""

    resource: Resource
    word: str
    why: Markup
    after: Link | None


@dataclass(frozen=True)
class Row:
    """An activity in the list of all."""

    activity: Activity
    kind: Kind
    href: str
    summary: Markup
    needs: list[Link]
    questions: str = ""
    cards: str = ""


@dataclass(frozen=True)
class PartView:
    """A part of the guide with its activities."""

    number: int
    title: str
    intro: Markup
    rows: list[Row]
    ids: list[str]
    minutes: int
