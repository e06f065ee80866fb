"""Every visual in Chromium: the same numbers as in Python, by pointer, by keyboard, in both themes."""

import dataclasses
import json
import re

import pytest
from input_grids import GRIDS
from visual_page import STATIC, definitions, keys

from accessible import COLOUR, violations
from headwise.study.visuals import NAMES, load

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
