"""Erasing progress in the browser: asked again, exported first, gone; by the server and the static site."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from learning_steps import bring_in, form, learn_a_little, review_text, waits_for
from outbox import a_review, put, waiting

pytestmark = pytest.mark.browser


def ask(here):
    page = here.open("progress/")
    page.get_by_role("button", name="Erase progress").click()
    asked = page.get_by_role("group", name="Erase progress?")
    asked.wait_for()
    return page, asked


def test_progress_is_erased_after_a_question_that_names_it(study, tmp_path):
    here = study()
    learn_a_little(here)
    page = here.open("first-quiz/")
    form(page, "what-name").get_by_role("textbox").fill("half an ans")
    page, asked = ask(here)
    assert asked.evaluate("(one) => document.activeElement === one")
    assert "1 review, 1 answer and 1 mark" in asked.inner_text()
    assert "Settings stay" in asked.inner_text()
    page.wait_for_timeout(300)
    assert Axe().run(page).response["violations"] == []
    asked.get_by_role("button", name="Keep everything").click()
    assert asked.count() == 0
    page, asked = ask(here)
    assert "read" in page.locator("[data-progress-of=first] [data-progress]").inner_text()
    with page.expect_download() as download:
        asked.get_by_role("button", name="Export first").click()
    download.value.save_as(tmp_path / "kept.json")
    made = json.loads((tmp_path / "kept.json").read_text())
    asked.get_by_role("button", name="Erase for good").click()
    page.get_by_text("Erased: 1 review, 1 answer and 1 mark.").wait_for()
    page.wait_for_function("() => document.querySelector('[data-due]').innerText.includes('2 new cards')")
    assert page.locator("[data-progress-of=first] [data-progress]").inner_text() == ""
    assert here.open("").locator("[data-go-on]").inner_text() == "Start with “First steps”"
    page = here.open("first-quiz/")
    assert form(page, "what-name").get_by_role("textbox").input_value() == ""  # drafts go too
    page = here.open("deck/")
    waits_for(page, "2 new cards.")
    assert "today" not in review_text(page)
    assert "added 1 review" in bring_in(here, tmp_path / "kept.json").lower()
    assert len(made["reviews"]) == 1


def test_the_question_fits_a_phone(study):
    here = study(viewport={"width": 320, "height": 640}, color_scheme="dark")
    page, _ = ask(here)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_what_waited_to_be_sent_does_not_come_back(server, learner):
    here = learner(f"{server.address}/g/small")
    page = here.open("progress/")
    put(page, "review-0001", "/reviews", server.api.clock(), **a_review(guide="another"))
    text = page.evaluate("localStorage.getItem('headwise-study-outbox/review-0001')")
    other = text.replace('"default"', '"eve"')
    page.evaluate("(text) => localStorage.setItem('headwise-study-outbox/review-0002', text)", other)
    page, asked = ask(here)
    asked.get_by_role("button", name="Erase for good").click()
    page.get_by_text("Erased: 0 reviews, 0 answers and 0 marks.").wait_for()
    assert waiting(page) == ["headwise-study-outbox/review-0002"]  # another profile's


def test_two_static_sites_of_one_address_share_progress_and_settings_stay(learner, exported):
    here = learner(exported)
    page = here.open("progress/")
    page.get_by_label("New cards a day").fill("1")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.").wait_for()
    page.evaluate("localStorage.setItem('another-program', 'stays')")
    page.evaluate("localStorage.setItem('headwise-study/marks/mark-00001', 'unreadable')")
    page, asked = ask(here)
    asked.get_by_role("button", name="Erase for good").click()
    page.get_by_text("Erased:").wait_for()
    assert page.evaluate("Object.keys(localStorage).sort()") == ["another-program", "headwise-study/settings"]
