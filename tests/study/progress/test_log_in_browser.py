"""The log in the browser: it answers as the server's does, reads storage without writing to it, and takes whatever
was exported anywhere."""
# ruff: noqa: E501 - scripts of the browser

import json
import random
from contextlib import contextmanager
from datetime import UTC

import pytest
from browser_modules import modules
from logbook import DAY, NOON, deck
from same_answers import CASES, MINUTE

from headwise.study.maths import StoredMaths
from headwise.study.progress import (
    ProgressError,
    Settings,
    Store,
    add_answer,
    add_mark,
    add_review,
    days,
    export_progress,
    import_progress,
    queue,
    transfer,
    undo_review,
)
from headwise.study.progress.settings import check_settings
from headwise.study.site import keys as keys_of

GUIDE = "small"
KINDS = ("reviews", "undos", "answers", "marks")


def ask_python(store, action, values, clock):
    """What the log of the server answers, in one word."""
    try:
        if action == "review":
            found = add_review(store, guide=GUIDE, clock=clock, **values)
            return "repeated" if found.repeated else "told" if found.told else "added"
        if action == "undo":
            return "repeated" if undo_review(store, clock=clock, **values).repeated else "added"
        if action == "mark":
            return "added" if add_mark(store, guide=GUIDE, clock=clock, **values) else "repeated"
        more = {"version": "current", "correct": False, "score": 0.0}
        return "added" if add_answer(store, guide=GUIDE, clock=clock, **more, **values) else "repeated"
    except ProgressError as error:
        return error.name


LOCAL = """async ([action, values]) => {
  const { local } = await import("/local.js");
  const cards = [{ id: "card-one", rev: 1 }, { id: "card-two", rev: 1 }];
  const marks = () => Object.keys(localStorage).filter((key) => key.includes("/marks/")).length;
  const before = marks();
  try {
    const found = await local[action]({ ...values, deck: "deck", cards });
    if (action === "mark") return marks() > before ? "added" : "repeated";
    return found.repeated ? "repeated" : found.told ? "told" : "added";
  } catch (error) {
    return error.name;
  }
}"""


def at(page, instant):
    page.clock.set_fixed_time(days.utc(instant))


@contextmanager
def static_page(chromium, kept_guide):
    """A page of the small guide as a static host gives it, without the page."""
    keys = json.loads(json.dumps(keys_of(kept_guide, StoredMaths.of(kept_guide.folder))))
    with modules(chromium) as page:
        page.route("**/answers.json", lambda route: route.fulfill(json=keys))
        page.evaluate("(guide) => { document.documentElement.dataset.guide = guide; }", GUIDE)
        at(page, NOON)
        yield page


def forget(page):
    """Storage as a browser has it that was never here."""
    page.evaluate(
        "() => { localStorage.clear(); dispatchEvent(new StorageEvent('storage', { key: null })); }"
    )


@pytest.mark.parametrize("case", CASES)
def test_the_server_answers_so(store, case):
    found = [ask_python(store, *asked, int(NOON + when * MINUTE)) for asked, when, _ in CASES[case]]
    assert found == [wanted for _, _, wanted in CASES[case]]


def test_the_browser_answers_the_same(chromium, kept_guide):
    with static_page(chromium, kept_guide) as page:
        for case, asked in CASES.items():
            forget(page)
            found = []
            for call, when, _ in asked:
                at(page, int(NOON + when * MINUTE))
                found.append(page.evaluate(LOCAL, list(call)))
            assert found == [wanted for _, _, wanted in asked], case


COUNTED = """async () => {
  const { local } = await import("/local.js");
  const cards = Array.from({ length: 40 }, (_, number) => ({ id: `card-${number}`, rev: 1 }));
  for (let number = 0; number < 40; number += 1) {
    const id = `entry-${String(number).padStart(6, "0")}`;
    const at = new Date(Date.now() - 9e7 + number).toISOString();
    localStorage.setItem(`headwise-study/reviews/${id}`, JSON.stringify(
      { id, guide: "small", card: `card-${number}`, rev: 1, rating: 3, at, clock: at, duration: null }));
  }
  const counts = { getItem: 0, setItem: 0, removeItem: 0, persist: 0 };
  for (const name of ["getItem", "setItem", "removeItem"]) {
    const real = Storage.prototype[name];
    Storage.prototype[name] = function (...given) { counts[name] += 1; return real.apply(this, given); };
  }
  navigator.storage.persist = async () => { counts.persist += 1; return true; };
  const phase = async (act) => { const before = { ...counts }; await act(); return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, count - before[name]])); };
  const rate = (number) => local.review({ id: `mine-${number}-0000`, card: `card-${number}`, rev: 1, rating: 3, expects: `entry-${String(number).padStart(6, "0")}`, deck: "deck", cards });
  return {
    first: await phase(() => local.progress()),
    again: await phase(async () => { await local.progress(); await local.queue("deck", cards); local.keeps(); }),
    rating: await phase(() => rate(7)),
    second: await phase(() => rate(8)),
  };
}"""


