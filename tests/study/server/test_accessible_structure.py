"""What a screen reader is given: regions that speak are there before they do, nothing is said twice,
questions are headings, and no button's name is a formula."""

from html.parser import HTMLParser

import pytest
from learning_steps import choose, submit, turn

from headwise.study.site import render_content

BLOCKS = {"blockquote", "details", "div", "dl", "fieldset", "figure", "form", "ol", "p", "pre", "table", "ul"}
VOID = {"br", "hr", "img", "input", "link", "meta", "wbr"}


class Page(HTMLParser):
    """The elements of a page with what they stand in: `found` holds (tag, attributes, tags around it)."""

    def __init__(self, text):
        super().__init__()
        self.found, self._open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes), tuple(self._open)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag in self._open:
            while self._open.pop() != tag:
                pass


@pytest.fixture(scope="module")
def pages(kept_guide):
    files = render_content(kept_guide, "static")
    return {name: Page(text.decode()) for name, text in files.items() if name.endswith(".html")}


def test_the_region_for_messages_is_one_from_the_start(pages):
    for name, page in pages.items():
        (told,) = [attributes for _, attributes, _ in page.found if "data-told" in attributes]
        assert told["role"] == "status", name


def test_what_stands_in_a_summary_or_a_button_is_phrasing(pages):
    looked = 0
    for name, page in pages.items():
        for tag, _, around in page.found:
            if "summary" in around or "button" in around:
                looked += 1
                assert tag not in BLOCKS, (name, tag)
                assert tag != "math", name  # a name is flat text: a formula is none
    assert looked > 0


def test_each_question_of_a_quiz_is_a_heading_and_one_in_a_lesson_is_not(pages):
    def headings(name):
        return [around[-1] for tag, _, around in pages[name].found if tag == "h2" and "fieldset" in around]

    assert headings("first-quiz/index.html") == ["legend"] * 6
    assert headings("first/index.html") == []


@pytest.mark.browser
def test_what_gets_the_focus_is_no_live_region_too(learner, exported):
    here = learner(exported)
    twice = ":is([role=status], [role=alert], [aria-live])[tabindex]"
    page = here.open("first-quiz/")
    choose(page, "how-wide", "512")
    submit(page, "how-wide")
    assert page.locator(".feedback").count() == 6
    assert page.locator(twice).count() == 0
    page = here.open("progress/")
    assert page.locator(".settings-told").count() == 3
    assert page.locator(twice).count() == 0
    page.get_by_role("button", name="Export all progress").focus()
    page.get_by_role("button", name="Import", exact=True).click()
    page.wait_for_function("document.body.innerText.includes('Choose a file first.')")
    assert page.evaluate("document.activeElement.textContent") == "Import"
    page = here.open("deck/")
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('no'); }; }")
    turn(page)
    page.keyboard.press("3")
    page.wait_for_selector(".not-saved")
    assert page.locator(twice).count() == 0
    assert page.evaluate("document.activeElement.className") == "not-saved"
