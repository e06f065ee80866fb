"""Grading, reviews and progress by the server; nothing tells an answer before it is submitted."""

import json
import re

import pytest

from headwise.study.keys import names
from headwise.study.progress import NotSaved

RIGHT = {
    "how-many": "86,753 heads",
    "what-name": "the secretword!",
    "what-shape": "(2, 13, 7)",
}


def option(guide, question, *places):
    return [names(guide.questions()[question])[place] for place in places]


def answer(server, question, given, *, id="answer-0001", rev=1, **more):
    body = {"id": id, "guide": "small", "version": "current", "rev": rev, "given": given, "seed": 5, **more}
    return server.post(f"/api/quiz/{question}/answer", body)


# rstudio/learnr#192, JuiceMind/JuiceMind#825
def test_no_page_and_no_answer_of_the_server_tells_an_answer_before_it_is_submitted(server):
    pages = server.site.shown().pages
    served = [path.relative_to(pages).as_posix() for path in pages.rglob("*") if path.is_file()]
    assert "first-quiz/index.html" in served
    assert "search.json" in served
    asked = [f"/g/small/{path}" for path in served]
    asked += ["/api/progress", "/api/queue?deck=deck", "/api/export", "/api/heads"]
    asked += ["/g/small/answers.json", "/g/small/answers/", "/g/small/keys.json", "/g/small/../guide.json"]
    for path in asked:
        body = server.get(path)[2]
        text = body if isinstance(body, str) else json.dumps(body)
        assert "SECRET" not in text, path
        assert "86753" not in text, path
    page = (pages / "first-quiz" / "index.html").read_text()
    assert not re.search(r"data-(correct|right|why)|aria-(checked|invalid)", page)


def test_options_have_opaque_names_in_an_order_that_tells_nothing(server, kept_guide):
    page = (server.site.shown().pages / "first-quiz" / "index.html").read_text()
    shown = re.findall(r'data-option="([^"]+)"', page)
    assert sorted(shown[:2]) == shown[:2]
    assert set(shown[:2]) == set(option(kept_guide, "how-wide", 0, 1))
    items = re.findall(r'data-item="([^"]+)"', page)
    assert items != option(kept_guide, "what-order", 0, 1, 2)


# cognitive-engineering-lab/mdbook-quiz#30, rust-book#387
def test_after_grading_every_option_says_why(server, kept_guide):
    status, _, body = answer(server, "how-wide", option(kept_guide, "how-wide", 1))
    assert status == 200
    result = body["result"]
    assert (result["correct"], result["verdict"]) == (False, "Not right.")
    told = {
        (one["chosen"], one["correct"], re.sub("<[^>]*>", "", one["why"]).strip())
        for one in result["options"]
    }
    assert told == {(False, True, "SECRETRIGHT"), (True, False, "SECRETWRONG")}
    assert "SECRETEXPLAIN" in result["explain"]
    assert result["again"] == "first#wide"


@pytest.mark.parametrize("question", RIGHT)
def test_typed_answers_are_taken_as_people_write_them(server, question):
    _, _, body = answer(server, question, RIGHT[question])
    assert body["result"]["correct"] is True
    assert body["result"]["verdict"] == "Right."


def test_orders_and_several_choices(server, kept_guide):
    right = option(kept_guide, "what-order", 0, 1, 2)
    assert answer(server, "what-order", right)[2]["result"]["correct"]
    swapped = answer(server, "what-order", right[::-1], id="answer-0002")[2]["result"]
    assert swapped["verdict"] == "Not right yet: 1 of 3 stands in its place."
    part = answer(server, "which-hold", option(kept_guide, "which-hold", 0), id="answer-0003")[2]["result"]
    assert part["score"] == pytest.approx(2 / 3)
    assert part["verdict"] == "Not right yet. You judged 2 of 3 options correctly."


def test_what_cannot_be_graded_is_no_attempt(server):
    for question, given, says in (
        ("how-many", "many", "“many” is no number: write it as"),
        ("how-many", "12 lamps", "alone or with the unit of this question, heads."),
        ("how-many", "x" * 150, f"“{'x' * 59}…” is no number"),
        ("what-shape", "x" * 150, f"“{'x' * 59}…” is no shape"),
        ("how-many", "", "Write a number first"),
        ("how-wide", [], "Choose an answer first"),
        ("how-wide", ["abcdef"], "reload"),
        ("what-shape", "big", "is no shape"),
        ("what-order", ["x"], "reload"),
    ):
        status, _, body = answer(server, question, given)
        assert (status, body["error"]) == (422, "not-an-answer")
        assert says in body["message"]
        assert "SECRET" not in json.dumps(body)
    assert server.get("/api/progress")[2]["answers"] == {}


