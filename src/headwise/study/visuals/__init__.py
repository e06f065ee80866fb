"""The live visuals of the guides: for each, the numbers it shows, computed by the library."""

from headwise.study.visuals.base import NAMES, Table, VisualData, load, make

__all__ = ["NAMES", "Table", "VisualData", "load", "make"]
