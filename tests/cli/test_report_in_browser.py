"""The report in Chromium, opened from the file system: what it shows, by pointer and by keyboard."""

import re

import pytest
from open_page import Page

from accessible import violations, violations_in_both_themes
from headwise.cli.look import look
from headwise.cli.report import render

pytestmark = pytest.mark.browser


@pytest.fixture
def opened(browser, report):
    pages = []

    def open_page(file=report, **options):
        pages.append(Page(browser, file, **options))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


def choose(page, layer, head):
    page.page.click(f"#grid button[data-layer='{layer}'][data-head='{head}']")


def says(seen, layer, head, query, key):
    tokens, weight = seen.reading.tokens, float(seen.weights[layer, head, query, key])
    return f"{tokens[query]} → {tokens[key]}: {weight:.3f}"


def test_a_click_opens_a_head_with_its_words_and_tokens(opened, seen):
    page = opened()
    assert page.page.locator("#grid canvas").count() == 72
    choose(page, 2, 9)
    assert page.text("#detail-title") == "Layer 2, head 9"
    assert "the same token" in page.text("#verdict")
    assert page.page.locator("#words button").all_inner_texts() == list(seen.reading.tokens)
    assert page.page.get_attribute("#grid [aria-current=true]", "aria-label").startswith(
        "Layer 2, head 9: same token"
    )
    assert page.page.url.endswith("#2.9")


@pytest.mark.parametrize(("layer", "head"), [(0, 2), (2, 9), (5, 11)])
def test_hovering_shows_the_true_weight(opened, seen, layer, head):
    page = opened()
    choose(page, layer, head)
    for query, key in ((1, 0), (12, 7), (59, 58), (83, 50), (97, 99)):
        page.page.mouse.move(*page.cell(query, key))
        assert page.text("#readout") == says(seen, layer, head, query, key)


def test_the_picture_is_darker_where_the_weight_is_larger(opened):
    page = opened(color_scheme="light")
    choose(page, 0, 2)
    levels = page.page.evaluate(
        """[[40, 39], [40, 70]].map(([row, column]) => {
             const middle = (at) => (at + 0.5) * $('picture').width / side;
             return $('picture').getContext('2d').getImageData(middle(column), middle(row), 1, 1).data[0];
           })"""
    )
    assert levels[0] < 60
    assert levels[1] > 240


def test_the_whole_page_by_keyboard_alone(opened, seen):
    page = opened()
    press, focused = page.page.keyboard.press, lambda: page.page.evaluate("document.activeElement.id")
    choose(page, 0, 2)
    page.page.focus("#grid [tabindex='0']")
    for key in ("Home", "ArrowDown", "ArrowDown", "End", "ArrowLeft"):
        press(key)
    layer, head = 2, 10
    assert page.text("#detail-title") == f"Layer {layer}, head {head}"
    for _ in range(12):
        press("Tab")
        if focused() == "map":
            break
    assert focused() == "map"
    row, column = page.page.evaluate("[map.row, map.column]")
    steps = {
        "Home": (0, None),
        "ArrowRight": (0, 1),
        "ArrowDown": (1, 0),
        "ArrowLeft": (0, -1),
        "PageUp": (-10, 0),
        "ArrowUp": (-1, 0),
        "PageDown": (10, 0),
        "End": (0, 99),
    }
    for key, (down, right) in steps.items():
        press(key)
        row = min(max(row + down, 0), 99)
        column = 0 if right is None else min(max(column + right, 0), 99)
        assert page.text("#readout") == says(seen, layer, head, row, column)
        assert seen.reading.tokens[row] in page.text("#from")
    press("Tab")
    assert page.page.evaluate("document.activeElement.parentElement.id") == "words"
    press("Home")
    assert page.text("#from").startswith("From [CLS] (token 0)")


def test_the_tables_hold_the_weights_of_the_picture(opened, seen):
    page = opened()
    choose(page, 1, 8)
    page.page.click("#words button:nth-of-type(13)")
    page.page.click("#every summary")
    page.page.wait_for_selector("#every tbody td")
    cells = page.page.locator("#every tbody td").all_inner_texts()
    assert cells == [f"{float(weight):.3f}" for weight in seen.weights[1, 8, 12]]
    page.page.click("#pairs summary")
    page.page.wait_for_selector("#pairs tbody tr")
    rows = page.page.locator("#pairs tbody tr").all()
    assert len(rows) == len(seen.reading.tokens)
    first = rows[12].locator("td").first.inner_text()
    key = int(seen.top_keys[1, 8, 12, 0])
    assert first == f"{seen.reading.tokens[key]} {float(seen.weights[1, 8, 12, key]):.3f}"