def test_an_answer_that_is_too_long_is_told_in_one_plain_line(server):
    status, _, body = answer(server, "how-many", "7" * 5000)
    assert status == 422
    assert body["message"] == "The answer has 5,000 characters, and at most 1,000 can be kept: shorten it."
    assert "longer than 200 characters" in answer(server, "how-many", "7" * 999)[2]["message"]


# cpinitiative/usaco-guide#2155
def test_answers_are_kept_in_any_order_and_count_once(server, kept_guide):
    answer(server, "what-name", "wrong", id="answer-0001")
    answer(server, "how-wide", option(kept_guide, "how-wide", 0), id="answer-0002")
    again = answer(server, "how-wide", option(kept_guide, "how-wide", 0), id="answer-0002")
    assert again[2]["repeated"] is True
    assert again[2]["result"]["correct"] is True
    kept = server.get("/api/progress")[2]["answers"]
    assert kept["how-wide"]["1"]["attempts"] == 1
    assert kept["how-wide"]["1"]["seed"] == 5
    assert kept["what-name"]["1"]["given"] == "wrong"
    status, _, body = answer(server, "how-wide", option(kept_guide, "how-wide", 1), id="answer-0002")
    assert (status, body["error"]) == (422, "refused")


def test_a_page_with_another_revision_is_told_to_reload(server):
    status, _, body = answer(server, "how-many", "8", rev=2)
    assert (status, body["error"]) == (409, "conflict")
    assert "SECRET" not in json.dumps(body)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/quiz/nothing/answer", {"rev": 1, "given": "", "id": "answer-0001"}),
        ("/api/quiz/how-many/answer", {"rev": 1, "given": "", "id": "answer-0001", "version": "7"}),
        ("/api/quiz/how-many/answer", {"rev": 1, "given": "", "id": "answer-0001", "guide": "other"}),
        ("/api/reviews", {"card": "nothing", "rev": 1, "rating": 3, "id": "review-0001"}),
        ("/api/marks", {"activity": "nothing", "done": True, "id": "mark-00001"}),
        ("/api/nothing", {}),
    ],
)
def test_what_is_not_there_is_told(server, path, body):
    status, _, answered = server.post(path, body)
    assert (status, answered["error"]) == (404, "not-there")
    assert server.get("/api/queue?deck=nothing")[0] == 404
    assert server.get("/api/progress?guide=other")[0] == 404


@pytest.mark.parametrize(
    "change",
    [
        {"given": {}},
        {"given": 5},
        {"given": None},
        {"given": [5]},
        {"given": "x" * 1001},
        {"id": 5},
        {"id": ""},
        {"seed": -1},
        {"seed": 2**32},
        {"version": 3},
        {"version": "../3"},
    ],
)
def test_what_makes_no_sense_is_refused(server, change):
    status, _, body = server.post(
        "/api/quiz/how-many/answer",
        {"id": "answer-0001", "rev": 1, "given": "8", "seed": 1, "version": "current", **change},
    )
    assert status == 422
    assert body["error"] in ("refused", "not-an-answer")
    assert server.get("/api/progress")[2]["answers"] == {}


def test_ten_reviews_and_an_undo(server):
    queue = server.get("/api/queue?deck=deck")[2]
    assert [one["card"] for one in queue["cards"]] == ["card-one", "card-two"]
    for number in range(10):
        due = (queue["cards"] or queue["ahead"])[0]  # rated "again", both come a little later
        status, _, body = server.post(
            "/api/reviews",
            {
                "id": f"review-{number:04d}",
                "card": due["card"],
                "rev": due["rev"],
                "rating": 1,
                "expects": due["head"],
                "duration": 900,
            },
        )
        assert status == 200
        queue = body["queue"]
    assert queue["done"] == 10
    stale = {"id": "review-9999", "card": due["card"], "rev": 1, "rating": 3, "expects": due["head"]}
    status, _, body = server.post("/api/reviews", stale)
    assert (status, body["error"]) == (409, "conflict")
    undone = server.post("/api/reviews/undo", {"id": "undo-00001", "undoes": queue["undo"], "deck": "deck"})[
        2
    ]
    assert undone["queue"]["done"] == 9
    assert undone["card"] == due["card"]


