"""What scripts look for in a page is there, and is written down."""

import re

import pytest

from headwise.study.site import STATIC

NAME = r"[a-z]+(?:-[a-z]+)*"
SOURCES = sorted(path for path in STATIC.rglob("*.js") if "vendor" not in path.parts)
MARKUP = sorted([*(STATIC.parent / "templates").glob("*.j2"), *(STATIC.parent / "render").glob("*.py")])


def spelt(camel):
    """progressOf as attributes have it."""
    return re.sub("[A-Z]", lambda found: "-" + found[0].lower(), camel)


def asked(text):
    """The hooks that a script looks for: in selectors and as `dataset` reads them."""
    found = set(re.findall(rf"\[data-({NAME})", text))
    return found | {spelt(name) for name in re.findall(r"dataset\.(\w+)(?!\w|\s*=[^=])", text)}


def made(text):
    """Those that a script gives to elements of its own, or to the page."""
    found = set(re.findall(rf"[\"']data-({NAME})[\"']", text))
    return found | {spelt(name) for name in re.findall(r"dataset\.(\w+)\s*=[^=]", text)}


def hooks(paths, find):
    return set().union(*(find(path.read_text(encoding="utf-8")) for path in paths))


def in_markup():
    return hooks(MARKUP, lambda text: set(re.findall(rf"\bdata-({NAME})", text)))


def test_every_hook_that_a_script_asks_for_is_there():
    wanted = hooks(SOURCES, asked)
    assert {"question", "progress-of", "search-results", "mode", "by", "newer"} <= wanted
    assert wanted - in_markup() - hooks(SOURCES, made) == set()


def test_every_hook_of_a_page_that_scripts_use_is_promised(pytestconfig):
    written = (pytestconfig.rootpath / "docs" / "study" / "hooks.md").read_text(encoding="utf-8")
    named = set(re.findall(rf"\bdata-({NAME})", written))
    used = (hooks(SOURCES, asked) & in_markup()) | {"static-only", "mode"}
    assert used - named == set()
    assert named - in_markup() - hooks(SOURCES, made) == set()  # none that is gone


@pytest.mark.parametrize(
    ("text", "looks", "gives"),
    [
        ('querySelector("[data-go-on] a")', {"go-on"}, set()),
        ("if (row.dataset.progressOf === id) x", {"progress-of"}, set()),
        ("box.dataset.theme = read()", set(), {"theme"}),
        ('make("b", { "data-undo": true })', set(), {"undo"}),
    ],
)
def test_hooks_are_found_in_scripts(text, looks, gives):
    assert (asked(text), made(text)) == (looks, gives)
