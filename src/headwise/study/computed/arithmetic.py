"""Plain arithmetic, for figures that follow from others."""

from __future__ import annotations

import math

Number = int | float


def total(a: Number, b: Number) -> Number:
    """a + b"""
    return a + b


def difference(a: Number, b: Number) -> Number:
    """a - b"""
    return a - b


def product(a: Number, b: Number) -> Number:
    """a * b"""
    return a * b


def ratio(a: Number, b: Number) -> float:
    """a / b"""
    return a / b


def percent(a: Number, b: Number) -> float:
    """a as a share of b, in percent"""
    return 100 * a / b


def power(base: Number, exponent: Number) -> Number:
    """base ^ exponent"""
    return base**exponent


def square_root(x: Number) -> float:
    """The square root of x."""
    return math.sqrt(x)


def logarithm(x: Number, base: Number = math.e) -> float:
    """The logarithm of x, natural where no base is given."""
    return math.log(x) if base == math.e else math.log(x, base)


def exponential(x: Number) -> float:
    """e ^ x: the perplexity of a loss of x nats."""
    return math.exp(x)
