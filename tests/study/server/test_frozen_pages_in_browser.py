"""Pages as they were frozen one day work with the scripts, the server and the storage of today."""

import json
import re

import pytest
from frozen_pages import PAGES, saved
from served import Served
from small_guide import FIRST, small_guide, write_guide

from headwise.study import versions
from headwise.study.content import load_guide
from headwise.study.progress import Store
from headwise.study.render.pages import Version
from headwise.study.site import STATIC, build_site

LOADED = re.compile(r'(?:src|href)="([^"]*/static/[^"]*)"')


@pytest.fixture(scope="session")
def frozen_guide(tmp_path_factory):
    """The small guide with the saved version; its current text is another."""
    folder = tmp_path_factory.mktemp("frozen") / "small"
    guide = small_guide(folder)
    versions.publish(guide, saved(), Version(1, "2026-11-30T00:00:00Z", "The first"))
    write_guide(folder, first=FIRST.replace("Four linears", "Four projections"))
    return load_guide(folder)


@pytest.fixture(params=["server", "static"])
def frozen(request, frozen_guide, tmp_path, learner, static_host):
    """A learner at the guide's front page."""
    if request.param == "static":
        build_site(frozen_guide, tmp_path / "host" / "project")
        yield learner(f"{static_host(tmp_path / 'host')}/project")
        return
    server = Served(frozen_guide.folder, tmp_path, store=Store(tmp_path / "progress.sqlite3"))
    yield learner(f"{server.address}/g/small")
    server.close()


@pytest.fixture
def loaded(frozen):
    """The addresses of style sheets and scripts that pages got."""
    found = []
    frozen.page.on("response", lambda answer: found.append(answer.url) if "/static/" in answer.url else None)
    return found


@pytest.mark.browser
def test_a_version_in_saved_markup_works_with_the_scripts_of_today(frozen, loaded):
    page = frozen.open("v/1/first/")
    page.get_by_text("This is the newest version").wait_for()
    assert page.locator("h2", has_text="Four linears").count() == 1
    page.locator("section[data-visual]").scroll_into_view_if_needed()
    page.wait_for_selector("section[data-visual][data-live=yes] figure svg, [data-live=yes] figure table")
    check = page.locator("form[data-question=how-wide]")
    check.get_by_label("64", exact=True).check()
    check.get_by_role("button", name="Check").click()
    check.locator(".feedback-right").wait_for()
    assert "SECRETEXPLAIN" in check.locator(".feedback").inner_text()
    page.get_by_role("button", name="Mark as read").click()
    page.get_by_role("button", name="Marked as read").wait_for()

    page = frozen.open("v/1/first-quiz/")
    page.get_by_text("1 of 6 questions answered, 1 right.").wait_for()
    number = page.locator("form[data-question=how-many]")
    number.get_by_role("textbox").fill("86,753")
    number.get_by_role("button", name="Check").click()
    number.locator(".feedback-right").wait_for()
    page.locator("form[data-question=what-order]").get_by_role("button", name="Move up").first.wait_for()
    note = page.locator("[data-static-only]")
    assert note.is_visible() == (page.evaluate("document.documentElement.dataset.mode") == "static")

    page = frozen.open("v/1/deck/")
    page.locator("[data-review] button:enabled").first.wait_for()
    page.keyboard.press("Space")
    page.locator("[data-review]").get_by_text("What is").wait_for()
    page.keyboard.press("Space")
    page.locator("[data-review]").get_by_text("The width of a head.").wait_for()
    page.get_by_role("button", name="Good").click()
    page.get_by_role("button", name="Undo the last rating").wait_for()

    page = frozen.open("v/1/search/?q=linears")
    page.locator("[data-search-results] a", has_text="Four linears").click()
    page.wait_for_url("**/v/1/first/#ours")

    for front in ("v/1/", ""):  # what was done in a version is done in the guide
        page = frozen.open(front)
        assert page.locator("[data-progress-of=first] [data-progress]").inner_text() == "read"
        page.get_by_text("2 of 6 answered, 2 right").wait_for()
    assert len(loaded) > 20
    assert not [url for url in loaded if "/v/" in url]


def test_what_saved_pages_load_is_there_and_promised(pytestconfig):
    promise = (pytestconfig.rootpath / "docs" / "study" / "hooks.md").read_text(encoding="utf-8")
    found = {
        link.partition("/static/")[2]
        for page in PAGES
        for link in LOADED.findall(saved()[f"{page}index.html"].decode())
    }
    assert {"mode.js", "guide.css", "quiz.js", "cards.js", "search.js", "visuals/start.js"} <= found
    for name in sorted(found):
        assert (STATIC / name).is_file(), name
        assert f"`{name}`" in promise, name


def test_a_version_holds_what_the_guide_says_and_no_script_or_style(frozen_guide, tmp_path):
    build_site(frozen_guide, tmp_path / "site")
    assert not (tmp_path / "site" / "v" / "1" / "static").exists()
    published = versions.manifest(frozen_guide.folder, 1)
    assert set(published.files) == set(saved())
    assert "data-mode" not in "".join(text.decode() for text in saved().values())
    assert json.loads((tmp_path / "site" / "versions.json").read_text())["current"] == 1
