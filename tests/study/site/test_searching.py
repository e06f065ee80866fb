"""Search: what the script finds, and what the page says where there is nothing."""

import pytest
from browser_modules import modules
from ids_of_places import NOWHERE, ONE_PLACE, PLACES, WITHIN
from static_host import until

pytestmark = pytest.mark.browser

WORDS = {
    "output": "Cut the output matrix W^O into slabs, one for each head.",
    "scores": "Scores are softmax(QK^T/√d_k) V; they are divided by √d_k before the softmax.",
    "project": "Each head has its own W^Q_i, d_model × d_k numbers.",
    "adam": "The paper sets β_1 = 0.9, β_2 = 0.98 and ε = 10⁻⁹, and 4,000 steps.",
    "heads": "The base model has h = 8 heads.",
    "keys": "In code: head_key and odd_keys, and a handkerchief.",
}
INDEX = {
    "entries": [
        {"kind": "Lesson", "title": name, "in": "", "url": f"one/#{name}", "words": words, "sources": []}
        for name, words in WORDS.items()
    ],
    "anchors": {},
}


@pytest.fixture(scope="module")
def scripts(chromium):
    with modules(chromium) as page:
        yield page


def found(scripts, query):
    return scripts.evaluate(
        """async ([query, index]) => {
            const { find, excerpt } = await import('/finding.js');
            const { how, found } = find(query, index);
            return [how, found.map((one) => one.title), found.map((one) => excerpt(one, query, how))];
        }""",
        [query, INDEX],
    )


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("W^O", ["output"]),
        ("w^o", ["output"]),
        ("QK^T", ["scores"]),
        (r"QK^\top", ["scores"]),
        ("QKᵀ", ["scores"]),
        ("K^T", ["scores"]),
        ("d_k", ["scores", "project"]),
        ("dₖ", ["scores", "project"]),
        ("sqrt(d_k)", ["scores"]),
        ("√d_k", ["scores"]),
        ("√(d_k)", ["scores"]),
        (r"\sqrt{d_k}", ["scores"]),
        (r"\frac{QK^\top}{\sqrt{d_k}}", ["scores"]),
        ("softmax QK^T", ["scores"]),
        ("W_i^Q", ["project"]),
        ("W^Q_i", ["project"]),
        (r"d_{\text{model}}", ["project"]),
        ("softmax", ["scores"]),
        ("β2", ["adam"]),
        ("β₂", ["adam"]),
        ("beta2", ["adam"]),
        (r"\beta_2", ["adam"]),
        ("epsilon", ["adam"]),
        ("10^-9", ["adam"]),
        ("4000 steps", ["adam"]),
        ("h=8", ["heads"]),
        ("h = 8", ["heads"]),
        ("slabs, each", ["output"]),
        ("W^K", []),
        ("h=9", []),
        ("(", ["scores"]),
        ("\\", []),
        ("[a-z", []),
        ("*", []),
    ],
)
def test_a_symbol_is_found_however_it_is_typed(scripts, query, titles):
    assert sorted(found(scripts, query)[1]) == sorted(titles)


def test_a_formula_that_nothing_has_is_found_by_its_parts_and_said_so(scripts):
    how, titles, excerpts = found(scripts, "d_k = QK^T")
    assert (how, titles) == ("parts", ["scores"])
    assert "QK^T" in excerpts[0]


def test_an_excerpt_is_cut_around_what_was_found(scripts):
    far = {**INDEX["entries"][0], "words": "word " * 100 + "the root √d_k comes late"}
    for query in ("sqrt(d_k)", "root"):
        cut = scripts.evaluate(
            """async ([query, entry]) => {
                const { find, excerpt } = await import('/finding.js');
                return excerpt(entry, query, find(query, { entries: [entry], anchors: {} }).how);
            }""",
            [query, far],
        )
        assert cut.startswith("… word")
        assert cut.endswith("the root √d_k comes late")


