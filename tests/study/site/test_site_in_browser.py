"""The site in Chromium, from a plain static host: what a reader sees and does, by pointer and by keyboard."""

import pytest
from page_checks import survey, unfold
from static_host import Visit, until

pytestmark = pytest.mark.browser

PAGES = [
    "",
    "first/",
    "first-mask/",
    "first-quiz/",
    "second/",
    "deck/",
    "more/",
    "sources/",
    "numbers/",
    "library/",
    "search/?q=head",
    "progress/",
    "versions/",
    "answers/",
    "v/1/",
    "v/1/first/",
    "v/2/first/",
]
PLACES = ["", "project/sub"]


@pytest.fixture(scope="module")
def seen(chromium, host):
    """All pages, each visited once. A request to another machine is a problem (mathjax/MathJax#3436,
    quarto-dev/quarto-cli#9404: mathematics "offline" that was fetched from elsewhere)."""
    one = Visit(chromium, host.address)
    found = survey(one, PAGES)
    one.close()
    assert one.problems == []
    return found


def test_axe_finds_nothing_on_any_page_in_either_theme(seen):
    assert seen.violations == []


def test_no_page_scrolls_sideways_at_any_width(seen):
    """KaTeX/KaTeX#521, distillpub/template#71: long formulas were cut off on phones."""
    assert seen.sideways == []


def test_every_page_has_one_heading_and_one_text(seen):
    assert seen.headings == dict.fromkeys(PAGES, (1, 1))


def test_every_page_loads_below_a_path(visit):
    one = visit("project/sub")
    for path in PAGES:
        assert one.open(path).locator("h1").count() == 1, path


def test_a_wide_box_is_reached_and_scrolled_by_keyboard(visit):
    """data-8/textbook#207: a box that scrolls could not be focused."""
    page = visit(viewport={"width": 320, "height": 700}).open("first/")
    unfold(page)
    boxes = page.evaluate(
        """[...document.querySelectorAll('.scroll')].map((box) => {
             const wide = box.scrollWidth > box.clientWidth + 1;
             const may = getComputedStyle(box).overflowY === 'auto';
             const high = may && box.scrollHeight > box.clientHeight + 1;
             return { wide, scrolls: wide || high, tab: box.getAttribute('tabindex') };
           })"""
    )
    assert [box["tab"] for box in boxes] == ["0" if box["scrolls"] else None for box in boxes]
    wide = page.locator(".scroll").nth([box["wide"] for box in boxes].index(True))
    wide.focus()
    page.keyboard.press("ArrowRight")
    until(page, "(box) => box.scrollLeft > 0", arg=wide.element_handle())


HINTS = """[...document.querySelectorAll('.scroll:not(.formula)')].filter((box) => box.offsetParent)
.map((box) => {
  const line = box.nextElementSibling;
  const hint = Boolean(line?.matches('.scroll-hint') && line.offsetHeight);
  return { wide: box.scrollWidth > box.clientWidth + 1, hint, more: box.dataset.more ?? null };
})"""


def test_a_box_says_that_it_scrolls_only_where_it_does(visit):
    page = visit(viewport={"width": 320, "height": 700}).open("first/")
    unfold(page)
    until(page, "document.querySelector('.scroll-hint')")
    narrow = page.evaluate(HINTS)
    assert [box["hint"] for box in narrow] == [box["wide"] for box in narrow]
    assert [box["more"] for box in narrow] == ["after" if box["wide"] else None for box in narrow]
    assert any(box["wide"] for box in narrow)
    page.evaluate("document.querySelectorAll('.scroll').forEach((box) => { box.scrollLeft = 9999; })")
    until(
        page, "document.querySelector('[data-more=before]') && !document.querySelector('[data-more=after]')"
    )
    page.set_viewport_size({"width": 1280, "height": 700})
    page.evaluate("document.querySelectorAll('pre').forEach((code) => { code.textContent = 'short'; })")
    until(page, "![...document.querySelectorAll('.scroll-hint')].some((line) => line.offsetHeight)")
    assert not any(box["wide"] or box["hint"] or box["more"] for box in page.evaluate(HINTS))


