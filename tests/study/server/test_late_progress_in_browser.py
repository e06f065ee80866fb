"""Progress that arrives late: what was done meanwhile stays, and drafts belong to the profile they are of."""

import pytest
from learning_steps import choose, form, submit
from served import Served

from headwise.study.progress import Store

pytestmark = pytest.mark.browser


@pytest.fixture(params=["default", "somebody"])
def somebody(request, kept_guide, built, tmp_path, learner):
    """A learner of a profile, with a wrong answer of each of three questions from earlier."""
    server = Served(
        kept_guide.folder, built, store=Store(tmp_path / "progress.sqlite3"), profile=request.param
    )
    here = learner(f"{server.address}/g/small")
    here.profile = request.param
    page = here.open("first-quiz/")
    form(page, "how-many").get_by_role("textbox").fill("12")
    choose(page, "how-wide", "512")
    for question in ("how-many", "how-wide", "what-order"):
        submit(page, question)
    page.evaluate("sessionStorage.clear()")
    yield here
    server.close()


def open_late(here):
    """A page of which progress is held back until what is returned is called."""
    held = []
    here.context.route("**/api/progress*", lambda route: held.append(route))
    here.page.goto(f"{here.address}/first-quiz/")
    here.page.wait_for_function("() => document.querySelector('.quiz-score')")

    def arrive():
        here.context.unroute("**/api/progress*")
        for route in held:
            route.continue_()
        here.page.wait_for_selector("html[data-progress=ready]")
        here.page.wait_for_selector(
            "form[data-question=how-many] :is(.feedback, .earlier-wording):not(:empty)"
        )

    return here.page, arrive


def test_what_was_typed_stays_and_what_was_not_touched_is_as_it_was_left(somebody):
    page, arrive = open_late(somebody)
    field = form(page, "how-many").get_by_role("textbox")
    field.fill("867")
    form(page, "what-order").get_by_role("button", name="Move down").first.click()
    order = form(page, "what-order").locator("li").all_inner_texts()
    arrive()
    assert field.input_value() == "867"
    assert field.is_enabled()
    assert form(page, "what-order").locator("li").all_inner_texts() == order
    told = form(page, "how-many").locator(".earlier-wording").inner_text()
    assert told.startswith("You answered this on ")
    assert told.endswith(": not right.")
    assert (
        form(page, "how-wide").get_by_label("512", exact=True).is_disabled()
    )  # the other is closed as before
    keys = page.evaluate("Object.keys(sessionStorage).filter((key) => key.includes('draft'))")
    assert sorted(keys) == [
        f"headwise-study-draft/{somebody.profile}/small/{question}/1"
        for question in ("how-many", "what-order")
    ]
    somebody.open("first-quiz/")
    assert field.input_value() == "867"
    field.fill("86753")
    assert submit(page, "how-many").startswith("Right.")


def test_an_answer_that_was_submitted_before_stays_graded(somebody):
    page, arrive = open_late(somebody)
    form(page, "how-many").get_by_role("textbox").fill("86753")
    assert submit(page, "how-many").startswith("Right.")
    arrive()
    assert form(page, "how-many").locator(".feedback").inner_text().startswith("Right.")
    assert form(page, "how-many").get_by_role("textbox").input_value() == "86753"
    assert not form(page, "how-many").locator(".earlier-wording").is_visible()
    assert page.evaluate("Object.keys(sessionStorage).filter((key) => key.includes('draft'))") == []
