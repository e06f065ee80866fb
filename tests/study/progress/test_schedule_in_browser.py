"""The static export plans reviews in the browser: ts-fsrs and the `fsrs` package agree, and so do days."""

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from browser_modules import modules
from logbook import DAY, GUIDE, HOUR, MINUTE, NOON, deck, review
from make_schedules import FILE
from schedule_cases import WAITS, easy_for_ever, last_days

from headwise.study.progress import change_settings, days, queue
from headwise.study.progress.queue import DeckCard, last_given, sort_out
from headwise.study.progress.schedule import Review, fold

pytestmark = pytest.mark.browser

FOLD = """async (cases) => {
  const { after, previews } = await import("/schedule.js");
  const { words } = await import("/waits.js");
  return cases.map(({ reviews }) => {
    const states = [];
    for (const review of reviews) states.push(after(states.at(-1) ?? null, review));
    const clock = reviews.at(-1).at + 86400000;
    const next = previews(states.at(-1), clock);
    const told = Object.entries(next).map(([rating, due]) => [rating, words(due - clock)]);
    const waits = Object.fromEntries(told);
    return { states, next, waits };
  });
}"""


def test_both_schedulers_give_the_same_states_and_due_instants(chromium):
    cases = json.loads(FILE.read_text(encoding="utf-8"))
    with modules(chromium) as page:
        found = page.evaluate(FOLD, cases)
    assert len(found) == len(cases) > 50
    for case, result in zip(cases, found, strict=True):
        for wanted, state in zip(case["states"], result["states"], strict=True):
            # ts-fsrs rounds what it remembers to eight digits after the point; all else is equal.
            for name in ("stability", "difficulty"):
                assert state.pop(name) == pytest.approx(wanted.pop(name), rel=1e-6, abs=1e-7), case["name"]
            assert state == wanted, case["name"]
        assert result["next"] == case["next"], case["name"]
        assert result["waits"] == case["waits"], case["name"]


def test_waits_are_told_alike(chromium):
    with modules(chromium) as page:
        found = page.evaluate(
            "async (waits) => { const { words } = await import('/waits.js'); return waits.map(words); }",
            list(WAITS),
        )
    assert found == list(WAITS.values())


def test_reviews_at_the_end_of_all_dates_fold_alike(chromium):
    reviews = [vars(review) for review in last_days()]
    with modules(chromium) as page:
        (found,) = page.evaluate(FOLD, [{"reviews": reviews}])
        written = page.evaluate("async (at) => (await import('/days.js')).written(at)", reviews[-1]["at"] + 1)
    wanted = [fold(last_days()[: count + 1]) for count in range(3)]
    assert [state["due"] for state in found["states"]] == [state.due for state in wanted]
    assert written == days.written(reviews[-1]["at"] + 1) == "9999-12-31T23:59:59.999Z"


def test_reviews_of_one_instant_fold_alike(chromium):
    reviews = [
        {"id": name, "at": NOON, "rating": 3, "rev": 1} for name in ("aaaaaaaa", "bbbbbbbb", "cccccccc")
    ]
    with modules(chromium) as page:
        found = page.evaluate("async (all) => (await import('/schedule.js')).fold(all)", reviews)
        with pytest.raises(Exception, match="follows one at"):
            page.evaluate(
                "async (all) => { const m = await import('/schedule.js'); m.after(m.fold(all), all[0]); }",
                reviews,
            )
    state = fold(Review(**review) for review in reviews).to_dict()
    assert {name: found[name] for name in ("due", "last", "head", "reviews", "state")} == {
        name: state[name] for name in ("due", "last", "head", "reviews", "state")
    }


def test_a_memory_as_stable_as_it_gets_is_the_same(chromium):
    reviews = easy_for_ever()
    with modules(chromium) as page:
        (found,) = page.evaluate(FOLD, [{"reviews": [vars(review) for review in reviews]}])
    wanted = [fold(reviews[: count + 1]) for count in range(len(reviews))]
    assert [state["due"] for state in found["states"]] == [state.due for state in wanted]


