"""What a learner does on a page, for tests in the browser."""

import json


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


def turn(page):
    page.get_by_role("button", name="Review 2 cards").click()
    page.keyboard.press("Space")
    page.wait_for_selector(".review-back")
