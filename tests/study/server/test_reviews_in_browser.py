"""A learner reviews cards and is led on: by the server, and by the static export alike."""

import re

import pytest
from learning_steps import choose, form, review_text, submit, waits_for

pytestmark = pytest.mark.browser


# rust-lang/mdBook#518, #2615
def test_ten_reviews_by_keyboard_alone(study):
    here = study()
    page = here.open("deck/")
    waits_for(page, "2 new cards")
    page.keyboard.press("Space")
    for number in range(10):
        if number and number % 2 == 0:  # both were rated "again", and nothing is due for a minute
            waits_for(page, "Done for now: next card at")
            page.keyboard.press("Space")  # learn ahead
        page.wait_for_selector(".review-front")
        page.keyboard.press("Space")
        page.wait_for_selector(".review-back")
        assert page.locator(".review-back").evaluate("(one) => document.activeElement === one")
        done = int((re.search(r"(\d+) reviews? today", review_text(page)) or [0, 0])[1])
        page.keyboard.press("1")
        waits_for(page, f"{done + 1} review")
    waits_for(page, "10 reviews today")
    page.keyboard.press("u")
    waits_for(page, "9 reviews today")
    assert "taken back" in review_text(page)
    page.keyboard.press("Space")
    page.keyboard.press("4")
    waits_for(page, "10 reviews today")
    before = page.evaluate("scrollY")
    for _ in range(5):
        page.keyboard.press("ArrowDown")  # arrows scroll
    page.wait_for_timeout(300)
    assert page.evaluate("scrollY") > before or page.evaluate("document.body.scrollHeight <= innerHeight + 1")


def test_a_card_asks_before_it_answers_and_says_when_it_comes_back(study):
    page = study().open("deck/")
    page.get_by_role("button", name="Review 2 cards").click()
    assert "What is" in page.locator(".review-front").inner_text()
    assert page.locator(".review-back").count() == 0
    page.keyboard.press("3")  # not turned yet: no rating
    page.get_by_role("button", name="Show the answer").click()
    assert "The width of a head" in page.locator(".review-back").inner_text()
    names = page.locator(".review-answers [data-rating]").all_inner_texts()
    assert [" ".join(name.split()) for name in names] == [
        "Again 1 min",
        "Hard 6 min",
        "Good 10 min",
        "Easy 8 days",
    ]
    for name, wait in (("Again", "1 min"), ("Hard", "6 min"), ("Good", "10 min")):
        page.get_by_role("button", name=f"{name} {wait}").click()
        waits_for(page, f"{name}: it comes back in {wait}.")
        page.get_by_role("button", name="Undo the last rating").click()
        waits_for(page, "here is the card again")
        page.get_by_role("button", name="Show the answer").click()
    page.get_by_role("button", name="Easy").click()
    waits_for(page, "Easy: it comes back in 8 days.")
    assert "[…]" in page.locator(".review-front").inner_text()
    ids = page.eval_on_selector_all("[id]", "(all) => all.map((one) => one.id)")
    assert len(ids) == len(set(ids))


def test_cards_of_the_next_minutes_are_told_apart_and_may_be_learnt_ahead(study):
    here = study(timezone_id="Europe/Berlin")
    page = here.open("")
    assert page.locator("[data-due]").inner_text() == "Flashcards: 2 new cards."
    assert page.locator("[data-progress-of=deck] [data-progress]").inner_text() == "2 new cards"
    page = here.open("deck/")
    page.get_by_role("button", name="Review 2 cards").click()
    for _ in range(2):
        page.get_by_role("button", name="Show the answer").click()
        page.get_by_role("button", name="Good").click()
    waits_for(page, "No card is due now. 2 reviews today.")
    assert "Good: it comes back in 10 min." in review_text(page)
    told = page.locator(".review-end").inner_text()
    assert re.fullmatch(r"Done for now: next card at \d\d:\d\d \(in 10 min\)\.", told)
    assert "due within 20 minutes, and not counted as due" in review_text(page)
    here.open("")
    due = page.locator("[data-due]").inner_text()
    assert re.fullmatch(
        r"Flashcards done for now: next card at \d\d:\d\d \(in 10 min\); 2 cards can be learnt ahead\.", due
    )
    row = page.locator("[data-progress-of=deck] [data-progress]").inner_text()
    assert row.startswith("done for now: next card at")
    page.locator("[data-due] a").click()
    page.wait_for_selector("html[data-progress=ready]")
    assert page.locator(".review-front").count() == 0  # not before the learner chooses to
    page.get_by_role("button", name="Learn 2 cards ahead").click()
    page.get_by_role("button", name="Show the answer").click()
    page.get_by_role("button", name="Easy").click()
    waits_for(page, "3 reviews today")
    page.get_by_role("button", name="Show the answer").click()
    page.get_by_role("button", name="Again").click()  # waits its minute, and isn't asked at once again
    waits_for(page, "Done for now: next card at")
    page.get_by_role("button", name="Learn 1 card ahead").wait_for()


