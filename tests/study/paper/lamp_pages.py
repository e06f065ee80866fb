"""One small paper as two generations of converters write it, and a page without a paper.

The earlier generation numbers the text of a paragraph by its formulas (p1.2), the later one plainly (p1.1);
each names tables, groups of formulas and the abstract in its own way.
"""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parent / "data"
EARLIER, LATER, NO_HTML = (
    (DATA / f"{name}.html").read_text(encoding="utf-8") for name in ("earlier", "later", "no_html")
)
