"""Makes what templates show of what a guide holds."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import quote

from markupsafe import Markup, escape

from headwise.study.content import (
    Activity,
    Block,
    Card,
    Deck,
    Guide,
    Input,
    Lesson,
    Question,
    Quiz,
    Resources,
    Visual,
)
from headwise.study.content.cards import CLOZE
from headwise.study.keys import shown_items, shown_options
from headwise.study.maths import Maths, StoredMaths
from headwise.study.render import kinds
from headwise.study.render.code import highlighted
from headwise.study.render.context import Context
from headwise.study.render.links import activity_link, symbol_link
from headwise.study.render.markdown import rendered, split
from headwise.study.render.symbols import symbol
from headwise.study.render.views import (
    BlockView,
    CardView,
    InputView,
    Link,
    QuestionView,
    ResourceView,
    Row,
    SourceView,
    SymbolView,
    TableView,
    VisualView,
)
from headwise.study.visuals.base import VisualData

_TAGS = re.compile(r"<[^>]*>")


class Maker:
    """Makes views of a guide's content.

    Args:
        root: from the page that shows them to the guide's front page.
        data: what the visuals show, by the visual's id.
        printed: what code prints, by "activity#block".
    """

    def __init__(
        self,
        guide: Guide,
        *,
        root: str = "../",
        maths: Maths | None = None,
        data: dict[str, VisualData] | None = None,
        printed: dict[str, str] | None = None,
    ) -> None:
        self.guide = guide
        self.root = root
        self.data = data or {}
        self.printed = printed or {}
        self._context = Context(guide, maths or StoredMaths.of(guide.folder), root=root)

    def at(self, file: str, line: int) -> Context:
        """The context of a text of the guide's file."""
        return self._context.at(str(self.guide.folder / file), line)

    # Small things

    def inline(self, text: str, file: str = "guide.toml", line: int = 1, *, links: bool = True) -> Markup:
        """One line of Markdown."""
        context = self.at(file, line)
        return rendered(text, context if links else context.plain(), inline=True)

    def text(self, text: str, file: str = "guide.toml", line: int = 1) -> Markup:
        """Paragraphs of Markdown."""
        return rendered(text, self.at(file, line))

    def source(self, anchor: str, *, quoted: bool = True) -> SourceView:
        """A place of the paper."""
        found = self.guide.source(anchor)
        return SourceView(
            id=found.id,
            label=place_name(found.label or found.id),
            kind=kinds.SOURCE.get(found.kind, kinds.Kind(found.kind, "paragraph")),
            url=found.url,
            href=f"{self.root}sources/#{quote(found.id)}",
            quote=found.quote if quoted else "",
        )

    def sources(self, anchors: list[str], file: str, line: int, quote: str | None = None) -> list[SourceView]:
        """Places of the paper; only the one named by `quote` comes with its words, or all, if it is None.

        Raises:
            GuideError: sources.toml lacks one.
        """
        missing = [one for one in anchors if one not in self.guide.sources]
        if missing:
            raise self.at(file, line).error(f"sources.toml has no {missing[0]}: add what that place says")
        return [self.source(one, quoted=quote in (None, one)) for one in anchors]

    def again(self, place: str, file: str, line: int) -> Link | None:
        """The block of a lesson where something is taught."""
        if not place:
            return None
        href = activity_link(place, self.at(file, line), line)
        activity, _, name = place.partition("#")
        title = self.guide.activities[activity].title
        if name and (block := self.guide.block(place)).title:
            title = plain(self.inline(block.title, links=False))
        return Link(title, href)

    # Lessons

    def blocks(self, lesson: Lesson) -> list[BlockView]:
        """The blocks of a lesson."""
        return [self.block(one, lesson) for one in lesson.blocks]

    def block(self, block: Block, lesson: Lesson) -> BlockView:
        """A block of a lesson."""
        context = self.at(lesson.file, block.body_line or block.line)
        title = self.inline(block.title, lesson.file, block.line, links=False)
        printed = replace(context, printed=self.printed.get(f"{lesson.id}#{block.id}", ""))
        link = None
        if block.kind == "later":
            link = Link(block.options.get("link-title", ""), block.options.get("link", ""))
            if not link.href.startswith("https://"):
                raise self.at(lesson.file, block.line).error(f"the link {link.href!r} begins with https://")
        return BlockView(
            id=block.id,
            kind=block.kind,
            word=kinds.BLOCK[block.kind],
            title=title,
            plain_title=plain(title),
            html=rendered(block.body, printed),
            sources=self.sources(block.sources, lesson.file, block.line, block.quote),
            reason=self.inline(block.reason, lesson.file, block.line),
            symbols=[self.symbol(name, lesson.file, block.line) for name in block.symbols],
            link=link,
            visual=self._visual_of(block, lesson),
            question=self._question_of(block, lesson),
            children=[self.block(child, lesson) for child in block.children],
        )

    def symbol(self, name: str, file: str, line: int) -> SymbolView:
        """A name of the library's with its source."""
        href = symbol_link(name, self.at(file, line), line)
        try:
            found = symbol(name)
        except LookupError as error:
            raise self.at(file, line).error(str(error)) from None
        return SymbolView(found, highlighted(found.source, "python"), href)

    def _visual_of(self, block: Block, lesson: Lesson) -> VisualView | None:
        if block.kind != "visual":
            return None
        found = self.guide.activities.get(block.options.get("visual", ""))
        if not isinstance(found, Visual):
            raise self.at(lesson.file, block.line).error(
                f"there is no visual {block.options.get('visual')!r} in this guide"
            )
        return self.visual(found, within=f"{block.id}-")

    def _question_of(self, block: Block, lesson: Lesson) -> QuestionView | None:
        if block.kind != "check":
            return None
        name = block.options.get("question", "")
        question = self.guide.questions().get(name)
        if question is None:
            raise self.at(lesson.file, block.line).error(f"no quiz of this guide has the question {name!r}")
        return self.question(question, self.guide.activity_of(name).file)

    # Quizzes, cards, visuals, resources

    def question(self, question: Question, file: str) -> QuestionView:
        """A question, with nothing that tells its answer."""
        context = self.at(file, question.line)
        first, rest = split(question.prompt, context.plain())
        shown = shown_items(question) if question.kind == "order" else shown_options(question)
        code = Markup()
        if question.kind == "shape":
            code = highlighted(question.code.strip() + "\n" + question.ask, "python")
        return QuestionView(
            question=question,
            word=kinds.QUESTION[question.kind],
            first=first,
            rest=rest,
            code=code,
            options=[(key, rendered(one.text, context.plain(), inline=True)) for key, one in shown],
            sources=self.sources(question.sources, file, question.line, quote=""),
            reason=question.reason,
            again=self.again(question.block, file, question.line),
        )

    def card(self, card: Card, file: str) -> CardView:
        """A flashcard. In a cloze, what is asked for is left out of the front and marked on the back."""
        context = self.at(file, card.line)
        if card.kind == "cloze":
            html = str(rendered(card.text, context))
            front = Markup(CLOZE.sub('<span class="cloze">[…]</span>', html))
            back = Markup(CLOZE.sub(r'<mark class="cloze">\1</mark>', html))
        else:
            front, back = rendered(card.front, context), rendered(card.back, context)
        return CardView(
            id=card.id,
            rev=card.rev,
            front=front,
            back=back,
            why=rendered(card.why, context),
            sources=self.sources(card.sources, file, card.line, quote=""),
            again=self.again(card.block, file, card.line),
        )

    def visual(self, visual: Visual, within: str = "") -> VisualView:
        """A visual; `within` comes before the ids of its inputs."""
        found = self.data[visual.id]
        return VisualView(
            visual=visual,
            src=f"{self.root}visuals/{visual.id}.json",
            inputs=[self._input(one, visual, within) for one in visual.inputs],
            words=self.text(visual.words, visual.file, visual.line),
            seen=found.words,
            table=TableView(found.table.caption, found.table.columns, found.table.rows),
            sources=self.sources(visual.sources, visual.file, visual.line, quote=""),
            page=f"{self.root}{visual.id}/",
        )

    def _input(self, given: Input, visual: Visual, within: str) -> InputView:
        value = given.value
        attributes = {
            name: _number(one)
            for name, one in (("min", given.min), ("max", given.max), ("step", given.step))
            if one is not None
        }
        return InputView(
            name=given.name,
            id=f"{within}{visual.id}-{given.name}",
            label=self.inline(given.label, visual.file, given.line, links=False),
            kind=given.kind,
            value="" if value is None or isinstance(value, bool) else _number(value),
            checked=value is True,
            attributes=attributes,
            options=[_choice(one, value) for one in given.options],
            unit=given.unit,
            help=self.inline(given.help, visual.file, given.line),
        )

    def resources(self, listed: Resources) -> list[ResourceView]:
        """What to read beside the guide."""
        made = []
        for one in listed.resources:
            if not one.url.startswith("https://"):
                raise self.at(listed.file, one.line).error(f"the address {one.url!r} begins with https://")
            made.append(
                ResourceView(
                    resource=one,
                    word=kinds.RESOURCE[one.kind],
                    why=self.inline(one.why, listed.file, one.line),
                    after=self.again(one.when, listed.file, one.line),
                )
            )
        return made

    def row(self, activity: Activity) -> Row:
        """An activity in the list of all."""
        return Row(
            activity=activity,
            kind=kinds.ACTIVITY[activity.type],
            href=f"{self.root}{activity.id}/",
            summary=self.inline(activity.summary, activity.file, activity.line),
            needs=[
                Link(self.guide.activities[name].title, f"{self.root}{name}/")
                for name in activity.needs
                if name in self.guide.activities
            ],
            questions=_revs(activity.questions) if isinstance(activity, Quiz) else "",
            cards=_revs(activity.cards) if isinstance(activity, Deck) else "",
        )