def test_a_long_formula_within_a_line_has_a_name_only_while_it_scrolls(visit):
    page = visit(viewport={"width": 320, "height": 700}).open("second/")
    named = page.get_by_role("group", name="Formula: √(d_k + d_v) = √(64 + 64)")
    page.evaluate("document.querySelector('.formula.scroll math').style.paddingRight = '40rem'")
    until(page, "document.querySelector('.formula.scroll').tabIndex === 0")
    assert named.count() == 1
    page.set_viewport_size({"width": 1280, "height": 700})
    until(page, "document.querySelector('.formula.scroll').tabIndex === -1")
    assert named.count() == 0


def test_the_two_links_of_a_source_say_where_they_lead(visit):
    page = visit().open("first/")
    sources = page.locator("#ours .sources")
    away = sources.get_by_role("link", name="Section 3, paragraph 1 on arXiv", exact=True)
    here = sources.get_by_role(
        "link", name="in this guide (what Section 3, paragraph 1 says, and where it is used)"
    )
    assert away.get_attribute("href") == "https://arxiv.org/html/1706.03762v7#S3.p1"
    assert here.get_attribute("href") == "../sources/#S3.p1"
    assert "on arXiv" in away.inner_text()
    names = page.locator("main a").evaluate_all(
        "(links) => links.map((link) => [link.textContent.trim(), link.getAttribute('href')])"
    )
    for name in {name for name, _ in names}:
        assert len({href for other, href in names if other == name}) == 1, name


def test_the_chosen_theme_is_kept_and_set_before_anything_is_drawn(visit):
    one = visit()
    page = one.open("first/")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.get_by_role("button", name="Dark theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    one.context.add_init_script(
        "new MutationObserver(() => { if (document.body && !window.atBody) "
        "window.atBody = document.documentElement.dataset.theme; }).observe(document, "
        "{ childList: true, subtree: true });"
    )
    page = one.open("second/")
    assert page.evaluate("window.atBody") == "dark"
    assert page.get_by_role("button", name="Dark theme").get_attribute("aria-pressed") == "true"


def test_the_systems_theme_holds_until_one_is_chosen(visit):
    page = visit(color_scheme="dark").open("first/")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.emulate_media(color_scheme="light")
    until(page, "document.documentElement.dataset.theme === 'light'")


def test_the_skip_link_comes_first_and_leads_to_the_text(visit):
    page = visit().open("first/")
    until(page, "document.hasFocus()")
    page.keyboard.press("Tab")
    until(page, "document.activeElement.className === 'skip'")
    page.keyboard.press("Enter")
    until(page, "document.activeElement.id === 'main'")


def test_arrow_keys_scroll_and_turn_no_page(visit):
    page = visit(viewport={"width": 800, "height": 500}).open("first/")
    address = page.url
    for key in ("ArrowRight", "ArrowLeft", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    until(page, "scrollY > 0")
    assert page.url == address


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ("S3.SS2.SSS2.p1", ""),
        ("S3.SS2.SSS2.p1.6", ""),
        ("S3.SS2.SSS2.p1.1", "project/sub"),
        ("https://arxiv.org/html/1706.03762v7#S3.SS2.SSS2.p1.6", ""),
    ],
)
def test_any_id_of_the_paper_opens_the_block(visit, asked, place):
    one = visit(place)
    page = one.open("second/")
    page.get_by_role("searchbox", name="Search the guide").fill(asked)
    page.keyboard.press("Enter")
    page.wait_for_url("**/first/#ours", wait_until="commit")


def test_search_finds_words_and_says_how_many(visit):
    page = visit().open("search/")
    page.get_by_role("searchbox", name="Search for").fill("joined")
    page.wait_for_selector(".result")
    assert "result" in page.locator("[data-search-told]").inner_text()
    assert page.locator(".result a").first.get_attribute("href") == "../second/#join"


def test_search_shows_markup_as_text(visit):
    page = visit().open("search/?q=%3Cimg%20src%3Dx%3E")
    assert page.locator("img").count() == 0


def test_a_permanent_link_is_copied(visit):
    """ckeditor/ckeditor5#10613: a link to a place must be easy to have."""
    one = visit()
    one.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = one.open("first/")
    page.locator("#ours .permalink").click()
    until(page, "document.querySelector('.toast').textContent.includes('Permanent link copied')")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{one.address}/v/2/first/#ours"
    assert page.url.endswith("/first/#ours")
    page = one.open(copied.removeprefix(one.address + "/"))
    assert page.locator("#ours").is_visible()


