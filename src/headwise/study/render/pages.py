"""The pages of a guide's activities, and its front page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from markupsafe import Markup

from headwise.study.content import Activity, Deck, Guide, Lesson, Quiz, Resources, Visual
from headwise.study.render import kinds
from headwise.study.render.environment import environment
from headwise.study.render.maker import Maker, plain
from headwise.study.render.views import BlockView, PartView, Row

Mode = Literal["server", "static"]


@dataclass(frozen=True)
class Version:
    """A published version: its number, when it was frozen (UTC, ISO 8601), and what changed."""

    number: int
    published: str
    note: str

    @property
    def day(self) -> str:
        return self.published[:10]


@dataclass(frozen=True)
class Neighbour:
    """The activity before or after another."""

    title: str
    href: str
    word: str
    minutes: int


@dataclass(frozen=True)
class Entry:
    """A line of a page's table of contents."""

    id: str
    title: str


Permanent = Callable[[str, str], str]
"""From an activity and a block (or "") to the address that stays as it is, seen from the activity's page."""


class Pages:
    """Fills the templates.

    Args:
        at: a maker of views for pages at this way from the guide's front page ("" or "../").
        version: the version that is being frozen; None for the current guide.
        permanent: see `Permanent`.
    """

    def __init__(
        self,
        guide: Guide,
        mode: Mode,
        *,
        at: Callable[[str], Maker],
        version: Version | None,
        permanent: Permanent,
    ) -> None:
        self.guide = guide
        self.mode = mode
        self.version = version
        self._at = at
        self._permanent = permanent
        self._env = environment()
        self._order = list(guide.activities)
        self._made: dict[str, list[PartView]] = {}

    def fill(self, page: str, title: str, *, root: str = "../", here: str = "", **more: Any) -> str:
        """A page by its template.

        Args:
            here: its way from the guide's front page: "multi-head/".
        """
        scripts = ["page.js", "progress.js", *more.pop("scripts", ())]
        if self.version is not None:
            scripts.append("version.js")
        defaults: dict[str, Any] = {
            "activity": None,
            "part": None,
            "parts": [],
            "toc": [],
            "before": None,
            "after": None,
            "description": "",
            "styles": [],
        }
        up = "../" * (here.count("/") + 2)  # from a page of v/N/ to the same page of the current guide
        html: str = self._env.get_template(f"{page}.html.j2").render(
            **{
                **defaults,
                "page": page,
                "title": title,
                "guide": self.guide,
                "mode": self.mode,
                "root": root,
                "static": f"{root if self.version is None else up}static/",
                "version": self.version,
                "current": f"{up}{here}",
                "scripts": scripts,
                **more,
            }
        )
        return html

    # The front page

    def parts(self, root: str) -> list[PartView]:
        """The parts of the guide with their activities."""
        if root not in self._made:
            self._made[root] = self._parts(root)
        return self._made[root]

    def _parts(self, root: str) -> list[PartView]:
        maker = self._at(root)
        made = []
        for number, part in enumerate(self.guide.parts, start=1):
            rows = [maker.row(self.guide.activities[name]) for name in part.activities]
            made.append(
                PartView(
                    number=number,
                    title=part.title,
                    intro=maker.text(part.intro) if part.intro else Markup(),
                    rows=rows,
                    ids=part.activities,
                    minutes=sum(row.activity.minutes for row in rows),
                )
            )
        return made

    def deck(self, root: str) -> Row | None:
        """The first deck of cards."""
        for activity in self.guide.activities.values():
            if isinstance(activity, Deck):
                return self._at(root).row(activity)
        return None

    def index(self) -> str:
        """The front page: all activities in teaching order."""
        parts = self.parts("")
        rows = [row for part in parts for row in part.rows]
        counts = []
        for kind in ("lesson", "visual", "quiz"):
            number = sum(row.activity.type == kind for row in rows)
            plural = "zes" if kind == "quiz" else "s"
            counts.append({"number": number, "word": kind if number == 1 else kind + plural})
        questions, cards = len(self.guide.questions()), len(self.guide.cards())
        counts.append({"number": questions, "word": "questions"})
        counts.append({"number": cards, "word": "flashcards"})
        return self.fill(
            "index",
            "All activities",
            root="",
            parts=parts,
            intro=self._at("").text(self.guide.intro),
            counts=[count for count in counts if count["number"]],
            first=rows[0] if rows else None,
            deck=self.deck(""),
        )

    # Activities

    def activity(self, activity: Activity) -> str:
        """The page of an activity."""
        if isinstance(activity, Lesson):
            return self._lesson(activity)
        if isinstance(activity, Quiz):
            return self._quiz(activity)
        if isinstance(activity, Deck):
            return self._deck_page(activity)
        if isinstance(activity, Visual):
            return self._visual(activity)
        return self._resources(activity)

    def _page(self, page: str, activity: Activity, **more: Any) -> str:
        maker = self._at("../")
        place = self._order.index(activity.id)
        row = maker.row(activity)
        part = next((one for one in self.guide.parts if activity.id in one.activities), None)
        meta = self._env.get_template("meta.html.j2").render(
            activity=activity, kind=kinds.ACTIVITY[activity.type], needs=row.needs
        )
        return self.fill(
            page,
            activity.title,
            here=f"{activity.id}/",
            activity=activity,
            part=part,
            parts=self.parts("../"),
            before=self._neighbour(place - 1),
            after=self._neighbour(place + 1),
            description=plain(row.summary),
            summary=row.summary,
            meta=Markup(meta),  # a template's output
            permanent_of=lambda block: self._permanent(activity.id, block),
            **more,
        )

    def _neighbour(self, place: int) -> Neighbour | None:
        if not 0 <= place < len(self._order):
            return None
        found = self.guide.activities[self._order[place]]
        return Neighbour(found.title, f"../{found.id}/", kinds.ACTIVITY[found.type].word, found.minutes)

    def _lesson(self, lesson: Lesson) -> str:
        maker = self._at("../")
        blocks = maker.blocks(lesson)
        scripts = [
            *(["quiz.js"] if any(block.question for block in blocks) else []),
            *(["visuals/start.js"] if any(block.visual for block in blocks) else []),
        ]
        return self._page(
            "lesson",
            lesson,
            blocks=blocks,
            goals=[maker.inline(goal, lesson.file, lesson.line) for goal in lesson.goals],
            toc=contents(blocks),
            scripts=scripts,
            styles=["visuals.css"] if any(block.visual for block in blocks) else [],
        )

    def _quiz(self, quiz: Quiz) -> str:
        maker = self._at("../")
        questions = [maker.question(one, quiz.file) for one in quiz.questions]
        return self._page("quiz", quiz, questions=questions, scripts=["quiz.js"])

    def _deck_page(self, deck: Deck) -> str:
        maker = self._at("../")
        return self._page(
            "cards", deck, cards=[maker.card(one, deck.file) for one in deck.cards], scripts=["cards.js"]
        )

    def _visual(self, visual: Visual) -> str:
        return self._page(
            "visual",
            visual,
            view=self._at("../").visual(visual),
            scripts=["visuals/start.js"],
            styles=["visuals.css"],
        )

    def _resources(self, resources: Resources) -> str:
        listed = self._at("../").resources(resources)
        titles = {"paper": "Papers", "code": "Code", "reading": "Reading", "course": "Courses"}
        groups = [
            {"title": title, "list": found}
            for kind, title in titles.items()
            if (found := [one for one in listed if one.resource.kind == kind])
        ]
        return self._page("resources", resources, groups=groups)


def contents(blocks: Sequence[BlockView]) -> list[Entry]:
    """The table of contents of a page: its blocks that have a title."""
    return [Entry(block.id, block.plain_title) for block in blocks if block.title]
