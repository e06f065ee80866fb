"""What is wrong with somebody's data."""

from __future__ import annotations


class DataError(ValueError):
    """Data that can't be used, in one line: which file, which line, the rule, and what to do."""
