"""A learner answers, reviews and takes progress elsewhere: by the server, and by the static export alike."""

import json
import re

import pytest
from axe_playwright_python.sync_playwright import Axe

pytestmark = pytest.mark.browser


def form(page, question):
    return page.locator(f"form[data-question={question}]")


def submit(page, question):
    # what was said before must not be taken for the answer to this
    form(page, question).locator(".feedback").evaluate("(said) => said.replaceChildren()")
    form(page, question).get_by_role("button", name="Check").click()
    page.wait_for_function(
        "(id) => document.querySelector(`form[data-question=${id}] .feedback`).textContent", arg=question
    )
    return form(page, question).locator(".feedback").inner_text()


def choose(page, question, *labels):
    for label in labels:
        form(page, question).get_by_label(label, exact=True).check()


def review_text(page):
    return page.locator("[data-review]").inner_text()


def waits_for(page, text):
    page.wait_for_function(
        "(text) => document.querySelector('[data-review]').innerText.includes(text)", arg=text
    )


# rstudio/learnr#192, JuiceMind/JuiceMind#825
def test_nothing_tells_an_answer_before_it_is_submitted(study):
    here = study()
    asked = []
    here.page.on("request", lambda request: asked.append(request.url))
    page = here.open("first-quiz/")
    assert "SECRET" not in page.content()
    tree = page.locator("body").aria_snapshot()
    assert "SECRET" not in tree
    assert "How wide is" in tree
    assert not [url for url in asked if "answers.json" in url]
    choose(page, "how-wide", "64")
    assert form(page, "how-wide").locator(".feedback").inner_text() == ""  # a click grades nothing
    assert "SECRET" not in page.content()
    submit(page, "how-wide")
    assert "SECRETRIGHT" in page.content()
    assert "SECRETNUMBER" not in page.content()


# cognitive-engineering-lab/mdbook-quiz#30; RunestoneInteractive/rs#1413; Doenet/DoenetML#768
def test_a_choice_is_graded_explained_and_tried_again(study):
    page = study().open("first-quiz/")
    asked = form(page, "how-wide")
    assert asked.locator("fieldset > :first-child").evaluate("(one) => one.localName") == "legend"
    choose(page, "how-wide", "512")
    assert submit(page, "how-wide").startswith("Not right.")
    feedback = asked.locator(".feedback")
    assert feedback.get_attribute("role") is None  # the focus reads it out, once
    assert feedback.evaluate("(one) => document.activeElement === one")
    whys = {why.split("\n")[0]: why for why in asked.locator("[data-why]").all_inner_texts()}
    assert set(whys) == {"Wrong: you chose it.", "This is right."}  # in words, without any colour
    assert "SECRETWRONG" in whys["Wrong: you chose it."]
    assert asked.get_by_label("64", exact=True).is_disabled()
    asked.get_by_role("button", name="Try again").click()
    assert feedback.inner_text() == ""
    assert asked.locator("[data-why]").count() == 0
    choose(page, "how-wide", "64")
    assert submit(page, "how-wide").startswith("Right.")
    assert page.locator(".quiz-score").inner_text() == "1 of 6 questions answered, 1 right."


def test_every_kind_of_question(study):
    page = study().open("first-quiz/")
    choose(page, "which-hold", "This", "That")
    assert submit(page, "which-hold").startswith("Right.")
    left_out = form(page, "which-hold").locator("[data-why]", has_text="SECRETC").inner_text()
    assert left_out.startswith("Wrong, and you rightly left it out.")
    for question, wrong, right in (
        ("how-many", "12", "86,753 heads"),
        ("what-name", "no", "Secretword"),
        ("what-shape", "2, 7, 13", "(2, 13, 7)"),
    ):
        form(page, question).get_by_role("textbox").fill(wrong)
        submit(page, question)
        answer = form(page, question).locator("details.answer")
        assert not answer.locator(".feedback-right-answer").is_visible()  # so that trying again has a point
        form(page, question).get_by_role("button", name="Try again").click()
        form(page, question).get_by_role("textbox").fill(right)
        assert submit(page, question).startswith("Right.")
    items = form(page, "what-order").locator("li")
    while items.all_inner_texts()[0].split("\n")[0] != "project":
        form(page, "what-order").get_by_role("button", name="Move up: project").click()
    while items.all_inner_texts()[1].split("\n")[0] != "attend":
        form(page, "what-order").get_by_role("button", name="Move up: attend").click()
    assert submit(page, "what-order").startswith("Right.")


def test_what_cannot_be_graded_is_said_and_counts_as_nothing(study):
    here = study(expected=[422])
    page = here.open("first-quiz/")
    assert "Choose an answer first" in submit(page, "how-wide")
    form(page, "how-many").get_by_role("textbox").fill("many")
    assert "“many” is no number" in submit(page, "how-many")
    form(page, "how-many").get_by_role("textbox").fill("86753")
    assert submit(page, "how-many").startswith("Right.")
    page.reload()
    page.wait_for_function("() => document.querySelector('.quiz-score').innerText.startsWith('1 of 6')")


