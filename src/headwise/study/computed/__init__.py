"""The numbers that guides compute: what a guide's facts.toml may name.

The functions take plain numbers and names and give a plain number. What the library can count, it counts:
models are really built (without memory for their weights), rates come from the schedule that training uses.
"""

from headwise.study.computed.registry import compute, functions

__all__ = ["compute", "functions"]
