"""What single visuals do in Chromium: the steps by hand, the points, the heads of a sentence."""

import pytest

from headwise.study.visuals import sentence_heads

pytestmark = pytest.mark.browser


def test_a_cell_of_the_steps_tells_its_arithmetic(show):
    page = show("dot_product_by_hand")
    told = [page.page.get_attribute(f"[data-key='steps:{step}:1']", "aria-label") for step in range(5)]
    assert told == [
        "“sat” asks “cat”: 1 × 1 + 1 × 1 + 1 × 1 + 1 × 1 = 4",
        "4 ÷ √4 = 2",
        "“cat” may be seen: 2 stays",
        "e to the power 2 is 7.389",
        "7.389 ÷ 11.107 = 0.665: the weight of “cat”",
    ]
    assert page.page.get_attribute("[data-key='output:0:0']", "aria-label").endswith("= 7.103")


def test_words_and_numbers_of_the_hand_example_can_be_changed(show):
    page = show("dot_product_by_hand")
    page.page.fill("[aria-label='word 2']", "dog")
    page.page.fill("[aria-label='key of word 2, number 1']", "-3")
    page.settled()
    assert page.table()[1][:2] == ["dog", "0.00"]
    assert page.page.get_attribute("[data-key='steps:0:1']", "aria-label").startswith(
        "“sat” asks “dog”: 1 × (−3)"
    )
    page.page.fill("[aria-label='key of word 2, number 1']", "44")
    assert page.page.get_attribute("[aria-label='key of word 2, number 1']", "aria-invalid") == "true"
    assert page.table()[1][:2] == ["dog", "0.00"]
    told = page.page.locator(".v-wrong")
    for given in ("44", "", "1e3"):
        page.page.fill("[aria-label='key of word 2, number 1']", given)
        assert told.inner_text() == (
            "The key of word 2, number 1: write a number from −9 to 9; until then the picture keeps −3."
        )
    described = page.page.get_attribute("[aria-label='key of word 2, number 1']", "aria-describedby")
    assert described == told.get_attribute("id")
    page.page.fill("[aria-label='key of word 2, number 1']", "2")
    assert told.inner_text() == ""


# In a frame of 246 pixels, as the page of a window of 320 pixels has it.
LETTERS = """() => {
  const boxes = [...document.querySelectorAll("figure svg text")]
    .map((one) => ({ text: one.textContent, box: one.getBoundingClientRect() }));
  const over = (one, other) => one.left < other.right - 1 && other.left < one.right - 1
    && one.top < other.bottom - 4 && other.top < one.bottom - 4;
  return boxes.flatMap(({ text, box }, place) =>
    boxes.slice(place + 1).filter((other) => over(box, other.box)).map((other) => `${text} | ${other.text}`));
}"""


@pytest.mark.parametrize("given", ["1", "9"])
def test_no_letters_of_the_steps_run_into_others_in_a_narrow_window(show, given):
    page = show("dot_product_by_hand", viewport={"width": 320, "height": 900})
    page.page.evaluate("document.querySelector('figure').style.setProperty('width', '246px')")
    page.settled()
    for key in (1, 2, 3):
        page.page.fill(f"[aria-label='key of word {key}, number 1']", given)
    page.settled()
    assert page.page.evaluate(LETTERS) == []


def test_points_are_chosen_by_arrow_keys(show):
    page = show("table3")
    page.page.focus("[role=option][tabindex='0']")
    page.page.keyboard.press("Home")
    page.settled()
    first = page.page.evaluate("document.activeElement.dataset.key")
    assert first == "rows:C d_model=256"
    assert page.page.input_value("[name=row]") == "C d_model=256"
    page.page.keyboard.press("End")
    page.settled()
    assert page.page.input_value("[name=row]") == "big"
    assert page.page.get_attribute("[role=option][aria-selected=true]", "data-key") == "rows:big"
    assert "big" in page.page.inner_text(".v-note")


