"""What could not be sent waits in the browser: it counts from when it was made, it is dropped only where the
server has judged it, and then the learner is told."""

import pytest
from learning_steps import waits_for
from outbox import OUTBOX, a_review, put, waiting

from headwise.study.progress import add_review

MINUTE, DAY = 60_000, 86_400_000


def send(server, id, when, *, card="card-one", expects=None, rating=3):
    body = {"id": id, "guide": "small", "card": card, "rev": 1, "rating": rating, "expects": expects}
    return server.post("/api/reviews", {**body, "when": when})


def kept(server):
    return {one["id"]: one for one in server.get("/api/export")[2]["reviews"]}


def instant(server, at):
    from headwise.study.progress.days import written

    return written(at)


def test_a_review_counts_from_when_it_was_given_and_not_from_when_it_arrives(server):
    now = server.api.clock()
    given = now - 3 * DAY
    status, _, body = send(server, "review-0001", given)
    assert status == 200
    assert body["state"]["last"] == given
    assert body["state"]["due"] == given + 10 * MINUTE
    assert kept(server)["review-0001"]["clock"] == instant(server, given)


def test_it_counts_neither_from_the_future_nor_from_before_the_last_review(server):
    ahead = send(server, "review-0001", server.api.clock() + 30 * DAY)[2]["state"]
    assert ahead["last"] <= server.api.clock()
    again = send(server, "review-0002", ahead["last"] - 5 * DAY, expects="review-0001")[2]["state"]
    assert again["last"] == ahead["last"] + 1


@pytest.mark.parametrize("when", [-1, 1.5, "now", True, 2**60])
def test_an_instant_that_is_none_is_refused(server, when):
    status, _, body = send(server, "review-0001", when)
    assert (status, body["error"]) == (422, "refused")
    assert "when" in body["message"]
    assert kept(server) == {}


def test_a_mark_that_arrives_late_does_not_outdo_a_later_one(server):
    now = server.api.clock()
    for id, done, when in (("mark-00002", False, now - MINUTE), ("mark-00001", True, now - DAY)):
        server.post(
            "/api/marks", {"id": id, "guide": "small", "activity": "first", "done": done, "when": when}
        )
    assert server.get("/api/progress")[2]["marks"] == {"first": False}


@pytest.mark.browser
def test_entries_of_another_guide_and_of_cards_that_are_gone_go_on_waiting(learner, server):
    here = learner(f"{server.address}/g/small", expected=[404])
    page = here.open("")
    now = server.api.clock()
    put(page, "other-0001", "/reviews", now - DAY, **a_review(guide="other"))
    put(page, "gone-00001", "/reviews", now - DAY, **a_review(card="gone"))
    put(page, "mine-00001", "/reviews", now - DAY, **a_review())
    page.evaluate("localStorage.setItem('headwise-study-outbox/odd', '{')")
    here.open("")
    assert waiting(page) == [OUTBOX + name for name in ("gone-00001", "odd", "other-0001")]
    assert set(kept(server)) == {"mine-00001"}
    assert kept(server)["mine-00001"]["at"] == instant(server, now - DAY)


@pytest.mark.browser
def test_what_the_server_will_never_take_is_told_before_it_is_dropped(learner, server):
    here = learner(f"{server.address}/g/small", expected=[409])
    page = here.open("")
    now = server.api.clock()
    put(page, "late-00001", "/reviews", now - DAY, **a_review())
    add_review(
        server.store,
        id="elsewhere-1",
        guide="small",
        card="card-one",
        rev=1,
        rating=1,
        expects=None,
        clock=now - MINUTE,
    )
    here.open("")
    told = page.locator("[data-told]").inner_text()
    assert "A rating of" in told
    assert "was not taken. This card was already reviewed elsewhere" in told
    assert waiting(page) == []
    assert set(kept(server)) == {"elsewhere-1"}
    page.get_by_role("button", name="Understood").click()
    assert "A rating of" not in page.locator("[data-told]").inner_text()


@pytest.mark.browser
def test_trying_again_keeps_the_instant_of_the_rating(learner, server):
    here = learner(f"{server.address}/g/small", expected=[504])
    page = here.open("deck/")
    page.get_by_role("button", name="Review 2 cards").click()
    page.keyboard.press("Space")
    page.wait_for_selector(".review-back")
    here.context.route("**/api/reviews", lambda route: route.fulfill(status=504, body=""))
    page.keyboard.press("3")
    waits_for(page, "The server failed (504)")
    (key,) = waiting(page)
    when = page.evaluate("(key) => JSON.parse(localStorage.getItem(key)).when", key)
    here.context.unroute("**/api/reviews")
    page.get_by_role("button", name="Try again").click()
    waits_for(page, "1 review today")
    (found,) = kept(server).values()
    assert found["at"] == instant(server, when)
    assert waiting(page) == []


@pytest.mark.browser
def test_a_decks_page_asks_for_no_card_before_all_that_waits_is_sent(learner, server):
    here = learner(f"{server.address}/g/small")
    page = here.open("")
    now = server.api.clock()
    for number, card in enumerate(("card-one", "card-two")):
        put(
            page, f"wait-0000{number}", "/reviews", now - DAY + number, **{**a_review(card=card), "rating": 4}
        )
    asked = []
    page.on("request", lambda request: asked.append(request.url.split("/api/")[-1].split("?")[0]))
    here.context.route("**/api/reviews", lambda route: (page.wait_for_timeout(300), route.continue_()))
    here.open("deck/")
    page.wait_for_function("document.querySelector('.review-end')")
    assert [name for name in asked if name in ("progress", "reviews", "queue")] == [
        "progress", "reviews", "reviews", "progress", "queue"
    ]  # fmt: skip
    assert "No card is due now" in page.locator(".review-counts").inner_text()
    assert "2 entries that had not reached the server" in page.locator("[data-told]").inner_text()
    assert waiting(page) == []
    assert len(kept(server)) == 2
