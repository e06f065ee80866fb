"""Pages that are older than the guide: what is kept is what the learner saw."""

from datetime import UTC, datetime

import pytest
from learning_steps import review_text, waits_for
from served import Served
from small_guide import DECK, small_guide, store_formulas, write_guide

from headwise.study.publishing import publish_guide

pytestmark = pytest.mark.browser

CHANGED = DECK.replace('id = "card-one"', 'id = "card-one"\nrev = 2').replace("The width", "The new width")


def change(folder):
    write_guide(folder, deck=CHANGED)
    store_formulas(folder)


@pytest.fixture
def old_and_new(tmp_path):
    """A server of a guide whose first card has another answer than in its published version 1."""
    folder = tmp_path / "small"
    publish_guide(small_guide(folder), "The first", datetime(2026, 11, 30, tzinfo=UTC))
    change(folder)
    server = Served(folder, tmp_path)
    yield server
    server.close()


def told(page, text):
    page.wait_for_function(
        "(text) => document.querySelector('[data-told]').innerText.includes(text)", arg=text
    )


def reviewed(server):
    return [(one["card"], one["rev"]) for one in server.get("/api/export")[2]["reviews"]]


def test_a_card_of_an_old_version_is_asked_only_where_its_answer_is_still_the_same(learner, old_and_new):
    here = learner(f"{old_and_new.address}/g/small")
    page = here.open("v/1/deck/")
    waits_for(page, "1 new card.")
    told(page, "1 card that is due is newer than this version, and reviewed in the current guide.")
    page.get_by_role("button", name="Review 1 card").click()
    assert "Scores are divided by" in page.locator(".review-front").inner_text()
    page.keyboard.press("Space")
    page.keyboard.press("4")
    waits_for(page, "No card of this page is due now. 1 review today.")
    assert reviewed(old_and_new) == [("card-two", 1)]
    page.get_by_role("button", name="Go to the current cards").click()
    page.wait_for_url("**/g/small/deck/")
    page.wait_for_selector("html[data-progress=ready]")
    waits_for(page, "1 new card.")
    page.get_by_role("button", name="Review 1 card").click()
    page.keyboard.press("Space")
    assert "The new width" in page.locator(".review-back").inner_text()
    page.keyboard.press("4")
    waits_for(page, "2 reviews today")
    assert reviewed(old_and_new) == [("card-two", 1), ("card-one", 2)]


def test_a_page_that_was_open_while_a_card_changed_keeps_what_was_seen(learner, tmp_path):
    folder = tmp_path / "small"
    small_guide(folder)
    server = Served(folder, tmp_path)
    try:
        page = learner(f"{server.address}/g/small").open("deck/")
        page.get_by_role("button", name="Review 2 cards").click()
        page.keyboard.press("Space")
        change(folder)
        server.site._looked = -1e9
        server.site.look()
        server.site.wait()
        page.keyboard.press("4")
        waits_for(page, "1 review today")
        assert reviewed(server) == [("card-one", 1)]
        assert "1 new card." in review_text(page)
        told(page, "1 card that is due is newer than this page")
        with page.expect_navigation():
            page.get_by_role("button", name="Reload the page").click()
        page.wait_for_selector("html[data-progress=ready]")
        waits_for(page, "1 card due (1 changed), 1 new card.")
        assert page.locator("[data-told]").inner_text() == ""
    finally:
        server.close()


@pytest.mark.parametrize(("rev", "status"), [(1, 200), (2, 200), (3, 409), (0, 422), ("1", 422)])
def test_a_review_of_an_answer_that_the_guide_does_not_have_yet_counts_as_nothing(old_and_new, rev, status):
    body = {"id": "review-0001", "card": "card-one", "rev": rev, "rating": 4, "expects": None}
    assert old_and_new.post("/api/reviews", body)[0] == status
    assert reviewed(old_and_new) == ([("card-one", rev)] if status == 200 else [])
    due = {one["card"]: one["kind"] for one in old_and_new.get("/api/queue?deck=deck")[2]["cards"]}
    assert due.get("card-one") == {200: "changed" if rev == 1 else None}.get(status, "new")


def test_a_frozen_quiz_on_the_server_says_nothing_of_a_file_of_answers(learner, old_and_new):
    page = learner(f"{old_and_new.address}/g/small").open("v/1/first-quiz/")
    assert "answers.json" in page.content()
    assert "answers.json" not in page.locator("body").inner_text()
