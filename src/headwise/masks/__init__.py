"""Who may attend to whom. True means may attend; compose with `&`, `|` and `~`."""

from headwise.masks.allow import Allow
from headwise.masks.base import And, Mask, Not, Or, Tile, all_of
from headwise.masks.documents import Documents
from headwise.masks.draw import draw
from headwise.masks.frame import Align, Frame, Index
from headwise.masks.lengths import KeyLengths, Prefix
from headwise.masks.positional import Causal, ValidKeys
from headwise.masks.proof import check_mask
from headwise.masks.svg import draw_svg
from headwise.masks.window import Window

__all__ = [
    "Align",
    "Allow",
    "And",
    "Causal",
    "Documents",
    "Frame",
    "Index",
    "KeyLengths",
    "Mask",
    "Not",
    "Or",
    "Prefix",
    "Tile",
    "ValidKeys",
    "Window",
    "all_of",
    "check_mask",
    "draw",
    "draw_svg",
]
