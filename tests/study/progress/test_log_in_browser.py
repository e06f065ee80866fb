"""The log in the browser: it answers as the server's does, reads storage without writing to it, and takes whatever
was exported anywhere."""
# ruff: noqa: E501 - scripts of the browser

import json
import random
from datetime import UTC

import pytest
from logbook import DAY, NOON, deck
from same_answers import CASES, MINUTE
from static_log import GUIDE, at, static_page

from headwise.study.progress import (
    ProgressError,
    Store,
    add_answer,
    add_mark,
    add_review,
    export_progress,
    import_progress,
    queue,
    undo_review,
)

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