def test_the_tokens_of_a_sentence_are_one_stop_of_tab(show):
    page = show("sentence_heads").page
    stops = page.locator("[data-key^='token:'][tabindex='0']")
    focused = "document.activeElement.dataset.key"
    assert stops.count() == 1
    stops.focus()
    for key, place in [("Home", 0), ("ArrowLeft", 0), ("ArrowRight", 1), ("End", 16), ("ArrowRight", 16)]:
        page.keyboard.press(key)
        assert page.evaluate(focused) == f"token:{place}"
        assert stops.count() == 1
    assert page.input_value("[name=token]") == "10"
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-key='token:16'][aria-pressed='true']")
    assert page.evaluate(focused) == "token:16"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "heads:3:1"


def test_a_head_is_opened_from_the_strips_and_a_token_from_the_sentence(show, visual_site):
    page = show("sentence_heads")
    page.page.focus("[data-key='heads:3:1']")
    page.page.keyboard.press("ArrowDown")
    page.settled()
    assert page.page.evaluate("document.activeElement.dataset.key") == "heads:4:1"
    assert page.page.inner_text(".v-title") == "Layer 4, head 1 (counted from 0)"
    page.page.click("[data-key='token:2']")
    page.settled()
    data = visual_site.data("sentence_heads").data
    n = len(data["tokens"])
    first = ((4 * 12 + 1) * n + 2) * n
    weights = sentence_heads.carried()["weights"]
    wanted = [f"{weight / data['unit']:.4f}" for weight in weights[first : first + n]]
    assert [row[1] for row in page.table()] == wanted


def test_a_sentence_of_ones_own_is_asked_of_the_server_alone(show, visual_site):
    still = show("sentence_heads")
    assert not still.page.is_visible("[name=text]")
    assert still.page.locator(".v-live").count() == 0
    asked = []

    def answer(body):
        asked.append(body)
        data = visual_site.data("sentence_heads").data
        if body["text"] == "too long":
            return 422, {"error": "no-heads", "message": "The text has 99 tokens."}
        found = {key: value for key, value in data.items() if key != "defaults"}
        return 200, {**found, "tokens": ["[CLS]", *(f"w{place}" for place in range(15)), "[SEP]"]}

    visual_site.heads = answer
    page = show("sentence_heads", live=True)
    page.page.fill("[name=text]", "a lamp")
    page.page.click("text=Look at this sentence")
    page.page.wait_for_selector("text=17 tokens read.")
    page.page.wait_for_selector("caption:has-text('w9')", state="attached")
    assert asked == [{"text": "a lamp"}]


def test_an_empty_sentence_is_asked_for_and_the_limit_is_told(show):
    page = show("sentence_heads", live=True).page
    page.wait_for_selector("text=Look at this sentence")
    assert page.locator(".v-limit").inner_text().startswith(f"Up to {sentence_heads.MOST} tokens")
    page.fill("[name=text]", "  ")
    page.click("text=Look at this sentence")
    said = page.locator(".v-live [role=status]").inner_text()
    assert said.startswith(f"Write a sentence first: up to {sentence_heads.MOST} tokens")
    assert page.evaluate("document.activeElement.name") == "text"


def test_a_server_that_refuses_is_told_and_the_sentence_stays(show, visual_site):
    visual_site.heads = lambda body: (422, {"error": "no-heads", "message": "The text has 99 tokens."})
    page = show("sentence_heads", live=True)
    page.page.fill("[name=text]", "long")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("text=The sentence shown stays: The text has 99 tokens.")
    assert page.page.inner_text("[data-key='token:2']") == "lamp"
    page.errors = [error for error in page.errors if "422" not in error]


def test_a_server_without_the_model_says_so_and_offers_no_field(show, visual_site, monkeypatch):
    why = "the model is not installed: pip install it"
    monkeypatch.setattr(visual_site, "available", {"available": False, "why": why})
    page = show("sentence_heads", live=True)
    page.page.wait_for_selector(f"text=A sentence of your own can’t be read: {why}.")
    assert not page.page.is_visible("[name=text]")
    assert not page.page.is_visible(".v-button")
