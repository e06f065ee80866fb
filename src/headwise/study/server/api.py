"""The JSON API: grading, reviews, progress, live heads. `GET` changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import tzinfo
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headwise.study import progress
from headwise.study.answers_text import NotAnAnswer
from headwise.study.grading import grade_by_key
from headwise.study.progress import DeckCard, ProgressError, Refused, Reviewed, Store, checks
from headwise.study.server.heads import Heads, NoHeads
from headwise.study.server.pages import Site
from headwise.study.server.responses import NO_STORE, Json, JsonFile, failure

SMALL, LARGE = 100_000, 100_000_000
"""Bytes of a request, and of an import: a hundred thousand reviews are about 25 million."""

Body = dict[str, Any]


class NotThere(ProgressError):
    """There is no such guide, question, deck or activity."""

    status = 404
    name = "not-there"


class Api:
    """What the pages ask for.

    Args:
        sites: the guides, by id.
        store: the learner's progress.
        profile: its name.
        clock, zone: the present instant and the learner's time zone; None for this machine's.
    """

    def __init__(
        self,
        sites: dict[str, Site],
        store: Store,
        *,
        profile: str = "default",
        clock: Callable[[], int] = progress.now,
        zone: tzinfo | None = None,
    ) -> None:
        self.sites = sites
        self.store = store
        self.profile = profile
        self.clock = clock
        self.zone = zone
        self.heads = Heads()

    def routes(self) -> list[Route]:
        """The addresses below /api/."""
        return [
            self._get("/progress", self.progress),
            self._get("/queue", self.queue),
            self._get("/kept", lambda query: progress.kept(self.store)),
            self._get("/heads", lambda query: self.heads.available()),
            Route("/export", self.export, methods=["GET"]),
            self._post("/quiz/{question}/answer", self.answer),
            self._post("/reviews", self.review),
            self._post("/reviews/undo", self.undo),
            self._post("/marks", self.mark),
            self._post("/settings", self.settings),
            self._post("/heads", self.look),
            self._post("/import", self.read_import, most=LARGE),
            self._post("/erase", self.erase),
        ]

    def _get(self, path: str, handle: Callable[[Body], Body]) -> Route:
        async def endpoint(request: Request) -> Response:
            return await _answered(handle, dict(request.query_params))

        return Route(path, endpoint, methods=["GET"])

    def _post(self, path: str, handle: Callable[[Body], Body], *, most: int = SMALL) -> Route:
        async def endpoint(request: Request) -> Response:
            raw = await _read(request, most)
            if raw is None:
                return failure(413, "too-large", f"A request has at most {most} bytes.")
            try:
                body = json.loads(raw)
            except (ValueError, RecursionError) as error:
                if path == "/import":
                    return failure(
                        422, "bad-import", f"The file is no whole JSON file ({error}): nothing was changed."
                    )
                return failure(422, "refused", f"This is no JSON: {error}")
            if not isinstance(body, dict):
                return failure(422, "refused", "A JSON object is expected.")
            return await _answered(handle, {**body, **request.path_params})

        return Route(path, endpoint, methods=["POST"])

    # Reading

    def progress(self, query: Body) -> Body:
        """Settings, answers, marks and what is due of a guide."""
        guide = self._guide(query)
        shown = self.sites[guide].shown()
        with self.store.reading() as connection:  # one state of the file for all of the answer
            return {
                "profile": self.profile,
                "file": str(self.store.file),
                "settings": progress.read_settings(connection).to_dict(),
                "answers": progress.latest_answers(self.store, guide),
                "marks": progress.latest_marks(self.store, guide),
                "decks": {deck: self._queue(guide, deck) for deck in shown.decks},
            }

    def queue(self, query: Body) -> Body:
        """What is due of a deck."""
        guide = self._guide(query)
        return self._queue(guide, str(query.get("deck", "")))

    def _queue(self, guide: str, deck: str) -> Body:
        cards = self.sites[guide].shown().decks.get(deck)
        if cards is None:
            raise NotThere(f"the guide {guide!r} has no deck {deck!r}")
        found = progress.queue(
            self.store, guide, [DeckCard(*card) for card in cards], clock=self.clock(), zone=self.zone
        )
        return found.to_dict()

    async def export(self, request: Request) -> Response:
        """All progress as a file."""
        try:
            made = await run_in_threadpool(
                progress.export_progress, self.store, clock=self.clock(), profile=self.profile
            )
        except ProgressError as error:
            return failure(error.status, error.name, str(error))
        name = f"headwise-progress-{made['exported'][:10]}.json"
        headers = {**NO_STORE, "Content-Disposition": f'attachment; filename="{name}"'}
        return JsonFile(made, headers=headers)

    # Writing

    def answer(self, body: Body) -> Body:
        """Grade an answer and keep it; only then are reasons given."""
        guide, version = self._guide(body), checks.check_version(body.get("version", "current"))
        question = checks.check_slug(body.get("question"), "question")
        key = self.sites[guide].shown().key(question, version)
        if key is None:
            raise NotThere(f"the guide {guide!r}, version {version}, has no question {question!r}")
        if body.get("rev") != key["rev"]:
            raise progress.Conflict(
                f"This page shows revision {body.get('rev')} of the question, the guide has {key['rev']}: "
                "reload the page. Nothing was counted."
            )
        given = checks.check_given(body.get("given"))
        result = grade_by_key(key, given)
        added = progress.add_answer(
            self.store,
            id=body.get("id", ""),
            guide=guide,
            question=question,
            rev=key["rev"],
            version=version,
            given=given,
            correct=result.correct,
            score=result.score,
            seed=body.get("seed", 0),
            clock=self.clock(),
        )
        return {"result": result.to_dict(), "repeated": not added}

    def review(self, body: Body) -> Body:
        """Add a review; the queue afterwards."""
        guide = self._guide(body)
        deck, known = self._deck_of(guide, body.get("card"))
        rev = checks.check_whole(body.get("rev", 0), "rev", 1, 1_000_000)
        if rev > known:  # a lower one is a page that is older: the log says which answer was seen
            raise progress.Conflict(
                f"This page shows revision {rev} of the card, the guide has {known}: reload the page. "
                "Nothing was counted."
            )
        done = progress.add_review(
            self.store,
            id=body.get("id", ""),
            guide=guide,
            card=body.get("card", ""),
            rev=rev,
            rating=body.get("rating", 0),
            expects=body.get("expects"),
            duration=body.get("duration"),
            when=body.get("when"),
            clock=self.clock(),
        )
        return self._reviewed(done, guide, deck)

    def undo(self, body: Body) -> Body:
        """Take a review back; the queue afterwards."""
        guide = self._guide(body)
        done = progress.undo_review(
            self.store,
            id=body.get("id", ""),
            undoes=body.get("undoes", ""),
            clock=checks.check_when(body.get("when"), self.clock()),
        )
        return self._reviewed(done, guide, str(body.get("deck", "")))

    def _reviewed(self, done: Reviewed, guide: str, deck: str) -> Body:
        return {
            "card": done.card,
            "state": done.state.to_dict() if done.state else None,
            "wait": done.wait,
            "repeated": done.repeated,
            "told": done.told,
            "queue": self._queue(guide, deck),
        }

    def mark(self, body: Body) -> Body:
        """Mark an activity as done, or not."""
        guide = self._guide(body)
        if body.get("activity") not in self.sites[guide].shown().activities:
            raise NotThere(f"the guide {guide!r} has no activity {body.get('activity')!r}")
        progress.add_mark(
            self.store,
            id=body.get("id", ""),
            guide=guide,
            activity=body.get("activity", ""),
            done=body.get("done", False),
            clock=checks.check_when(body.get("when"), self.clock()),
        )
        return {"marks": progress.latest_marks(self.store, guide)}

    def settings(self, body: Body) -> Body:
        """Change settings."""
        return {"settings": progress.change_settings(self.store, body, clock=self.clock()).to_dict()}

    def read_import(self, body: Body) -> Body:
        """Read an export; all of it or nothing."""
        return {"added": progress.import_progress(self.store, body, clock=self.clock())}

    def erase(self, body: Body) -> Body:
        """Erase all progress of the profile that the page names: a page may be older than the server, which
        may have been started for another one since."""
        named = body.get("profile")
        if named != self.profile:
            raise progress.Conflict(
                f"This page shows the profile {named!r}, and the server keeps {self.profile!r} now: reload "
                "the page. Nothing was erased."
            )
        return {"erased": progress.erase_progress(self.store)}

    def look(self, body: Body) -> Body:
        """The heads of a sentence. Nothing is kept."""
        text = body.get("text")
        if not isinstance(text, str):
            raise Refused("text: a sentence is wanted")
        return self.heads.look(text)

    # Finding

    def _guide(self, given: Body) -> str:
        guide = given.get("guide")
        if guide is None and len(self.sites) == 1:
            return next(iter(self.sites))
        if not isinstance(guide, str) or guide not in self.sites:
            raise NotThere(f"there is no guide {guide!r} here")
        return guide

    def _deck_of(self, guide: str, card: object) -> tuple[str, int]:
        """The deck that has a card, and the card's revision."""
        for deck, cards in self.sites[guide].shown().decks.items():
            for name, rev in cards:
                if card == name:
                    return deck, rev
        raise NotThere(f"the guide {guide!r} has no card {card!r}")


async def _answered(handle: Callable[[Body], Body], given: Body) -> Response:
    try:
        return Json(await run_in_threadpool(handle, given), headers=NO_STORE)
    except NotAnAnswer as error:
        return failure(422, "not-an-answer", str(error))
    except NoHeads as error:
        return failure(error.status, "no-heads", str(error))
    except ProgressError as error:
        return failure(error.status, error.name, str(error))


async def _read(request: Request, most: int) -> bytes | None:
    """The body; None if it is too long, which is found before it is read to its end."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            return None
        parts.append(part)
    return b"".join(parts)