@pytest.mark.parametrize("place", PLACES)
def test_an_old_version_says_so_and_leads_to_the_same_place(visit, place):
    """pkp/pkp-lib#4870: old versions say that they are, and stay."""
    one = visit(place)
    page = one.open("v/1/first/#ours")
    banner = page.locator("[data-banner]")
    until(page, "document.querySelector('[data-newer]').textContent.includes('Version 2 is current')")
    assert "Version 1, frozen on 2026-11-30" in banner.inner_text()
    assert "Four linears" in page.locator("#ours").inner_text()
    banner.get_by_role("link").click()
    page.wait_for_url(f"{one.address}/first/#ours", wait_until="commit")
    assert "Four projections" in page.locator("#ours").inner_text()


def test_the_newest_version_says_that_it_is(visit):
    page = visit().open("v/2/first/")
    until(page, "document.querySelector('[data-newer]').textContent.includes('newest version')")


def test_a_version_that_can_t_ask_says_it_may_be_old(visit):
    one = visit()
    one.context.route("**/versions.json", lambda route: route.abort())
    page = one.open("v/1/first/")
    until(page, "document.querySelector('[data-newer]').textContent.includes('may be newer')")
    one.problems.clear()  # the browser tells of the request that was cut off


def test_formulas_are_in_the_accessibility_tree(visit):
    """KaTeX/KaTeX#820, probml/pml-book#695: formulas were passed over by screen readers."""
    page = visit().open("first/")
    assert page.get_by_role("math").count() >= 2
    assert page.get_by_role("group", name="Formula: d k is the width over h.").count() == 1


def test_lessons_cards_and_tables_can_be_read_without_scripts(visit):
    page = visit(java_script_enabled=False).open("first/")
    assert "Heads are" not in page.locator("main").inner_text()
    assert page.locator(".equation math").count() == 1
    page.locator("#ours details summary").click()
    assert page.locator("#ours .code").is_visible()
    assert page.locator("#see-mask table").count() == 1


@pytest.mark.parametrize("scripts", [False, True])
def test_controls_are_shown_only_where_their_script_runs(visit, scripts):
    page = visit(java_script_enabled=scripts).open("first/")
    page.locator("#see-mask").scroll_into_view_if_needed()
    if scripts:
        page.locator("#see-mask .visual[data-live=yes]").wait_for()
    assert page.locator("#see-mask .controls").is_visible() == scripts


def test_names_and_buttons_fit_a_narrow_window(visit):
    page = visit(viewport={"width": 320, "height": 800}).open("first-quiz/")
    assert page.get_by_role("link", name="Activities", exact=True).is_visible()
    up, down = (page.locator("button.move", has_text=name).first.bounding_box() for name in ("Up", "Down"))
    assert down["x"] - up["x"] - up["width"] >= 4
    assert (
        page.locator("button.move").first.evaluate(
            "(one) => { const range = document.createRange(); range.selectNodeContents(one);"
            " const [box, text] = [one.getBoundingClientRect(), range.getBoundingClientRect()];"
            " return Math.abs(box.top + box.bottom - text.top - text.bottom) / 2; }"
        )
        < 2
    )


def test_a_link_into_a_folded_solution_opens_it(visit):
    page = visit().open("first/#try-solution")
    assert page.locator("#try-solution").evaluate("(one) => one.open")


@pytest.mark.parametrize("hash", ["#100%", "#%E0%A4%A", "#", "#nothing"])
def test_a_hash_that_is_no_id_stops_nothing(visit, hash):
    page = visit().open(f"first/{hash}")
    page.evaluate("location.hash = '#100%'")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#ours .symbol").evaluate("(one) => one.open")


def test_print_opens_what_is_folded_but_no_solution(visit):
    page = visit().open("first/")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#ours .symbol").evaluate("(one) => one.open")
    assert not page.locator("#try .solution").evaluate("(one) => one.open")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not page.locator("#ours .symbol").evaluate("(one) => one.open")
    page.emulate_media(media="print")
    assert not page.locator(".top").is_visible()
    shown = page.locator("#ours .source-place").first.evaluate(
        "(one) => getComputedStyle(one, '::after').content"
    )
    assert "arxiv.org" in shown