def test_a_place_is_found_by_every_id_of_it_and_of_what_lies_within(scripts):
    """arXiv/html_feedback#6867: readers tell of places by the ids that their page has."""
    asked = {**ONE_PLACE, **WITHIN}
    for written in (str, str.lower, str.upper, "{}.".format, "https://arxiv.org/html/1706.03762v7#{}".format):
        found = scripts.evaluate(
            """async ([ids, places]) => {
                const { anchorOf } = await import('/finding.js');
                return ids.map((id) => anchorOf(id, Object.fromEntries(places.map((place) => [place, '']))));
            }""",
            [[written(one) for one in asked] + list(NOWHERE), PLACES],
        )
        assert dict(zip([*asked, *NOWHERE], found, strict=True)) == {
            **asked,
            **dict.fromkeys(NOWHERE),
        }


@pytest.mark.parametrize(
    ("word", "nearest"), [("sofmax", "softmax"), ("sclabs", "slabs"), ("haedkerchief", "handkerchief")]
)
def test_the_nearest_known_word_comes_first(scripts, word, nearest):
    assert (
        scripts.evaluate(
            "async ([word, index]) => (await import('/finding.js')).nearest(word, index)[0]", [word, INDEX]
        )
        == nearest
    )


def search(page, query):
    page.get_by_role("searchbox", name="Search for").fill(query)


def test_nothing_found_gives_help(visit):
    page = visit().open("search/")
    help_box = page.locator("[data-search-help]")
    assert not help_box.is_visible()
    search(page, "joinde")
    until(page, "document.querySelector('[data-search-told]').textContent.includes('Nothing')")
    assert help_box.get_by_role("heading", name="What can be searched").is_visible()
    assert "S3.SS2.SSS2.p1" in help_box.inner_text()
    help_box.get_by_role("link", name="joined").click()
    page.wait_for_selector(".result")
    assert page.locator(".result a").first.get_attribute("href") == "../second/#join"
    assert not help_box.is_visible()


def test_words_that_stand_apart_are_offered_one_by_one(visit):
    page = visit().open("search/?q=joined+zebra")
    until(page, "document.querySelector('[data-search-told]').textContent.includes('Nothing')")
    assert page.locator("[data-search-instead] a").all_inner_texts() == ["joined"]


def test_a_word_that_is_asked_twice_is_offered_once(visit):
    page = visit().open("search/?q=%3Cjoined%3Ezebra(1)%3C/joined%3E")
    until(page, "document.querySelector('[data-search-told]').textContent.includes('Nothing')")
    offered = page.locator("[data-search-instead] a").all_inner_texts()
    assert "joined" in offered
    assert len(offered) == len(set(offered))


def test_the_address_holds_what_is_asked(visit):
    page = visit().open("search/")
    search(page, "joined heads")
    page.keyboard.press("Enter")  # before the pause after which typing is taken
    assert page.url.endswith("?q=joined%20heads")
    page.reload()
    page.wait_for_selector(".result")
    assert page.get_by_role("searchbox", name="Search for").input_value() == "joined heads"


def test_a_place_that_the_paper_has_not_leads_to_the_one_above(visit):
    page = visit().open("search/?q=S3.SS2.SSS2.p9")
    until(page, "document.querySelector('[data-search-told]').textContent.includes('no place')")
    assert page.locator("[data-search-instead] a").all_inner_texts() == ["S3"]


def test_going_back_from_a_block_found_by_its_id_leads_to_where_one_asked(visit):
    one = visit()
    page = one.open("second/")
    page.get_by_role("searchbox", name="Search the guide").fill("S3.SS2.SSS2.p1.6")
    page.keyboard.press("Enter")
    page.wait_for_url("**/first/#ours", wait_until="load")
    until(page, "document.querySelector('#ours').getBoundingClientRect().top < innerHeight")
    page.go_back()
    page.wait_for_url("**/second/", wait_until="commit")
