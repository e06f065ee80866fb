"""How numbers are written in prose, and when two of them are the same."""

from __future__ import annotations

import pytest

from headwise.study.check.facts import agree, shows, written_digits
from headwise.study.check.numbers import telling
from headwise.study.content import Fact
from headwise.study.content.facts import written

NARROW = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (512, "512"),
        (1048576, "1,048,576"),
        (-7077888, "−7,077,888"),
        (8.0, "8.0"),
        (0.1, "0.1"),
        (-2.5, "−2.5"),
        (60611.4771, "60,611.4771"),
        (3.3e18, "3.3 × 10¹⁸"),
        (1e-09, "1 × 10⁻⁹"),
        (-1.25e-7, "−1.25 × 10⁻⁷"),
        (0.0001, "0.0001"),
        ("O(n)", "O(n)"),
    ],
)
def test_numbers_are_written_with_separators_and_powers(value: float | str, text: str) -> None:
    assert written(value) == text


def test_a_fact_is_written_with_its_unit_or_as_it_says() -> None:
    assert Fact(id="a", value=1048576, unit="parameters").text == f"1,048,576{NARROW}parameters"
    assert Fact(id="a", value=12, unit="%").text == "12%"
    assert Fact(id="a", value=512).text == "512"
    shown = Fact(id="a", value=63045632, unit="parameters", show="63.05 million parameters")
    assert (shown.text, shown.number) == ("63.05 million parameters", "63.05 million")
    assert Fact(id="a", value=2048, show="2048").number == "2048"


@pytest.mark.parametrize(
    ("value", "found", "digits", "same"),
    [
        (512, 512, None, True),
        (512, 512.0, None, True),
        (512, 513, None, False),
        (512, 513, 2, True),
        (1.377, 1.3769132, None, True),
        (1.3769, 1.3768, 5, False),
        (0.9, 25.8 - 24.9, 1, True),
        (3.3e18, 3.2832e18, None, True),
        (3.2e18, 3.2832e18, None, False),
        (0.25, 0.2449999, None, False),
        (-7.1, -7.077888, None, True),
        (7.1, -7.077888, None, False),
        (0, 0.0, None, True),
        (1, 0.0, 1, False),
        (1, float("nan"), 1, False),
        (1, float("inf"), 1, False),
    ],
)
def test_numbers_agree_to_their_digits(value: float, found: float, digits: int | None, same: bool) -> None:
    assert agree(value, found, digits) is same


@pytest.mark.parametrize(
    ("value", "digits"), [(0.1, 1), (61.25, 4), (3.3e18, 2), (8.0, 1), (0.0007, 1), (100.0, 3)]
)
def test_digits_are_those_that_are_written(value: float, digits: int) -> None:
    assert written_digits(value) == digits


@pytest.mark.parametrize(
    ("text", "value", "same"),
    [
        ("63.05 million parameters", 63045632, True),
        ("63.06 million parameters", 63045632, False),
        ("6.988 × 10⁻⁴", 0.00069877, True),
        ("6.988 × 10⁻⁵", 0.00069877, False),
        ("10⁻⁹", 1e-9, True),
        ("10⁻⁸", 1e-9, False),
        ("1/4", 0.25, True),
        ("1/3", 0.25, False),
        ("2 GiB", 2147483648, True),
        ("2 GB", 2147483648, True),
        ("2 MiB", 2147483648, False),
        ("−7.1 million", -7077888, True),
        ("7.1 million", -7077888, False),
        ("+14.7 million", 14700544, True),
        ("about 37,000", 37000, True),
        ("about 37,000 tokens", 38000, False),
        ("a third", 0.333, True),
        ("60,611 positions", 60611.477, True),
        ("2.5 billion target tokens", 2500000000, True),
    ],
)
def test_what_is_shown_of_a_number_is_that_number(text: str, value: float, same: bool) -> None:
    assert shows(text, value) is same


@pytest.mark.parametrize(
    ("value", "cited", "tells"),
    [
        (512, True, True),
        (256, False, False),
        (64, True, False),
        (300, True, False),
        (37000, True, True),
        (28.4, True, True),
        (0.1, True, False),
        (2017, False, True),
    ],
)
def test_numbers_that_say_what_they_are(value: float, cited: bool, tells: bool) -> None:
    assert telling(value, cited=cited) is tells