# cpinitiative/usaco-guide#2155
def test_answers_and_drafts_are_there_on_return(study):
    here = study()
    page = here.open("first-quiz/")
    form(page, "how-many").get_by_role("textbox").fill("86753")
    submit(page, "how-many")  # the third question first
    choose(page, "which-hold", "This")
    form(page, "what-name").get_by_role("textbox").fill("half an ans")
    order = form(page, "which-hold").locator("[data-option] label").all_inner_texts()
    here.open("first/")
    page.go_back()
    page.wait_for_selector("html[data-progress=ready]")
    page.wait_for_function("() => document.querySelector('.quiz-score').innerText.startsWith('1 of 6')")
    assert form(page, "what-name").get_by_role("textbox").input_value() == "half an ans"
    assert form(page, "which-hold").get_by_label("This", exact=True).is_checked()
    assert form(page, "which-hold").locator("[data-option] label").all_inner_texts() == order
    assert "right" in form(page, "how-many").locator(".feedback").inner_text()
    form(page, "how-many").get_by_role("button", name="Show why").click()
    page.wait_for_function("() => document.body.textContent.includes('SECRETNUMBER')")
    here.open("first/")
    assert page.locator("form[data-question=how-wide]").count() == 1  # a question within a lesson
    here.open("")
    assert "1 of 6 answered, 1 right" in page.locator("[data-progress-of=first-quiz]").inner_text()


def test_a_whole_quiz_is_checked_at_once(study):
    page = study().open("first-quiz/")
    page.get_by_role("button", name="Answer everything, then check at once").click()
    assert page.get_by_role("button", name="Check", exact=True).filter(visible=True).count() == 0 or not any(
        button.is_enabled() for button in page.get_by_role("button", name="Check", exact=True).all()
    )
    choose(page, "how-wide", "64")
    form(page, "how-many").get_by_role("textbox").fill("5")
    page.get_by_role("button", name="Check all answers").click()
    page.wait_for_function("() => document.querySelector('.quiz-outcome').innerText")
    assert page.locator(".quiz-outcome").inner_text() == "1 of 6 right. 4 not answered yet."
    assert page.locator(".quiz-outcome").evaluate("(one) => document.activeElement === one")


def test_an_answer_that_cannot_be_read_is_told_when_all_are_checked(study):
    page = study(expected=[422]).open("first-quiz/")
    page.get_by_role("button", name="Answer everything, then check at once").click()
    choose(page, "how-wide", "64")
    form(page, "how-many").get_by_role("textbox").fill("5 lamps")
    page.get_by_role("button", name="Check all answers").click()
    page.wait_for_function("() => document.querySelector('.quiz-outcome').innerText")
    place = 1 + page.locator("section[data-quiz] form").evaluate_all(
        "(all) => all.findIndex((one) => one.dataset.question === 'how-many')"
    )
    outcome = page.locator(".quiz-outcome")
    assert outcome.inner_text() == (
        f"1 of 6 right. 4 not answered yet. Not graded, for the reason said there: question {place}."
    )
    outcome.get_by_role("link", name=f"question {place}").click()
    focused = page.evaluate("() => document.activeElement.textContent")
    assert focused.startswith("“5 lamps” is no number: write it as")
    assert focused.endswith("alone or with the unit of this question, heads.")


def test_the_way_of_answering_is_kept_with_what_was_typed(study):
    here = study()
    page = here.open("first-quiz/")
    page.get_by_role("button", name="Answer everything, then check at once").click()
    form(page, "how-many").get_by_role("textbox").fill("5")
    here.open("first/")
    page.go_back()
    page.wait_for_selector("html[data-progress=ready]")
    together = page.get_by_role("button", name="Answer everything, then check at once")
    page.wait_for_function("() => document.querySelector('.quiz-bar button').ariaPressed === 'true'")
    assert form(page, "how-many").get_by_role("textbox").input_value() == "5"
    assert page.get_by_role("button", name="Check all answers").is_visible()
    together.click()
    page.reload()
    page.wait_for_selector("html[data-progress=ready]")
    assert together.get_attribute("aria-pressed") == "false"


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


def test_a_lesson_is_marked_as_read_and_not(study):
    here = study()
    page = here.open("first/")
    page.get_by_role("button", name="Mark as read").click()
    page.get_by_role("button", name="Marked as read – undo").wait_for()
    assert page.locator("[data-mark]").inner_text() == "Marked as read – undo"  # said once
    here.open("")
    assert "read" in page.locator("[data-progress-of=first] [data-progress]").inner_text()
    here.open("first/")
    page.get_by_role("button", name="Marked as read – undo").click()
    page.get_by_role("button", name="Mark as read").wait_for()
    assert "No longer marked as read." in page.locator("[data-mark]").inner_text()
    here.open("")
    assert page.locator("[data-progress-of=first] [data-progress]").inner_text() == ""