_MATH = re.compile(r"<math\b.*?</math>", re.DOTALL)


def spoken(html: Markup) -> str:
    """A name for what holds nothing but formulas, which not every program reads aloud; "" for the rest."""
    return "" if plain(Markup(_MATH.sub("", str(html)))).strip(" .,;") else plain(html)


def place_name(label: str) -> str:
    """An anchor's label as a reader is shown it: "Section 3.2.2, paragraph 1", "Figure 2"."""
    return f"Section {label}" if label[:1].isdigit() else label[:1].upper() + label[1:]


def plain(html: Markup) -> str:
    """The words of HTML."""
    return " ".join(Markup(_TAGS.sub(" ", str(html))).unescape().split())


def _revs(things: list[Question] | list[Card]) -> str:
    return " ".join(f"{one.id}:{one.rev}" for one in things)


def _number(value: float | int | str) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _choice(option: object, value: object) -> tuple[str, str, bool]:
    """The value of a choice, its text, and whether it is the first one chosen."""
    if isinstance(option, dict):
        given = option.get("value", option.get("label"))
        return str(given), str(option.get("label", given)), given == value
    text = str(option)
    return text, grouped(text), option == value


def grouped(text: str) -> str:
    """A whole number with commas from 1,000 on, as facts of a guide have it; other texts as they are."""
    return f"{int(text):,}" if text.isascii() and text.isdigit() else text


def attributes(given: dict[str, str]) -> Markup:
    """Attributes of a tag."""
    return Markup("").join(Markup(' {}="{}"').format(Markup(escape(key)), one) for key, one in given.items())
