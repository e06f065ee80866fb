"""A page of the small guide as a static host gives it, and its clock."""

import json
from contextlib import contextmanager

from browser_modules import modules
from logbook import NOON

from headwise.study.maths import StoredMaths
from headwise.study.progress import (
    days,
)
from headwise.study.site import keys as keys_of

GUIDE = "small"


def at(page, instant):
    page.clock.set_fixed_time(days.utc(instant))


@contextmanager
def static_page(chromium, kept_guide):
    """A page of the small guide as a static host gives it, without the page."""
    keys = json.loads(json.dumps(keys_of(kept_guide, StoredMaths.of(kept_guide.folder))))
    with modules(chromium) as page:
        page.route("**/answers.json", lambda route: route.fulfill(json=keys))
        page.evaluate("(guide) => { document.documentElement.dataset.guide = guide; }", GUIDE)
        at(page, NOON)
        yield page