def learn_a_little(here):
    page = here.open("first-quiz/")
    form(page, "how-many").get_by_role("textbox").fill("86753")
    submit(page, "how-many")
    page = here.open("deck/")
    page.get_by_role("button", name="Review 2 cards").click()
    page.keyboard.press("Space")
    page.keyboard.press("4")
    waits_for(page, "1 review today")
    page = here.open("first/")
    page.get_by_role("button", name="Mark as read").click()
    page.get_by_role("button", name="Marked as read – undo").wait_for()


def export(here, path):
    page = here.open("progress/")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export all progress").click()
    download.value.save_as(path)
    return json.loads(path.read_text(encoding="utf-8"))


def bring_in(here, path):
    page = here.open("progress/")
    page.get_by_label("A file to import").set_input_files(path)
    page.get_by_role("button", name="Import", exact=True).click()
    page.wait_for_function(
        "() => [...document.querySelectorAll('.settings-told')].some((one) => one.innerText)"
    )
    return page.locator(".settings-part", has_text="A file to import").locator(".settings-told").inner_text()


# 4skinSkywalker/Syllogimous-v4#30
def test_progress_goes_from_anywhere_to_anywhere(study, learner, exported, tmp_path):
    here = study()
    learn_a_little(here)
    made = export(here, tmp_path / "progress.json")
    assert [len(made[kind]) for kind in ("reviews", "undos", "answers", "marks")] == [1, 0, 1, 1]
    there = learner(exported)  # another browser, which knows nothing
    told = bring_in(there, tmp_path / "progress.json")
    assert told == "Added 1 review, 1 answer, 1 mark."
    again = export(there, tmp_path / "again.json")
    for name in ("reviews", "undos", "answers", "marks", "settings"):
        assert again[name] == made[name]
    assert "3 entries were there already" in bring_in(here, tmp_path / "again.json")
    page = there.open("deck/")
    waits_for(page, "1 new card. 1 review today.")


# azavea/nyc-trees#1399
def test_two_browsers_of_a_static_site_do_not_mix(learner, exported):
    one, other = learner(exported), learner(exported)
    learn_a_little(one)
    waits_for(other.open("deck/"), "2 new cards.")


@pytest.mark.parametrize("fault", ["cut", "rating", "other"])
def test_a_broken_file_changes_nothing_and_is_told(study, tmp_path, fault):
    here = study(expected=[422])
    learn_a_little(here)
    made = export(here, tmp_path / "progress.json")
    text = json.dumps(made)
    broken = {
        "cut": text[:-40],
        "rating": text.replace('"rating": 4', '"rating": 9'),
        "other": json.dumps({"format": "another"}),
    }[fault]
    (tmp_path / "broken.json").write_text(broken)
    told = bring_in(here, tmp_path / "broken.json")
    assert "othing was changed" in told
    after = export(here, tmp_path / "after.json")
    made.pop("exported"), after.pop("exported")
    assert after == made


def test_settings_are_kept_and_matter(study):
    here = study()
    page = here.open("progress/")
    page.get_by_label("New cards a day").fill("1")
    page.get_by_label("A day begins at").fill("05:30")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.").wait_for()
    page = here.open("progress/")
    assert page.get_by_label("A day begins at").input_value() == "05:30"
    waits_for(here.open("deck/"), "1 new card.")


def test_a_phone_and_no_colours_are_enough(study):
    here = study(viewport={"width": 320, "height": 640}, forced_colors="active")
    page = here.open("first-quiz/")
    choose(page, "how-wide", "512")
    submit(page, "how-wide")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    for path in ("deck/", "progress/"):
        page = here.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_while_learning(study, scheme):
    here = study(color_scheme=scheme)
    page = here.open("first-quiz/")
    choose(page, "how-wide", "512")
    submit(page, "how-wide")
    choose(page, "which-hold", "This", "That")
    submit(page, "which-hold")
    form(page, "how-many").get_by_role("textbox").fill("1")
    submit(page, "how-many")
    assert violations(page) == []
    page = here.open("deck/")
    page.locator(".review-keys summary").click()
    page.get_by_role("button", name="Review 2 cards").click()
    page.keyboard.press("Space")
    page.wait_for_selector(".review-back")
    assert violations(page) == []
    assert violations(here.open("progress/")) == []


def violations(page):
    page.wait_for_timeout(300)  # transitions of colours
    found = Axe().run(page).response["violations"]
    return [(one["id"], [node["target"] for node in one["nodes"]]) for one in found]
