"""Every visual in Chromium: the same numbers as in Python, by pointer, by keyboard, in both themes."""

import dataclasses
import json
import re

import pytest
from input_grids import GRIDS
from visual_page import STATIC, definitions

from accessible import COLOUR, violations
from headwise.study.visuals import NAMES, load, sentence_heads

pytestmark = pytest.mark.browser
VISUALS = definitions()
COMPARE = """async ([module, data, grid]) => {
  const { compute } = await import(`/static/visuals/${module}.js`);
  return grid.map((inputs) => compute(data, inputs));
}"""


def alike(got, wanted, place=""):
    """Nothing where both agree, else the first place where they don't."""
    if isinstance(wanted, dict):
        if got.keys() != wanted.keys():
            return f"{place}: keys {sorted(got)} against {sorted(wanted)}"
        return next(filter(None, (alike(got[key], wanted[key], f"{place}.{key}") for key in wanted)), None)
    if isinstance(wanted, list):
        if len(got) != len(wanted):
            return f"{place}: {len(got)} entries against {len(wanted)}"
        pairs = enumerate(zip(got, wanted, strict=True))
        return next(filter(None, (alike(one, other, f"{place}[{at}]") for at, (one, other) in pairs)), None)
    if isinstance(wanted, float) and not isinstance(got, bool) and isinstance(got, int | float):
        near = abs(got - wanted) <= 1e-9 * max(1.0, abs(wanted))
        return None if near else f"{place}: {got} in the browser, {wanted} in Python"
    return None if got == wanted else f"{place}: {got!r} in the browser, {wanted!r} in Python"


@pytest.mark.parametrize("name", NAMES)
def test_the_browser_computes_what_python_does(show, visual_site, name):
    page, grid = show(name), GRIDS[name]()
    assert len(grid) >= 10
    data = json.loads(json.dumps(visual_site.data(name).data))
    found = page.page.evaluate(COMPARE, [VISUALS[name]["module"], data, grid])
    module = load(name)
    for inputs, got in zip(grid, found, strict=True):
        wanted = json.loads(json.dumps(module.compute(inputs)))
        assert alike(got, wanted) is None, inputs