def test_reading_writes_nothing_and_a_rating_does_not_read_the_log_anew(chromium, kept_guide):
    with static_page(chromium, kept_guide) as page:
        found = page.evaluate(COUNTED)
    assert (found["first"]["setItem"], found["first"]["removeItem"]) == (1, 1)  # whether there is any storage
    assert found["first"]["getItem"] >= 40
    assert (found["again"]["setItem"], found["again"]["removeItem"]) == (0, 0)
    assert found["again"]["getItem"] < 10
    for rating in ("rating", "second"):
        assert found[rating]["setItem"] == 1
        assert found[rating]["getItem"] < 20  # of 40 entries
    assert [found[name]["persist"] for name in ("first", "again", "rating", "second")] == [0, 0, 1, 0]


def test_another_tab_is_seen_at_once(chromium, kept_guide):
    with static_page(chromium, kept_guide) as page:
        tab = page.context.new_page()
        tab.goto(page.url)
        tab.evaluate("(guide) => { document.documentElement.dataset.guide = guide; }", GUIDE)
        review = CASES["a review twice"][0][0]
        assert (
            tab.evaluate(LOCAL, ["mark", {"id": "mark-00001", "activity": "first", "done": True}]) == "added"
        )
        assert page.evaluate(LOCAL, list(review)) == "added"
        later = ["review", {**review[1], "id": "entry-other"}]
        assert tab.evaluate(LOCAL, later) == "conflict"
        assert tab.evaluate(LOCAL, list(review)) == "repeated"
        page.evaluate("async () => (await import('/local.js')).local.erased()")
        assert tab.evaluate(LOCAL, later) == "added"


EXPORTED = "async () => (await import('/local.js')).local.exported()"
IMPORTED = """async (text) => {
  try { return (await (await import('/local.js')).local.imported(text)).added; } catch (error) { return `${error.name}: ${error.message}`; }
}"""
QUEUE = """async () => {
  const { local } = await import('/local.js');
  const cards = ["card-one", "card-two", "card-new"].map((id) => ({ id, rev: 1 }));
  const { told, ...found } = await local.queue("deck", cards);
  return [found, Boolean(told)];
}"""


def live(draw, length):
    """Calls whose ids are in order, at clocks that jump."""
    heads = {"card-one": [], "card-two": []}
    for number in range(length):
        clock = draw.choice(
            (-5 * DAY, NOON - 400 * DAY, NOON, NOON + 3 * DAY, NOON + 4000 * DAY, 253_402_300_799_999)
        )
        clock += draw.randrange(10) * MINUTE
        id, card = f"entry-{number:04d}", draw.choice(list(heads))
        what = draw.choice(("review", "review", "review", "undo", "mark", "answer"))
        if what == "undo" and heads[card]:
            yield ("undo", {"id": id, "undoes": heads[card].pop()}), clock
        elif what in ("review", "undo"):
            expects = heads[card][-1] if heads[card] else None
            heads[card].append(id)
            yield (
                (
                    "review",
                    {"id": id, "card": card, "rev": 1, "rating": draw.randint(1, 4), "expects": expects},
                ),
                clock,
            )
        elif what == "mark":
            yield ("mark", {"id": id, "activity": "first", "done": bool(number % 2)}), clock
        else:
            yield (
                ("answer", {"id": id, "question": "how-many", "rev": 1, "given": "12", "seed": number}),
                clock,
            )


def entries(made):
    return {kind: sorted(made[kind], key=lambda entry: entry["id"]) for kind in KINDS}


