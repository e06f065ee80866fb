"""The site of the guide that headwise carries: every page, in both themes, from 320 px up."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from static_host import Host, Visit, until

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
def paths(built):
    found = sorted(path.parent.relative_to(built).as_posix() for path in built.glob("*/index.html"))
    return ["", *(f"{path}/" for path in found)]


def test_two_builds_give_the_same_bytes(guide, built):
    again = render_site(guide, "static")
    for name, content in again.items():
        assert (built / name).read_bytes() == content, name


def test_axe_finds_nothing_and_nothing_goes_wrong(visit, paths):
    found = []
    for path in paths:
        page = visit.open(path)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.wait_for_timeout(100)
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            until(page, "(theme) => document.documentElement.dataset.theme === theme", arg=theme)
            for violation in Axe().run(page).response["violations"]:
                found += [
                    f"{path} {theme} {violation['id']} {node['target']}" for node in violation["nodes"][:3]
                ]
        page.emulate_media(color_scheme="light")
    assert not found, "\n".join(found)
    assert not visit.problems, "\n".join(visit.problems)


def test_no_page_scrolls_sideways(visit, paths):
    found = []
    for path in paths:
        page = visit.open(path)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        for width in (320, 390, 768, 1000, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 800})
            over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            if over > 0:
                found.append(f"{path}: {over} px over {width}")
    assert not found, "\n".join(found)


def test_a_lesson_is_light(visit, guide):
    sizes = {}
    for activity in guide.activities.values():
        if isinstance(activity, Lesson):
            page = visit.open(f"{activity.id}/")
            sizes[activity.id] = page.evaluate(
                "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
                ".filter((one) => !one.name.endsWith('.woff2'))"
                ".reduce((sum, one) => sum + one.decodedBodySize, 0)"
            )
    assert {name: size for name, size in sizes.items() if size > MOST} == {}


def test_every_formula_is_in_the_accessibility_tree(visit, guide):
    for activity in guide.activities.values():
        if isinstance(activity, Lesson):
            page = visit.open(f"{activity.id}/")
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            shown = page.locator("math").count()
            assert page.get_by_role("math").count() == shown, activity.id
            for place in range(page.locator(".equation").count()):
                box = page.locator(".equation .scroll").nth(place)
                assert len(box.get_attribute("aria-label")) > len("Formula: ") + 5