def test_a_kind_picks_out_its_heads(opened, seen):
    page = opened()
    page.page.click("#kinds button[data-kind=first]")
    shown = page.page.locator("#grid button:not(.away)").count()
    assert shown == sum(facts.verdict.kind == "first" for facts in seen.facts)
    page.page.click("#kinds button[data-kind=first]")
    assert page.page.locator("#grid button:not(.away)").count() == 72


def test_the_panel_follows_the_kind_that_is_picked_out(opened, seen):
    page = opened()
    page.page.click("#kinds button[data-kind=next]")
    assert page.text("#detail-title") == "Layer 1, head 8"
    assert page.page.get_attribute("#grid [aria-current=true]", "class") in (None, "")
    choose(page, 2, 9)  # of another kind: faded no longer, since the panel shows it
    opacity = "getComputedStyle(document.querySelector('#grid [aria-current=true] canvas')).opacity"
    assert page.page.evaluate(opacity) == "1"


def test_a_row_of_the_table_opens_its_head(opened):
    page = opened()
    page.page.click("#all tr[data-at='3.7'] td:nth-child(2)")
    assert page.text("#detail-title") == "Layer 3, head 7"
    assert page.page.url.endswith("#3.7")
    assert page.page.evaluate("document.activeElement.id") == "detail"
    page.page.focus("#all tr[data-at='4.1'] a")
    page.page.keyboard.press("Enter")
    assert page.text("#detail-title") == "Layer 4, head 1"
    assert page.page.get_attribute("#all tr.chosen", "data-at") == "4.1"


@pytest.mark.parametrize("width", [320, 360, 1280])
def test_the_table_of_heads_and_a_long_path_fit(opened, seen, sample, tmp_path, width):
    file = tmp_path / "path.html"
    file.write_text(render(seen, text=sample, origin="/a" + "_long_path" * 23), encoding="utf-8")
    page = opened(file, viewport={"width": width, "height": 700})
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    box = "document.querySelector('.all .wide')"
    assert page.page.evaluate(f"{box}.scrollWidth - {box}.clientWidth") == 0


def test_tokens_keep_their_direction_to_themselves(opened, minilm, tmp_path):
    text = "שלום עולם مرحبا بالعالم this is mixed"
    seen = look(minilm, "all-MiniLM-L6-v2", text)
    file = tmp_path / "right-to-left.html"
    file.write_text(render(seen, text=text, origin="a test", start=(0, 2)), encoding="utf-8")
    page = opened(file)
    query, key = seen.of(0, 2).strongest.query, seen.of(0, 2).strongest.key
    assert page.text("#readout") == says(seen, 0, 2, query, key)
    # query, arrow and key stand from left to right, whatever the letters
    left = "[...document.querySelectorAll('#readout bdi')].map(part => part.getBoundingClientRect().x)"
    first, second = page.page.evaluate(left)
    assert first < second
    assert violations(page.page) == []


def test_a_long_text_scrolls_in_its_box(opened, seen, tmp_path):
    file = tmp_path / "box.html"
    file.write_text(render(seen, text="many words " * 2000, origin="a test"), encoding="utf-8")
    page = opened(file)
    assert page.page.evaluate("document.querySelector('blockquote').clientHeight") <= 20 * 16


@pytest.mark.parametrize("place", [(59, 58), (60, 12), (33, 98)])
def test_no_label_touches_the_picked_one(opened, place):
    page = opened()
    page.page.mouse.move(*page.cell(*place))
    overlap = """(() => {
        const found = [];
        for (const [id, horizontal] of [['query-labels', false], ['key-labels', true]]) {
            const canvas = $(id), context = canvas.getContext('2d');
            const scale = canvas.width / canvas.clientWidth;
            const at = (horizontal ? map.column : map.row) + 0.5, reach = 6;
            const from = Math.max(0, (at * map.cell - reach)) * scale, room = 2 * reach * scale;
            const part = horizontal ? [from, 0, room, canvas.height] : [0, from, canvas.width, room];
            found.push(context.getImageData(...part).data.some((value) => value > 0));
        }
        return found;
    })()"""
    assert page.page.evaluate(overlap) == [False, False]