GIVEN = [
    [],
    [("a", NOON), ("b", NOON + 30 * DAY), ("c", NOON + HOUR)],
    [("a", NOON), ("b", NOON + 30 * DAY)],
    [("b", NOON + 30 * DAY), ("c", NOON + 40 * DAY)],
    [("a", NOON + MINUTE), ("b", NOON), ("c", NOON)],
]


def test_the_rating_given_last_is_the_same(chromium):
    with modules(chromium) as page:
        found = page.evaluate(
            """async ([lists, clock]) => {
              const { lastGiven } = await import("/queue.js");
              return lists.map((heads) => lastGiven(heads, clock));
            }""",
            [GIVEN, NOON + 2 * HOUR],
        )
    assert found == [last_given(heads, NOON + 2 * HOUR) for heads in GIVEN] == [None, "c", "b", "c", "a"]


def test_the_browser_takes_the_same_instants_and_day_starts(chromium):
    with modules(chromium) as page:
        page.clock.set_fixed_time(datetime(2026, 11, 30, 12, tzinfo=UTC))
        found = page.evaluate(
            """async () => {
              const { readExport, checkSettings } = await import("/transfer.js");
              const mark = (at) => ({ id: "mark-00001", guide: "g", activity: "a", done: true, at });
              const file = (at) => JSON.stringify({
                format: "headwise-study-progress", version: 1, settings: {},
                reviews: [], undos: [], answers: [], marks: [mark(at)],
              });
              const tried = (act) => { try { act(); return true; } catch (error) { return error.name; } };
              const instants = [
                "1970-01-01T00:00:00.000Z", "2026-12-01T12:00:00.000Z", "2026-12-01T12:00:00.001Z",
                "9999-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z",
              ];
              const starts = ["04:00", "\\u0660\\u0664:00", 4, ["04:00"], null];
              return [
                ...instants.map((at) => tried(() => readExport(file(at)))),
                ...starts.map((start) => tried(() => checkSettings({ day_start: start }))),
              ];
            }"""
        )
    assert found == [*[True] * 4, "bad-import", True, *["refused"] * 4]  # test_clocks_ahead.py


DAYS = """async ([instants, start]) => {
  const days = await import("/days.js");
  return instants.map((at) => [days.dayOf(at, start), days.startOfDay(at, start), days.endOfDay(at, start)]);
}"""


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
@pytest.mark.parametrize("start", ["04:00", "00:00", "02:30", "23:59"])
def test_days_begin_at_the_same_instants(chromium, zone, start):
    begin = days.instant(datetime(2026, 1, 1, tzinfo=UTC))
    instants = [begin + number * (7 * HOUR + 13 * MINUTE) for number in range(1300)]
    for month, day in ((3, 29), (10, 25), (11, 1), (4, 5)):  # nights in which a clock is changed
        night = days.instant(datetime(2026, month, day, tzinfo=UTC)) - DAY
        instants += [night + number * 10 * MINUTE for number in range(2 * 144)]
    with modules(chromium, timezone_id=zone) as page:
        found = page.evaluate(DAYS, [instants, start])
    here = ZoneInfo(zone)
    for at, (day, begins, ends) in zip(instants, found, strict=True):
        assert day == days.day_of(at, start, here).isoformat()
        assert begins == days.starts(days.day_of(at, start, here), start, here)
        assert ends == days.end_of_day(at, start, here)


QUEUE = """async ([deck, reviews, clock, ends, room]) => {
  const { sortOut } = await import("/queue.js");
  const { fold } = await import("/schedule.js");
  const states = new Map(Object.entries(reviews).map(([card, list]) => [card, fold(list)]));
  return sortOut(deck, states, { clock, ends, room });
}"""


