"""The site of the guide that headwise carries: every page, in both themes, from 320 px up."""

import pytest
from page_checks import survey, unfold
from static_host import Host, Visit

from headwise.study.content import Lesson, load_guide
from headwise.study.site import STATIC, build_site, render_site

FOLDER = STATIC.parents[3] / "guides" / "attention-is-all-you-need"
MOST = 300_000
"""Bytes of a lesson's page with all it loads, fonts left out."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the guide lies beside a source checkout only"),
]


@pytest.fixture(scope="module")
def guide():
    return load_guide(FOLDER)


@pytest.fixture(scope="module")
def built(guide, tmp_path_factory):
    out = tmp_path_factory.mktemp("paper") / "site"
    build_site(guide, out)
    return out


@pytest.fixture(scope="module")
def visit(chromium, built):
    host = Host(built)
    one = Visit(chromium, host.address)
    yield one
    one.close()
    host.close()


@pytest.fixture(scope="module")
def seen(visit, built):
    """All pages, each visited once."""
    found = sorted(path.parent.relative_to(built).as_posix() for path in built.glob("*/index.html"))
    return survey(visit, ["", *(f"{path}/" for path in found)])


def test_two_builds_give_the_same_bytes(guide, built):
    again = render_site(guide, "static")
    for name, content in again.items():
        assert (built / name).read_bytes() == content, name


def test_axe_finds_nothing_and_nothing_goes_wrong(visit, seen):
    assert seen.violations == []
    assert visit.problems == []


def test_no_page_scrolls_sideways(seen):
    assert seen.sideways == []


BYTES = """[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .filter((one) => !one.name.endsWith('.woff2')).reduce((sum, one) => sum + one.decodedBodySize, 0)"""


def test_a_lesson_is_light(chromium, visit, guide):
    sizes = {}
    for activity in guide.activities.values():
        if isinstance(activity, Lesson):
            first = Visit(chromium, visit.address)  # with an empty cache: what is in it counts for nothing
            sizes[activity.id] = first.open(f"{activity.id}/").evaluate(BYTES)
            first.close()
    assert min(sizes.values()) > MOST / 3  # scripts and style sheets were counted
    assert {name: size for name, size in sizes.items() if size > MOST} == {}


def test_every_formula_is_in_the_accessibility_tree(visit, guide):
    for activity in guide.activities.values():
        if isinstance(activity, Lesson):
            page = visit.open(f"{activity.id}/")
            unfold(page)
            shown = page.locator("math").count()
            assert page.get_by_role("math").count() == shown, activity.id
            names = page.locator(".equation .scroll").evaluate_all(
                "(boxes) => boxes.map((box) => box.getAttribute('aria-label'))"
            )
            assert all(len(name) > len("Formula: ") + 5 for name in names), activity.id