def test_whatever_was_exported_can_be_imported_here_and_there(chromium, kept_guide, tmp_path):
    draw = random.Random(7)
    with static_page(chromium, kept_guide) as page:
        for round in range(12):
            forget(page)
            mine, other = (
                Store(tmp_path / f"mine-{round}.sqlite3"),
                Store(tmp_path / f"other-{round}.sqlite3"),
            )
            for call, clock in live(draw, 12):
                at(page, clock)
                page.evaluate(LOCAL, list(call))
                ask_python(mine, *call, clock)
            clock = draw.choice((NOON - 1000 * DAY, NOON, NOON + 9 * DAY))
            at(page, clock)
            text = page.evaluate(EXPORTED)
            count = sum(len(json.loads(text)[kind]) for kind in KINDS)
            assert page.evaluate(IMPORTED, text)["known"] == count > 0
            assert json.loads(page.evaluate(EXPORTED)) == json.loads(text)
            added = import_progress(other, json.loads(text), clock=clock)
            assert entries(export_progress(other, clock=clock)) == entries(json.loads(text))
            forget(page)
            assert page.evaluate(IMPORTED, text) == added
            here = queue(other, GUIDE, deck("card-one", "card-two", "card-new"), clock=clock, zone=UTC)
            wanted = here.to_dict()
            told = wanted.pop("told")
            assert page.evaluate(QUEUE) == [wanted, bool(told)]
            forget(page)
            made = export_progress(mine, clock=clock)
            assert isinstance(page.evaluate(IMPORTED, json.dumps(made)), dict)
            assert entries(json.loads(page.evaluate(EXPORTED))) == entries(made)
            mine.close()
            other.close()


def test_what_cannot_be_read_spoils_no_export(chromium, kept_guide, tmp_path):
    with static_page(chromium, kept_guide) as page:
        page.evaluate(LOCAL, list(CASES["an undo twice"][0][0]))
        page.evaluate(LOCAL, list(CASES["an undo twice"][1][0]))
        page.evaluate("""() => {
          localStorage.setItem("headwise-study/marks/mark-00001", "{");
          localStorage.setItem("headwise-study/marks/mark-00002", '{"id": "mark-00002", "at": "2026-11-30T12:00:00.000Z"}');
          localStorage.setItem("headwise-study/reviews/entry-aaaa", "null");
          dispatchEvent(new StorageEvent("storage", { key: null }));
        }""")
        made = json.loads(page.evaluate(EXPORTED))
    assert [len(made[kind]) for kind in KINDS] == [0, 0, 0, 0]
    store = Store(tmp_path / "p.sqlite3")
    import_progress(store, made, clock=NOON)
    store.close()


def test_an_import_that_was_broken_off_is_as_if_it_had_never_begun(chromium, kept_guide):
    mark = CASES["a mark twice"][0][0]
    with static_page(chromium, kept_guide) as page:
        page.evaluate(LOCAL, list(mark))
        text = page.evaluate(EXPORTED)
        made = json.loads(text)
        made["marks"] += [{**made["marks"][0], "id": f"other-{number:04d}"} for number in range(5)]
        made["settings"]["new_per_day"] = 3
        page.evaluate(
            """(after) => {
          const real = Storage.prototype.setItem;
          let left = after;
          window.heal = () => { Storage.prototype.setItem = real; };
          Storage.prototype.setItem = function (...given) {
            if (given[0].includes("/marks/") && (left -= 1) < 0) throw new Error("the tab is gone");
            return real.apply(this, given);
          };
        }""",
            3,
        )
        told = page.evaluate(IMPORTED, json.dumps(made))
        assert told.startswith("not-saved")
        assert json.loads(page.evaluate(EXPORTED)) == json.loads(text)
        page.evaluate("heal()")
        # A tab that is gone in the middle leaves this behind.
        page.evaluate("""() => {
          localStorage.setItem("headwise-study/importing", JSON.stringify([["headwise-study/marks/other-0000", null], ["headwise-study/settings", null]]));
          localStorage.setItem("headwise-study/marks/other-0000", localStorage.getItem("headwise-study/marks/entry-aaaa").replace("entry-aaaa", "other-0000"));
          localStorage.setItem("headwise-study/settings", '{"new_per_day": 3}');
        }""")
        assert len(json.loads(page.evaluate(EXPORTED))["marks"]) == 1
        page.evaluate(LOCAL, ["mark", {"id": "entry-later", "activity": "second", "done": True}])
        found = json.loads(page.evaluate(EXPORTED))
        assert [entry["id"] for entry in found["marks"]] == ["entry-aaaa", "entry-later"]
        assert found["settings"]["new_per_day"] == 10
        assert page.evaluate("localStorage.getItem('headwise-study/importing')") is None
        assert page.evaluate(IMPORTED, json.dumps(made))["marks"] == 5