@pytest.mark.parametrize("later", [0, MINUTE, 15 * MINUTE, DAY, 9 * DAY, 400 * DAY])
@pytest.mark.parametrize("room", [0, 1, 5])
def test_the_queue_is_the_same(chromium, later, room):
    ratings = {"a": [3], "b": [1], "c": [4], "d": [4, 1], "e": [3, 3], "f": [2, 4, 1, 3]}
    reviews = {
        card: [
            {"id": f"{card}{number}-------", "at": NOON + number * DAY, "rating": rating, "rev": 1}
            for number, rating in enumerate(given)
        ]
        for card, given in ratings.items()
    }
    deck = [{"id": card, "rev": 2 if card == "c" else 1} for card in "gfedcbah"]
    clock = NOON + 4 * DAY + later
    with modules(chromium) as page:
        found = page.evaluate(QUEUE, [deck, reviews, clock, clock + HOUR, room])
    states = {card: fold(Review(**review) for review in listed) for card, listed in reviews.items()}
    wanted = sort_out([DeckCard(**card) for card in deck], states, clock=clock, ends=clock + HOUR, room=room)
    assert found == {
        "cards": [due.to_dict() for due in wanted.cards],
        "ahead": [due.to_dict() for due in wanted.ahead],
        "waiting": wanted.waiting,
        "reviews": wanted.reviews,
        "held_back": wanted.held_back,
    }


WHOLE = """async ([deck, reviews, chosen, clock]) => {
  const { queueOf } = await import("/queue.js");
  const { fold } = await import("/schedule.js");
  const { SETTINGS } = await import("/transfer.js");
  const states = new Map(Object.entries(reviews).map(([card, list]) => [card, fold(list)]));
  return queueOf(deck, { reviews: [], states }, { ...SETTINGS, ...chosen }, clock, "");
}"""


@pytest.mark.parametrize("new", [0, 1, 9])
def test_the_next_card_and_the_counts_are_the_same(chromium, store, new):
    clocks = [NOON + gap for gap in (1, 5 * MINUTE, 3 * HOUR, DAY, 3 * DAY, 20 * DAY, 90 * DAY)]
    change_settings(store, {"new_per_day": new}, clock=NOON)
    reviews = {}
    for card, ratings in {"a": [3], "b": [1], "c": [4], "d": [4, 1]}.items():
        for number, rating in enumerate(ratings):
            at = NOON - len(ratings) + number + 1
            review(store, card, rating, at)
            reviews.setdefault(card, []).append(
                {"id": f"{card}{number}-------", "at": at, "rating": rating, "rev": 1}
            )
    cards = deck(*"abcdef")
    here = ZoneInfo("Europe/Berlin")
    with modules(chromium, timezone_id="Europe/Berlin") as page:
        for clock in clocks:
            given = [[vars(card) for card in cards], reviews, {"new_per_day": new}, clock]
            found = page.evaluate(WHOLE, given)
            wanted = queue(store, GUIDE, cards, clock=clock, zone=here).to_dict()
            for name in ("counts", "later", "next_due", "seen", "day", "ends"):
                assert found[name] == wanted[name], (name, clock)
            for name in ("cards", "ahead"):
                assert [(one["card"], one["waits"]) for one in found[name]] == [
                    (one["card"], one["waits"]) for one in wanted[name]
                ]


def test_shuffles_are_the_same_everywhere_and_reach_every_order(chromium):
    with modules(chromium) as page:
        found = page.evaluate(
            """async () => {
              const { shuffled } = await import("/study.js");
              return Array.from({ length: 600 }, (_, seed) => shuffled([0, 1, 2, 3], seed));
            }"""
        )
        again = page.evaluate("async () => (await import('/study.js')).shuffled([0, 1, 2, 3], 77)")
    assert again == found[77]
    assert all(sorted(order) == [0, 1, 2, 3] for order in found)
    counts = {}
    for order in found:
        counts[tuple(order)] = counts.get(tuple(order), 0) + 1
    assert len(counts) == 24
    assert max(counts.values()) < 3 * min(counts.values()) + 10
