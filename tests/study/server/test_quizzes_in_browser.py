"""A learner answers the questions of a quiz: by the server, and by the static export alike."""

import pytest
from learning_steps import choose, form, submit

pytestmark = pytest.mark.browser


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
