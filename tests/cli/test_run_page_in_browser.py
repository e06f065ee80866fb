"""The page of a run in Chromium: each kind of it, by pointer and by keyboard."""

from pathlib import Path

import pytest
from open_page import Page
from tiny_runs import MAKE

from accessible import violations
from headwise.cli.runs.report import render
from headwise.cli.see_run import Options, look_at

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def view_of(tiny_run, tiny_inputs):
    made = {}

    def of(name):
        if name not in made:
            [given, *options] = tiny_inputs[name]
            question = options[1] if options else None
            made[name] = look_at([str(tiny_run(name)), given], Options(question=question))
        return made[name]

    return of


@pytest.fixture(scope="session")
def page_of(view_of, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")

    def of(name):
        file = folder / f"{name}.html"
        if not file.exists():
            file.write_text(render(view_of(name)), encoding="utf-8")
        return file

    return of


@pytest.fixture
def opened(browser, page_of):
    pages = []

    def open_page(name, place="", **options):
        pages.append(Page(browser, page_of(name) if not place else _at(page_of(name), place), **options))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


class _at:
    """A file with a place in it, as `Page` asks for its address."""

    def __init__(self, file, place):
        self.file, self.place = file, place

    def as_uri(self):
        return f"{self.file.as_uri()}#{self.place}"


def says(part, layer, head, query, key):
    weight = float(part.maps[layer, head, query, key])
    return f"{part.queries.labels[query]} → {part.keys.labels[key]}: {weight:.3f}"


@pytest.mark.parametrize("name", list(MAKE))
@pytest.mark.parametrize(("scheme", "width"), [("light", 320), ("dark", 1280)])
def test_axe_finds_nothing_and_no_width_needs_sideways_scrolling(opened, name, scheme, width):
    page = opened(name, color_scheme=scheme, viewport={"width": width, "height": 900})
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    for id in ("pairs", "every"):
        page.page.click(f"#{id} summary")
    assert violations(page.page) == []
    small = page.page.evaluate(
        "[...document.querySelectorAll('button, summary')].map(b => b.getBoundingClientRect())"
        ".filter(r => r.width && (r.width < 24 || r.height < 24)).length"
    )
    assert small == 0


@pytest.mark.parametrize("name", list(MAKE))
def test_every_map_opens_with_its_true_weights(opened, view_of, name):
    page, view = opened(name), view_of(name)
    for part in view.parts:
        for layer, column in ((0, 0), (part.layers - 1, part.heads)):
            named = "mean" if column == part.heads else column
            page.page.evaluate(f"location.hash = '{part.key}.{layer}.{named}'")
            which = (
                f", head {column}" if column < part.heads else ", mean over the heads" if part.heads else ""
            )
            page.page.wait_for_function(
                "title => $('detail-title').textContent === title",
                arg=f"{part.title}, layer {layer}{which}",
            )
            rows, columns = part.maps.shape[-2:]
            for query, key in ((0, 0), (rows - 1, columns - 1), (rows // 2, columns // 2)):
                page.page.mouse.move(*page.cell(query, key))
                assert page.text("#readout") == says(part, layer, column, query, key)


def test_a_translation_opens_with_its_sharpest_alignment(opened, view_of):
    page, view = opened("translation"), view_of("translation")
    cross = view.parts[0]
    assert page.text("#detail-title") == f"Cross-attention, layer {cross.sharpest}, mean over the heads"
    assert view.result.output in page.text(".result")
    assert page.page.locator("#words button").all_inner_texts() == list(cross.queries.labels)
    assert page.page.locator("#key-words span").all_inner_texts() == list(cross.keys.labels)
    page.page.click("#words button:nth-of-type(1)")
    page.page.click("#every summary")
    cells = page.page.locator("#every tbody td").all_inner_texts()
    assert cells == [f"{float(weight):.3f}" for weight in cross.mean(cross.sharpest)[0]]
    strong = int(cross.mean(cross.sharpest)[0].argmax())
    colours = page.page.evaluate("keyWords.map((word) => word.style.backgroundColor)")
    assert colours[strong] != ""


def test_the_whole_page_by_keyboard_alone(opened, view_of):
    page, view = opened("translation", "cross.0.0"), view_of("translation")
    press = page.page.keyboard.press
    page.page.focus("#grid [tabindex='0']")
    press("End")
    assert page.text("#detail-title") == "Cross-attention, layer 0, mean over the heads"
    press("ArrowDown")  # the line below belongs to another part
    assert page.text("#detail-title") == "Encoder self-attention, layer 0, mean over the heads"
    press("Home")
    press("ArrowRight")
    assert page.text("#detail-title") == "Encoder self-attention, layer 0, head 1"
    assert page.page.url.endswith("#encoder.0.1")
    page.page.focus("#map")
    for key in ("Home", "PageUp", "ArrowDown", "ArrowRight", "ArrowRight"):
        press(key)
    assert page.text("#readout") == says(view.parts[1], 0, 1, 1, 2)
    press("Tab")
    assert page.page.evaluate("document.activeElement.parentElement.id") == "words"


def test_patches_are_coloured_by_what_the_class_token_gives_them(opened, view_of):
    page, part = opened("vision", "encoder.0.1"), view_of("vision").parts[0]

    def drawn():
        return page.page.evaluate(
            "[...document.querySelectorAll('#image .patch')].map((one) => +one.getAttribute('fill-opacity'))"
        )

    for query in (0, 7):
        if query:
            page.page.locator(f"#image [data-place='{query}']").click()
        expected = [0.92 * round(float(weight), 3) ** 0.5 for weight in part.maps[0, 1, query, 1:]]
        assert drawn() == pytest.approx(expected, abs=2e-3)
    assert "1,2" in page.text("#from")
    assert page.page.locator("#image .query").count() == 1


def test_a_sound_is_drawn_with_the_frames_that_a_symbol_looks_at(opened, view_of):
    page, view = opened("speech", "encoder.0.0"), view_of("speech")
    frames = view.part("encoder").keys.labels
    assert page.page.locator("#sound rect:not(.tick)").count() == len(frames)
    width = page.page.locator("#sound").bounding_box()["width"]
    page.page.locator("#sound").click(position={"x": width * 4.5 / len(frames), "y": 40})
    assert frames[4] in page.text("#from")
    heard = [symbol for _, symbol, _ in view.result.symbols]
    assert page.page.locator("#spoken line").count() == len(heard)


def test_a_row_of_a_table_opens_its_head(opened):
    page = opened("translation")
    page.page.click(".all tr[data-at='1.2'] td:nth-child(2)")
    assert page.text("#detail-title") == "Encoder self-attention, layer 0, head 2"
    assert page.page.locator(".all tr.chosen").count() == 1


def test_without_javascript_the_result_and_the_tables_remain(browser, page_of, view_of):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_of("question-answering").as_uri())
    view = view_of("question-answering")
    assert page.inner_text("mark") == view.result.output
    assert page.locator(".all tbody tr").count() == sum(map(len, view.parts[0].facts))
    assert page.locator("noscript").is_visible()
    context.close()


def test_printing_shows_a_light_page(opened):
    page = opened("vision", color_scheme="dark")
    assert page.page.pdf(format="A4").startswith(b"%PDF")


def test_a_long_input_is_shown_in_cells(browser, tiny_run, tmp_path):
    view = look_at([str(tiny_run("translation")), "one two. " * 140], Options(beam=1))
    encoder = view.part("encoder")
    assert not encoder.keys.whole
    file = Path(tmp_path / "long.html")
    file.write_text(render(view), encoding="utf-8")
    page = Page(browser, file)
    page.page.evaluate("location.hash = 'encoder.0.0'")
    page.page.wait_for_function("$('detail-title').textContent.startsWith('Encoder')")
    page.page.mouse.move(*page.cell(0, 1))
    assert page.text("#readout").endswith(f"{float(encoder.maps[0, 0, 0, 1]):.3f} on average")
    assert "256 × 256 cells" in page.text(".top")
    page.close()
