"""The templates, and how they are filled."""

from __future__ import annotations

from functools import lru_cache

import jinja2

from headwise.study.answers_text import SHAPE_EXAMPLE
from headwise.study.render.maker import attributes, spoken

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'"
)
"""What a page may load and run: files of its own site, nothing inline."""


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """The templates: whatever they show is escaped unless it was made as HTML."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("headwise.study", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals["attributes"] = attributes
    made.globals["spoken"] = spoken
    made.globals["shape_example"] = SHAPE_EXAMPLE
    made.globals["policy"] = POLICY
    return made