def test_the_front_page_says_where_to_go_on(study):
    here = study()

    def goes_on():
        return here.open("").locator("[data-go-on]")

    def read(activity):
        page = here.open(f"{activity}/")
        page.get_by_role("button", name="Mark as read").click()
        page.get_by_role("button", name="Marked as read – undo").wait_for()

    assert goes_on().inner_text() == "Start with “First steps”"
    read("first")
    assert goes_on().inner_text() == "Go on with “A mask”"
    read("second")  # two are skipped: what comes after is next
    assert goes_on().inner_text() == "Go on with “A deck”"
    page = here.open("deck/")
    page.get_by_role("button", name="Review 2 cards").click()
    for _ in range(2):
        page.get_by_role("button", name="Show the answer").click()
        page.get_by_role("button", name="Easy").click()
    waits_for(page, "2 reviews today")
    assert goes_on().inner_text() == "Go on with “More to read”"
    read("more")
    assert goes_on().inner_text() == "Go on with “A mask”"  # what was skipped
    read("first-mask")
    link = goes_on().get_by_role("link", name="Go on with “First questions”")
    link.click()
    page.wait_for_selector("html[data-progress=ready]")
    page.get_by_role("button", name="Answer everything, then check at once").click()
    choose(page, "how-wide", "512")
    choose(page, "which-hold", "This")
    for question, given in (("how-many", "1"), ("what-name", "no")):
        form(page, question).get_by_role("textbox").fill(given)
    page.get_by_role("button", name="Check all answers").click()
    page.wait_for_function("() => document.querySelector('.quiz-outcome').innerText")
    assert goes_on().inner_text() == "Go on with “First questions”"  # two are open
    page = here.open("first-quiz/")
    page.wait_for_function("() => document.querySelector('.quiz-bar button').ariaPressed === 'true'")
    page.get_by_role("button", name="Answer everything, then check at once").click()  # one by one again
    form(page, "what-shape").get_by_role("textbox").fill("1")
    submit(page, "what-shape")
    submit(page, "what-order")
    assert goes_on().inner_text().startswith("All is done")
    assert goes_on().get_by_role("link").count() == 0


def test_single_keys_can_be_switched_off(study):
    here = study()
    page = here.open("deck/")
    waits_for(page, "2 new cards")
    page.locator(".review-keys summary").click()
    assert "turn the card" in page.locator(".review-keys").inner_text()
    page.get_by_label("Single keys do this on pages of cards").uncheck()
    page.wait_for_timeout(200)
    page = here.open("deck/")
    waits_for(page, "2 new cards")
    page.keyboard.press("Space")
    page.wait_for_timeout(200)
    assert page.locator(".review-front").count() == 0
    page.get_by_role("button", name="Review 2 cards").click()
    page.get_by_role("button", name="Show the answer").click()
    page.keyboard.press("3")
    page.wait_for_timeout(200)
    assert "review today" not in review_text(page)


def test_two_tabs_count_a_review_once(study):
    here = study(expected=[409])
    one, other = here.open("deck/"), here.open("deck/", here.tab())
    for page in (one, other):
        page.get_by_role("button", name="Review 2 cards").click()
        page.keyboard.press("Space")
        page.wait_for_selector(".review-back")
    one.bring_to_front()
    one.keyboard.press("3")
    waits_for(one, "1 review today")
    other.bring_to_front()
    other.keyboard.press("1")
    waits_for(other, "already reviewed")
    waits_for(other, "1 review today")
    assert (
        "Scores are divided by" in other.locator(".review-front").inner_text()
    )  # it goes on with what is due