ID = ["entry-01", "x" * 64, "x" * 65, "short", "entry 01", "é" * 8, "entry-01\n", 12345678, None]
SLUG = ["a", "a.b_c-d", "x" * 128, "x" * 129, "", "-a", "a-", "a b", "é", "a\n", 5, None]
WHOLE = [
    -1,
    0,
    1,
    4,
    5,
    1_000_000,
    1_000_001,
    86_400_000,
    86_400_001,
    2**32 - 1,
    2**32,
    1.5,
    "1",
    True,
    None,
    [],
]
FLAG = [True, False, 0, 1, "true", None]
AT = [
    "1970-01-01T00:00:00.000Z",
    "9999-12-31T23:59:59.999Z",
    "1969-12-31T23:59:59.999Z",
    "2026-02-30T00:00:00.000Z",
    "2026-11-30T12:00:00Z",
    "2026-11-30T12:00:00.000",
    "2026-11-30T24:00:00.000Z",
    "",
    0,
    None,
]
VALUES = {
    **dict.fromkeys(("id", "undoes"), ID),
    **dict.fromkeys(("guide", "card", "question", "activity"), SLUG),
    **dict.fromkeys(("rev", "rating", "duration", "seed"), WHOLE),
    **dict.fromkeys(("correct", "done"), FLAG),
    **dict.fromkeys(("at", "clock"), AT),
    "score": [0, 1, 0.5, -0.1, 1.1, "1", True, None],
    "version": ["current", "1", "999999999", "0", "1234567890", "01", "", 1, None],
    "given": ["", "x" * 1000, "x" * 1001, "🙂" * 1000, "🙂" * 1001, [], ["a"] * 100, ["a"] * 101, ["🙂" * 64],
              ["x" * 65], [1], 5, None, {}],
}  # fmt: skip


def taken(check, value):
    try:
        check(value)
    except (ProgressError, ValueError):
        return False
    return True


def same(values, found, check):
    """Whether a value is taken, of each name and value: what the browser says, and what `check` does."""
    for name, list_ in found:
        assert dict(zip(map(repr, values[name]), list_, strict=True)) == {
            repr(value): taken(lambda value, name=name: check(name, value), value) for value in values[name]
        }, name


def test_an_entry_has_the_same_fields_and_values_on_both_sides(chromium):
    with modules(chromium) as page:
        columns, found = page.evaluate(
            """async (values) => {
              const { COLUMNS, check } = await import("/transfer.js");
              const taken = (name, value) => { try { check({ [name]: value }); return true; } catch { return false; } };
              return [COLUMNS, Object.entries(values).map(([name, list]) => [name, list.map((value) => taken(name, value))])];
            }""",
            VALUES,
        )
    assert {kind: tuple(names) for kind, names in columns.items()} == transfer.COLUMNS
    assert (
        set(VALUES) == set(transfer._READ) == {name for names in transfer.COLUMNS.values() for name in names}
    )
    same(VALUES, found, lambda name, value: transfer._READ[name](value))


CHOICES = {
    "day_start": [
        "00:00",
        "04:00",
        "23:59",
        "24:00",
        "4:00",
        "04:60",
        "04:00\n",
        "\u0660\u0664:00",
        "",
        4,
        None,
    ],
    "new_per_day": [-1, 0, 9999, 10000, 1.5, "1", True, None],
    "shortcuts": FLAG,
    "volume": [1],
}


def test_settings_are_the_same_on_both_sides(chromium):
    with modules(chromium) as page:
        defaults, found = page.evaluate(
            """async (values) => {
              const { SETTINGS, checkSettings } = await import("/transfer.js");
              const taken = (name, value) => { try { checkSettings({ [name]: value }); return true; } catch { return false; } };
              return [SETTINGS, Object.entries(values).map(([name, list]) => [name, list.map((value) => taken(name, value))])];
            }""",
            CHOICES,
        )
    assert defaults == Settings().to_dict()
    same(CHOICES, found, lambda name, value: check_settings({name: value}))
