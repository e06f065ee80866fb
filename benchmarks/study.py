"""The study guide: how long the pages take to build, and how soon the due queue answers.

python -m benchmarks.study                   a guide, and a log of 100,000 reviews
python -m benchmarks.study --reviews 10000   a shorter log
python -m benchmarks.study --guide FOLDER    another guide
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from headwise.study.progress import DeckCard, Store, add_review, export_progress, import_progress, queue
from headwise.study.progress.store import rebuild
from headwise.training.machine import machine

GUIDE = Path(__file__).parents[1] / "guides" / "attention-is-all-you-need"
START = 1_796_040_000_000
MINUTE, DAY = 60_000, 86_400_000
TARGETS = {"queue": 0.05, "build": 20.0}
"""Seconds, on two cores: what users were promised."""


@dataclass(frozen=True)
class Measured:
    """A line of the report. seconds: the median; worst: the slowest run."""

    what: str
    seconds: float
    worst: float
    target: float | None = None

    def __str__(self) -> str:
        goal = "" if self.target is None else f"   (promised: {_shown(self.target)})"
        return f"{self.what:<58}{_shown(self.seconds):>10}{_shown(self.worst):>10}{goal}"


def _shown(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def measured(
    what: str, run: Callable[[], object], *, times: int = 1, target: float | None = None
) -> Measured:
    """Run something a few times and take the median."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return Measured(what, statistics.median(taken), max(taken), target)


def log_of(store: Store, reviews: int, cards: int) -> int:
    """Fill a store as a diligent learner does; the instant of the last review."""
    draw = random.Random(1)
    rows, at = [], START
    for number in range(reviews):
        card = number % cards
        at += draw.randint(1, 10) * MINUTE
        rating = draw.choices((1, 2, 3, 4), (1, 1, 7, 2))[0]
        rows.append((f"review-{number:08d}", "guide", f"card-{card}", 1, rating, at, at, 4000))
    with store.writing() as connection:
        connection.executemany(
            "INSERT INTO reviews (id, guide, card, rev, rating, at, clock, duration) "
            "VALUES (?,?,?,?,?,?,?,?)",
            rows,
        )
        rebuild(connection)
    return at


def progress_lines(reviews: int, cards: int, folder: Path) -> list[Measured]:
    """The queue, a review, export and import, with a long log."""
    store = Store(folder / "progress.sqlite3")
    at = log_of(store, reviews, cards)
    deck = [DeckCard(f"card-{number}", 1) for number in range(cards)]
    later = at + 3 * DAY
    name = f"{reviews:,} reviews of {cards} cards"
    ids = (f"measured-{number:06d}" for number in itertools.count())

    def review() -> None:
        with store.reading() as connection:
            head = connection.execute("SELECT head FROM states WHERE card = 'card-0'").fetchone()[0]
        add_review(
            store, id=next(ids), guide="guide", card="card-0", rev=1, rating=3, expects=head, clock=later
        )

    found = [
        measured(
            f"the due queue, {name}",
            lambda: queue(store, "guide", deck, clock=later),
            times=30,
            target=TARGETS["queue"],
        ),
        measured("one review, on the disk when it is confirmed", review, times=30),
        measured("opening the file", lambda: Store(store.file).close(), times=5),
    ]
    made = export_progress(store, clock=later)
    found.append(measured("export of everything", lambda: export_progress(store, clock=later)))
    fresh = Store(folder / "fresh.sqlite3")
    found.append(
        measured("import of that into an empty file", lambda: import_progress(fresh, made, clock=later))
    )
    store.close()
    fresh.close()
    return found


def build_lines(guide: Path, folder: Path) -> list[Measured]:
    """The static site of a guide, and the pages of the local server."""
    from headwise.study.content import load_guide
    from headwise.study.server.build import build
    from headwise.study.site import build_site

    (folder / "pages").mkdir()
    return [
        measured(
            f"the static site of {guide.name}",
            lambda: build_site(load_guide(guide), folder / "site"),
            target=TARGETS["build"],
        ),
        measured(
            "the same for the local server", lambda: build(guide, folder / "pages"), target=TARGETS["build"]
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.study", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--reviews", type=int, default=100_000, help="in the log; default: 100000")
    parser.add_argument(
        "--cards", type=int, default=60, help="that they are of; default: 60, as in the guide"
    )
    parser.add_argument("--guide", type=Path, default=GUIDE, help="the folder of a guide")
    given = parser.parse_args(arguments)
    if given.reviews < given.cards or given.cards < 1:
        parser.error(f"--reviews {given.reviews} --cards {given.cards}: each card needs a review")
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    print(f"\n{'':<58}{'median':>10}{'worst':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for line in progress_lines(given.reviews, given.cards, Path(folder)):
            print(line, flush=True)
        for line in build_lines(given.guide, Path(folder)):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
