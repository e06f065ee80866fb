"""Entries of the log and settings have the same fields and values in Python and in the browser."""

# ruff: noqa: E501 - scripts of the browser

from browser_modules import modules

from headwise.study.progress import (
    ProgressError,
    Settings,
    transfer,
)
from headwise.study.progress.settings import check_settings

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
