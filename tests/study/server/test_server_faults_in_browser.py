"""A server that is gone, a full disk, a clock that was set back: told on the page, and nothing is lost."""

import pytest
from learner import Learner
from learning_steps import form, submit, turn, waits_for
from served import Served

from headwise.study.progress import NotSaved, Store, add_review

pytestmark = pytest.mark.browser


def reviews(server):
    return server.get("/api/export")[2]["reviews"]


def test_a_full_disk_keeps_the_card_and_the_review_can_be_sent_again(learner, server, monkeypatch):
    here = learner(f"{server.address}/g/small", expected=[507])
    page = here.open("deck/")
    turn(page)

    def full(self):
        raise NotSaved("The disk is full, so nothing was saved.")

    with monkeypatch.context() as patch:
        patch.setattr("headwise.study.progress.Store.writing", full)
        page.keyboard.press("3")
        waits_for(page, "The disk is full, so nothing was saved.")
        assert page.locator(".not-saved").evaluate("(one) => document.activeElement === one")
    page.keyboard.press("3")  # the first has to arrive, or be given up
    page.get_by_role("button", name="Try again").click()
    waits_for(page, "1 review today")
    assert len(reviews(server)) == 1
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.includes('outbox'))") == []


def test_a_review_that_did_not_arrive_is_sent_when_a_page_is_opened_next(
    chromium, kept_guide, built, tmp_path
):
    server = Served(kept_guide.folder, built, store=Store(tmp_path / "progress.sqlite3"))
    here = Learner(chromium, f"{server.address}/g/small")
    here._said = lambda page, message: None  # a browser complains of a server that is gone
    here.page = here.tab()
    page = here.open("deck/")
    turn(page)
    here.context.route("**/api/reviews", lambda route: route.abort())
    page.keyboard.press("3")
    waits_for(page, "The server doesn’t answer")
    assert reviews(server) == []
    page.close()
    here.context.unroute("**/api/reviews")
    later = here.open("", here.tab())
    assert (
        "1 entry that had not reached the server the last time is kept now."
        in later.locator("[data-told]").inner_text()
    )
    assert len(reviews(server)) == 1
    here.open("", later)
    assert len(reviews(server)) == 1
    here.context.close()
    server.close()


def test_an_answer_that_got_lost_on_the_way_back_counts_once(learner, server):
    here = learner(f"{server.address}/g/small", expected=[504])
    page = here.open("deck/")
    turn(page)
    here.context.route("**/api/reviews", lambda route: (route.fetch(), route.fulfill(status=504, body="")))
    page.keyboard.press("3")
    waits_for(page, "The server failed (504)")
    assert len(reviews(server)) == 1
    here.context.unroute("**/api/reviews")
    page.get_by_role("button", name="Try again").click()
    waits_for(page, "1 review today")
    assert len(reviews(server)) == 1


def test_what_one_profile_could_not_send_is_not_counted_for_another(learner, server):
    here = learner(f"{server.address}/g/small")
    page = here.open("")
    page.evaluate(
        """() => localStorage.setItem("headwise-study-outbox/entry-0001", JSON.stringify({
          path: "/marks", profile: "somebody-else", when: 1,
          body: { id: "entry-0001", guide: "small", activity: "first", done: true },
        }))"""
    )
    here.open("")
    assert server.get("/api/progress")[2]["marks"] == {}


def test_an_answer_stays_in_the_form_while_the_server_is_gone(learner, server, monkeypatch):
    here = learner(f"{server.address}/g/small", expected=[507])
    page = here.open("first-quiz/")
    form(page, "how-many").get_by_role("textbox").fill("86753")

    def full(self):
        raise NotSaved("The disk is full, so nothing was saved.")

    with monkeypatch.context() as patch:
        patch.setattr("headwise.study.progress.Store.writing", full)
        assert "Your answer is still in the form" in submit(page, "how-many")
        assert "SECRET" not in page.content()
    form(page, "how-many").get_by_role("button", name="Check").click()
    page.wait_for_function("() => document.body.textContent.includes('SECRETNUMBER')")
    assert server.get("/api/progress")[2]["answers"]["how-many"]["1"]["attempts"] == 1


def test_a_clock_that_was_set_back_is_told_on_every_page(learner, server):
    ahead = server.api.clock() + 40 * 86_400_000
    add_review(
        server.store,
        id="review-0001",
        guide="small",
        card="card-one",
        rev=1,
        rating=3,
        expects=None,
        clock=ahead,
    )
    here = learner(f"{server.address}/g/small")
    for path in ("", "deck/", "first/"):
        page = here.open(path)
        page.wait_for_function(
            "() => document.querySelector('[data-told]').innerText.includes('was the clock set back?')"
        )


def test_an_earlier_wording_is_named(learner, server):
    from headwise.study.progress import add_answer

    add_answer(
        server.store,
        id="answer-0001",
        guide="small",
        question="how-many",
        rev=7,
        version="current",
        given="8",
        correct=False,
        score=0.0,
        seed=1,
        clock=server.api.clock(),
    )
    page = learner(f"{server.address}/g/small").open("first-quiz/")
    page.wait_for_selector("form[data-question=how-many] .earlier-wording:not([hidden])")
    told = form(page, "how-many").locator(".earlier-wording").inner_text()
    assert told.startswith("You answered an earlier wording of this question on ")
    assert told.endswith("not right.")
    assert form(page, "how-many").get_by_role("textbox").is_enabled()


def test_a_browser_that_keeps_nothing_is_told(learner, exported):
    here = learner(exported)
    here.context.add_init_script(
        """const refused = { get() { throw new DOMException("no", "SecurityError"); } };
        Object.defineProperty(window, "localStorage", refused);
        Object.defineProperty(window, "sessionStorage", refused);"""
    )
    page = here.open("first-quiz/")
    page.wait_for_function("() => document.querySelector('[data-told]').innerText.includes('keeps nothing')")
    form(page, "how-many").get_by_role("textbox").fill("86753")
    assert submit(page, "how-many").startswith("Right.")


def test_a_full_storage_of_a_static_site_is_told_and_nothing_is_half_written(learner, exported):
    here = learner(exported)
    page = here.open("deck/")
    turn(page)
    page.evaluate(
        """() => {
          let size = 4_000_000;
          for (let number = 0; size > 0; number += 1) {
            try {
              localStorage.setItem(`other/${number}`, "x".repeat(size));
            } catch {
              size = Math.floor(size / 2);
            }
          }
        }"""
    )
    page.keyboard.press("3")
    waits_for(page, "This browser’s storage is full, so nothing was saved.")
    page.evaluate("localStorage.removeItem('other/0')")
    page.get_by_role("button", name="Try again").click()
    waits_for(page, "1 review today")
    kept = page.evaluate(
        "Object.keys(localStorage).filter((key) => key.startsWith('headwise-study/reviews/'))"
    )
    assert len(kept) == 1
