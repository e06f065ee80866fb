"""The learner's day begins at 4:00 by the clock on the wall, in every zone and through every change of it."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logbook import DAY, HOUR, deck, due, review

from headwise.study.progress import Refused
from headwise.study.progress import days as d
from headwise.study.progress.settings import change_settings

ZONES = [ZoneInfo(name) for name in ("Europe/Berlin", "America/New_York", "Asia/Kolkata")]
zones = st.sampled_from([*ZONES, ZoneInfo("Pacific/Apia"), ZoneInfo("Australia/Lord_Howe"), UTC])
instants = st.integers(
    d.instant(datetime(2011, 1, 1, tzinfo=UTC)), d.instant(datetime(2030, 1, 1, tzinfo=UTC))
)
starts = st.builds("{:02d}:{:02d}".format, st.integers(0, 23), st.integers(0, 59))


def at(text, zone):
    return d.instant(datetime.fromisoformat(text).replace(tzinfo=zone))


@pytest.mark.parametrize("zone", ZONES, ids=str)
def test_an_evening_past_midnight_is_one_day(zone):
    evening, night, morning = (
        at(text, zone) for text in ("2026-11-30 23:59", "2026-12-01 03:59", "2026-12-01 04:00")
    )
    assert d.day_of(evening, zone=zone) == d.day_of(night, zone=zone) == date(2026, 11, 30)
    assert d.day_of(morning, zone=zone) == date(2026, 12, 1)
    assert d.end_of_day(evening, zone=zone) == morning


@pytest.mark.parametrize(
    ("text", "hours"), [("2026-03-28 12:00", 23), ("2026-10-24 12:00", 25), ("2026-06-01 12:00", 24)]
)
def test_a_day_has_as_many_hours_as_the_clock_gives_it(text, hours):
    zone = ZoneInfo("Europe/Berlin")  # the clock is changed in the night after
    day = d.day_of(at(text, zone), zone=zone)
    assert d.starts(day + timedelta(days=1), zone=zone) - d.starts(day, zone=zone) == hours * HOUR


@given(instants, starts, zones)
def test_every_instant_lies_within_its_day(instant, start, zone):
    day = d.day_of(instant, start, zone)
    begins, ends = d.starts(day, start, zone), d.end_of_day(instant, start, zone)
    assert begins <= instant < ends <= begins + 3 * DAY  # three where a zone leaves out a whole day


# A clock that shows the same hour twice: in the second, the day has begun already.
@pytest.mark.parametrize("start", ["02:00", "02:30", "02:59"])
def test_a_day_begins_once_in_the_night_when_the_clock_goes_back(start):
    zone = ZoneInfo("Europe/Berlin")
    instant, seen = at("2026-10-25 00:00", zone), []
    for _ in range(6 * 60):
        day = d.day_of(instant, start, zone)
        assert d.starts(day, start, zone) <= instant < d.end_of_day(instant, start, zone)
        seen.append(day)
        instant += 60_000
    assert seen == sorted(seen)
    assert set(seen) == {date(2026, 10, 24), date(2026, 10, 25)}


@given(instants)
def test_instants_are_written_and_read_exactly(instant):
    assert d.read(d.written(instant)) == instant
    assert d.instant(d.utc(instant)) == instant


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30T12:00:00Z",
        "2026-11-30",
        "",
        5,
        None,
        "1969-12-31T23:59:59.999Z",
        "2026-13-30T12:00:00.000Z",
    ],
)
def test_other_texts_are_no_instants(text):
    with pytest.raises(ValueError):  # noqa: PT011  # fromisoformat's own words for a thirteenth month
        d.read(text)


@pytest.mark.parametrize("start", ["24:00", "4:00", "04:60", "", "noon", "04:00:00", "٠٤:00", "04:٠٠"])
def test_a_day_start_is_a_time(start):
    with pytest.raises(Refused, match="write hours and minutes"):
        d.minutes(start)


# open-spaced-repetition/py-fsrs#23, #31
@pytest.mark.parametrize("zone", ZONES, ids=str)
def test_the_same_instants_give_the_same_due_instants_in_every_zone(store, zone):
    night = d.instant(datetime(2026, 3, 28, 23, 0, tzinfo=UTC))  # around midnight, summer time begins
    dues = []
    for card, offset in (("late", -60_000), ("early", 60_000)):
        state = review(store, card, 4, night + offset).state
        dues.append(state.due - (night + offset))
    assert dues[0] == dues[1] == 8 * DAY
    assert due(store, deck("late", "early"), night + 8 * DAY + HOUR, zone) == ["late", "early"]


# st3v3nmw/obsidian-spaced-repetition#1423
def test_the_day_start_decides_what_is_due(store):
    zone = ZoneInfo("Europe/Berlin")
    easy = at("2026-11-22 01:00", zone)
    state = review(store, "owl", 4, easy).state
    assert state.due == at("2026-11-30 01:00", zone)
    evening = at("2026-11-29 22:00", zone)
    assert due(store, deck("owl"), evening, zone) == ["owl"]  # 1:00 still belongs to that evening
    change_settings(store, {"day_start": "00:30"}, clock=evening)
    assert due(store, deck("owl"), evening, zone) == []
    assert due(store, deck("owl"), at("2026-11-30 00:30", zone), zone) == ["owl"]