@pytest.mark.parametrize("name", NAMES)
def test_table_and_words_are_those_of_the_page_without_a_script(show, visual_site, name):
    page, made = show(name), visual_site.data(name)
    assert page.words() == made.words
    assert page.table() == [list(row) for row in made.table.rows]
    assert page.page.text_content("[data-table] caption") == made.table.caption
    first = page.page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('form [name]')].map(one => [one.name,"
        " one.type === 'checkbox' ? one.checked : one.type === 'range' ? Number(one.value) : one.value]))"
    )
    assert first == dict(load(name).DEFAULTS)
    plain = show(name, java_script_enabled=False)
    assert plain.words() == made.words
    assert plain.table() == [list(row) for row in made.table.rows]


def other(given):
    """A value other than the first."""
    if given["kind"] == "toggle":
        return not given["value"]
    if given["kind"] == "select":
        values = [one["value"] if isinstance(one, dict) else one for one in given["options"]]
        return next(value for value in values if value != given["value"])
    return given["min"] if given["value"] != given["min"] else given["max"]


# What must be chosen first for an input to count, and values where any other one won't do.
FIRST = {
    ("dot_product_by_hand", "causal"): {"query": "0"},
    ("mask", "align"): {"queries": 5},
    ("mask", "before"): {"window": True},
    ("mask", "after"): {"window": True, "causal": False},
    ("mask", "length"): {"lengths": True},
    ("split_join", "free"): {"width": 128},
    ("split_join", "width"): {"free": True},
    ("cost_bleu", "ensembles"): {"budget": 20},
}
OTHERS = {("mask", "prefix"): 7}


@pytest.mark.parametrize("name", NAMES)
def test_every_input_changes_the_picture(show, name):
    page, defaults = show(name), load(name).DEFAULTS
    shown = "['figure', '[data-table]'].map(one => document.querySelector(one).innerHTML).join('')"
    for given in VISUALS[name]["inputs"]:
        if given["kind"] == "text":
            continue
        first = FIRST.get((name, given["name"]), {})
        for one, value in first.items():
            page.set(one, value)
        before = page.page.evaluate(shown)
        page.set(given["name"], OTHERS.get((name, given["name"]), other(given)))
        assert page.page.evaluate(shown) != before, given["name"]
        for one in (given["name"], *first):
            page.set(one, defaults[one])


def test_words_follow_once_the_reader_has_paused(show):
    page = show("schedule")
    before = page.words()
    assert page.page.get_attribute("[data-words]", "role") == "status"
    moved = page.page.evaluate(
        """[10, 20, 30, 40].map(reach => {
          const slider = document.querySelector('[name=reach]');
          slider.value = reach;
          slider.dispatchEvent(new Event('input', { bubbles: true }));
          return document.querySelector('[data-words]').textContent;
        })"""
    )
    assert moved == [before] * 4
    page.page.wait_for_selector("[data-words]:has-text('At step 100 ')")


def test_a_slider_says_its_value_in_words(show):
    page = show("schedule")
    page.set("reach", 60)
    slider = page.page.locator("[name=reach]")
    assert slider.get_attribute("aria-valuetext") == "1,000"
    assert page.page.inner_text("output[for=schedule-reach]") == "1,000"


BEYOND = """[...document.querySelectorAll('figure svg, figure svg text')].filter(one => {
  const box = one.getBoundingClientRect(), room = one.closest('figure').getBoundingClientRect();
  return box.left < room.left - 2 || box.right > room.right + 2;
}).map(one => one.textContent)"""


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing_and_all_fits_at_every_width(show, name, scheme):
    page = show(name, color_scheme=scheme)
    page.page.click("[data-table] summary")
    for width in (1280, 560, 320):
        page.page.set_viewport_size({"width": width, "height": 900})
        page.settled()
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.page.evaluate(BEYOND) == [], width
        if width != 560:
            assert violations(page.page, COLOUR if scheme == "dark" else ()) == [], width


GRIDS_OF_CELLS = [
    ("dot_product_by_hand", "steps"),
    ("mask", "mask"),
    ("position_waves", "waves"),
    ("sentence_heads", "matrix"),
]


@pytest.mark.parametrize(("name", "grid"), GRIDS_OF_CELLS)
def test_a_matrix_is_walked_by_the_keyboard_and_says_its_values(show, name, grid):
    page = show(name)
    press = page.page.keyboard.press
    cells = page.page.locator(f"[data-key^='{grid}:']")
    rows, columns = (1 + max(int(key.split(":")[at]) for key in keys(cells)) for at in (1, 2))
    assert page.page.locator(f"[data-key^='{grid}:'][tabindex='0']").count() == 1
    page.page.focus(f"[data-key='{grid}:0:0']")
    row = column = 0
    for key, (to_row, to_column) in {
        "ArrowRight": (0, 1), "ArrowDown": (1, 1), "ArrowLeft": (1, 0), "ArrowUp": (0, 0),
        "End": (0, columns - 1), "PageDown": (rows - 1, columns - 1), "Home": (rows - 1, 0), "PageUp": (0, 0),
    }.items():  # fmt: skip
        press(key)
        row, column = to_row, to_column
        now = page.page.evaluate(
            "[document.activeElement.dataset.key, document.activeElement.getAttribute('aria-label')]"
        )
        assert now[0] == f"{grid}:{row}:{column}"
        assert len(now[1]) > 8
        assert page.page.inner_text(".visual-peek") == now[1]
    for _ in range(12):  # Tab leaves the matrix
        press("Tab")
        if not (page.page.evaluate("document.activeElement.dataset.key") or "").startswith(grid):
            break
    assert not (page.page.evaluate("document.activeElement.dataset.key") or "").startswith(grid)


@pytest.mark.parametrize("name", NAMES)
def test_tab_stops_at_controls_cells_and_points_alone(show, name):
    page = show(name)
    page.page.click("h1")
    stops = []
    for _ in range(60):
        page.page.keyboard.press("Tab")
        stop = page.page.evaluate(
            "[document.activeElement.tagName.toLowerCase(), document.activeElement.getAttribute('role')]"
        )
        if stop[0] == "body":
            break
        stops.append(stop)
    assert stops[-1][0] in ("summary", "body")
    for tag, role in stops:
        assert tag in ("select", "input", "button", "summary") or role in ("gridcell", "option"), (tag, role)


def keys(cells):
    return cells.evaluate_all("all => all.map(one => one.dataset.key)")


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


def test_letters_on_shaded_cells_can_be_read(show):
    """At every shade, in both themes, the contrast is 4.5 or more."""
    for scheme in ("light", "dark"):
        page = show("mask", color_scheme=scheme)
        worst = page.page.evaluate(
            "Promise.all([import('/static/visuals/heat.js'), import('/tests/contrast.js')])"
            ".then(([{ DARK }, { leastContrast }]) => leastContrast(DARK))"
        )
        assert worst >= 4.5, scheme


def test_a_visual_whose_numbers_are_missing_keeps_table_and_words(show, visual_site, chromium):
    page = chromium.new_page()
    page.route("**/mask.json", lambda route: route.fulfill(status=404, body=""))
    page.goto(f"{visual_site.url}/mask/")
    page.wait_for_selector("section[data-live=no]")
    assert page.inner_text("[data-words]") == visual_site.data("mask").words
    assert page.locator("[data-table] tbody tr").count() == 10
    page.close()


def test_scripts_write_no_html_and_no_style_attributes():
    for file in (STATIC / "visuals").glob("*.js"):
        text = file.read_text(encoding="utf-8")
        for forbidden in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "cssText",
        ):
            assert forbidden not in text, (file.name, forbidden)
        assert not re.search(r"""\.style\.(?!setProperty)|['"]style['"]""", text), file.name
        assert len(text.splitlines()) < 350


def test_data_classes_are_frozen(visual_site):
    with pytest.raises(dataclasses.FrozenInstanceError):
        visual_site.data("mask").words = "other"