def test_export_and_import_by_the_page(server, tmp_path):
    server.post("/api/marks", {"id": "mark-00001", "activity": "first", "done": True})
    status, headers, made = server.get("/api/export")
    assert (status, headers["cache-control"]) == (200, "no-store")
    assert re.fullmatch(
        r'attachment; filename="headwise-progress-\d{4}-\d\d-\d\d\.json"', headers["content-disposition"]
    )
    assert server.post("/api/import", made)[2]["added"]["known"] == 1
    made["marks"][0]["done"] = "yes"
    status, _, body = server.post("/api/import", made)
    assert (status, body["error"]) == (422, "bad-import")
    assert "marks, number 1" in body["message"]


def test_the_profile_that_the_page_shows_is_erased_and_no_other(server):
    server.post("/api/marks", {"id": "mark-00001", "activity": "first", "done": True})
    assert server.get("/api/kept")[2] == {"reviews": 0, "answers": 0, "marks": 1}
    for body in ({"profile": "eve"}, {}, {"profile": None}):
        status, _, answered = server.post("/api/erase", body)
        assert (status, answered["error"]) == (409, "conflict")
        assert "the server keeps 'default' now: reload the page" in answered["message"]
    assert server.get("/api/kept")[2]["marks"] == 1
    assert server.get("/api/erase")[0] == 405
    status, _, answered = server.post("/api/erase", {"profile": "default"})
    assert (status, answered) == (200, {"erased": {"reviews": 0, "answers": 0, "marks": 1}})
    assert server.get("/api/progress")[2]["marks"] == {}


def test_a_full_disk_is_told_and_grades_nothing(server, monkeypatch):
    def full(self):
        raise NotSaved("The disk is full, so nothing was saved.")

    monkeypatch.setattr("headwise.study.progress.Store.writing", full)
    status, _, body = answer(server, "how-many", "86753")
    assert (status, body["error"]) == (507, "not-saved")
    assert "SECRET" not in json.dumps(body)
    review = {"id": "review-0001", "card": "card-one", "rev": 1, "rating": 3, "expects": None}
    assert server.post("/api/reviews", review)[0] == 507


# knowledgefutures/pubpub#1314
def test_the_current_guide_is_at_its_own_address(server):
    status, headers, body = server.get("/g/small/")
    assert status == 200
    assert "A small guide" in body
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert server.get("/")[:2][0] == 302
    assert server.get("/g/small")[1]["location"] == "/g/small/"
    assert server.get("/g/small/first")[1]["location"] == "/g/small/first/"


def test_what_is_unchanged_is_not_sent_again(server):
    tag = server.get("/g/small/static/guide.css")[1]["etag"]
    status, _, body = server.get("/g/small/static/guide.css", {"If-None-Match": tag})
    assert (status, body) == (304, "")


def test_heads_that_cannot_be_shown_say_why(server, monkeypatch):
    monkeypatch.setattr(server.api.heads, "_missing", lambda: "the model is not installed")
    assert server.get("/api/heads")[2] == {"available": False, "why": "the model is not installed"}
    status, _, body = server.post("/api/heads", {"text": "hello"})
    assert (status, body["error"]) == (503, "no-heads")
    assert server.post("/api/heads", {"text": "x" * 3000})[0] == 422
    assert server.post("/api/heads", {"text": 5})[0] == 422


def test_live_heads_are_those_of_the_model(server):
    pytest.importorskip("tokenizers")
    if not server.get("/api/heads")[2]["available"]:
        pytest.skip("the embedded model is not installed")
    status, _, found = server.post("/api/heads", {"text": "The lamp went out."})
    assert status == 200
    count = len(found["tokens"])
    assert found["tokens"][0] == "[CLS]"
    assert len(found["weights"]) == found["layers"] * found["heads"] * count * count
    row = found["weights"][:count]
    assert sum(row) == pytest.approx(found["unit"], abs=count)
    assert server.post("/api/heads", {"text": "   "})[0] == 422
    assert server.post("/api/heads", {"text": "word " * 300})[0] == 422
