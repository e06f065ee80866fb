"""Papers in LaTeXML's HTML: the places they have, a guide begun from them, a guide held against them."""

from headwise.study.paper.new import new_guide
from headwise.study.paper.page import Page, Passage, read_page
from headwise.study.paper.verify import Comparison, compare, record

__all__ = ["Comparison", "Page", "Passage", "compare", "new_guide", "read_page", "record"]