def test_an_address_opens_its_head_and_steps_lead_on(opened, report):
    page = opened()
    page.page.goto(report.as_uri() + "#3.4")
    page.page.wait_for_function("$('detail-title').textContent === 'Layer 3, head 4'")
    page.page.click("#after")
    assert page.text("#detail-title") == "Layer 3, head 5"
    page.page.click("#before")
    page.page.click("#before")
    assert page.text("#detail-title") == "Layer 3, head 3"


def test_enlarged_maps_show_every_label_and_stay_in_their_frame(opened):
    page = opened()
    page.page.click("#large")
    assert page.page.evaluate("map.cell") >= 15
    assert page.page.evaluate("$('map').scrollWidth > $('map').clientWidth")
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.page.focus("#map")
    page.page.keyboard.press("End")
    assert page.page.evaluate("$('map').scrollLeft") > 0


@pytest.mark.parametrize("width", [320, 430, 768, 1180, 2200])
def test_no_width_needs_sideways_scrolling(opened, width):
    page = opened(viewport={"width": width, "height": 700})
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    small = page.page.evaluate(
        "[...document.querySelectorAll('button, summary')].map(b => b.getBoundingClientRect())"
        ".filter(r => r.width && (r.width < 24 || r.height < 24)).length"
    )
    assert small == 0


@pytest.mark.parametrize("width", [320, pytest.param(1280, marks=pytest.mark.slow)])
def test_axe_finds_nothing(opened, width):
    page = opened(color_scheme="light", viewport={"width": width, "height": 900})
    choose(page, 2, 9)
    page.page.click("#pairs summary")
    page.page.click("#every summary")
    page.page.click("#kinds button[data-kind=broad]")
    back = "getComputedStyle(document.body).backgroundColor"
    light = page.page.evaluate(back)

    def themed(theme):
        while (page.page.evaluate(back) == light) is not (theme == "light"):
            page.page.wait_for_timeout(20)

    assert violations_in_both_themes(page.page, themed) == []


def test_the_theme_button_changes_the_colours_and_the_map(opened):
    page = opened(color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    pixel = "[...$('picture').getContext('2d').getImageData(9, 200, 1, 1).data]"
    before = page.page.evaluate(background), page.page.evaluate(pixel)
    page.page.click("#theme")
    after = page.page.evaluate(background), page.page.evaluate(pixel)
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert violations(page.page) == []


def test_printing_shows_a_light_page_with_grid_head_and_table(opened):
    page = opened(color_scheme="dark")
    pdf = page.page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 9
    page.page.emulate_media(media="print")
    assert page.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_without_javascript_the_table_of_heads_remains(opened, browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator(".all tbody tr").count() == 72
    assert page.locator("noscript").is_visible()
    context.close()


def test_a_long_text_shows_cells_and_exact_strongest_keys(opened, long_seen, long_text, tmp_path):
    seen = long_seen
    file = tmp_path / "long.html"
    file.write_text(render(seen, text=long_text, origin="a test", start=(2, 9)), encoding="utf-8")
    page = opened(file)
    row, column = 40, 12
    page.page.mouse.move(*page.cell(row, column))
    mass = float(seen.map[2, 9, row, column])
    assert page.text("#readout").endswith(f": {mass:.3f} on average")
    assert "(320–327) → " in page.text("#readout")
    page.page.mouse.click(*page.cell(row, column))
    assert "(token 320)" in page.text("#from")
    weights = page.page.locator("#top .number").all_inner_texts()
    assert weights == [f"{float(weight):.3f}" for weight in seen.top_weights[2, 9, 320, : len(weights)]]
    assert len(weights) >= 5
    assert violations(page.page) == []


def test_hostile_tokens_are_shown_as_text(opened, minilm, tmp_path):
    text = 'see <script>alert("x")</script> & <img src=x onerror=alert(1)>'
    seen = look(minilm, "all-MiniLM-L6-v2", text)
    file = tmp_path / "hostile.html"
    file.write_text(render(seen, text=text, origin=text), encoding="utf-8")
    page = opened(file)
    assert page.page.locator("#words button").all_inner_texts() == list(seen.reading.tokens)
    assert page.text("blockquote") == text
    assert page.page.locator("img").count() == 0
