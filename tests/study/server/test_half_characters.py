"""Half of a character (a lone surrogate) in an answer: no file can hold it, so it is never kept; where it is
in a file of progress already, pages, export and errors still come."""

import json
import os

import pytest
from browser_modules import modules

from headwise.cli.errors import UserError
from headwise.cli.study_transfer import write_progress
from headwise.cli.whole_file import write
from headwise.study.progress import (
    BadImport,
    Refused,
    Store,
    add_answer,
    export_progress,
    import_progress,
    progress_file,
)

HALF = "secret\ud83d"
NOON = 1_796_040_000_000


def kept_before(store):
    """An answer as an earlier version may have kept it."""
    with store.writing() as connection:
        connection.execute(
            "INSERT INTO answers (id, guide, question, rev, version, given, correct, score, seed, at) "
            "VALUES ('answer-old', 'small', 'what-name', 1, 'current', ?, 0, 0, 1, ?)",
            (json.dumps(HALF), NOON),
        )


@pytest.mark.parametrize("question", ["what-name", "how-many"])
def test_an_answer_with_half_of_a_character_is_refused_and_harms_nothing(server, question):
    raw = b'{"id": "answer-0001", "guide": "small", "rev": 1, "seed": 1, "given": "8\\ud83d"}'
    status, _, body = server.post(f"/api/quiz/{question}/answer", raw)
    assert (status, body["error"]) == (422, "refused")
    assert "half of a character ('\\ud83d') stands at place 2" in body["message"]
    assert server.get("/api/progress")[2]["answers"] == {}
    assert server.get("/api/export")[2]["answers"] == []


def test_whole_characters_of_any_kind_are_kept(server):
    given = "d’accord 🙂 ſ 中"
    body = {"id": "answer-0001", "guide": "small", "rev": 1, "seed": 1, "given": given}
    assert server.post("/api/quiz/what-name/answer", body)[0] == 200
    assert server.get("/api/progress")[2]["answers"]["what-name"]["1"]["given"] == given


def test_one_that_was_kept_before_hurts_no_page_and_no_export(server):
    kept_before(server.store)
    status, _, body = server.get("/api/progress")
    assert (status, body["answers"]["what-name"]["1"]["given"]) == (200, HALF)
    status, _, made = server.get("/api/export")
    assert (status, made["answers"][0]["given"]) == (200, HALF)


def test_an_error_that_quotes_it_still_arrives(server):
    status, _, body = server.post("/api/marks", b'{"id": "mark-00001", "activity": "\\ud800", "done": true}')
    assert (status, body["error"]) == (404, "not-there")
    assert server.post("/api/settings", b'{"\\ud800": 1}')[0] == 422
    assert (
        server.post("/api/import", b'{"format": "headwise-study-progress", "version": "\\ud800"}')[0] == 422
    )


def test_neither_the_log_nor_an_import_takes_it(server):
    entry = {"guide": "small", "question": "what-name", "rev": 1, "version": "current", "seed": 1}
    for given in (HALF, ["abcdef", HALF]):
        with pytest.raises(Refused, match="half of a character"):
            add_answer(
                server.store, id="answer-0001", **entry, given=given, correct=False, score=0.0, clock=NOON
            )
    made = export_progress(server.store, clock=NOON)
    at = "2026-11-30T12:00:00.000Z"
    made["answers"] = [{"id": "answer-0001", **entry, "given": HALF, "correct": False, "score": 0, "at": at}]
    with pytest.raises(BadImport, match="answers, number 1: given: half of a character"):
        import_progress(server.store, made, clock=NOON)


def test_the_command_exports_it_and_leaves_no_scratch_file(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWISE_STUDY_DATA", str(tmp_path / "data"))
    store = Store(progress_file())
    kept_before(store)
    store.close()
    out = tmp_path / "out" / "progress.json"
    out.parent.mkdir()
    write_progress(out, "default")
    assert json.loads(out.read_bytes().decode("ascii"))["answers"][0]["given"] == HALF
    for error, told in ((KeyboardInterrupt(), KeyboardInterrupt), (OSError(28, "full"), UserError)):

        def broken(_, error=error):
            raise error

        monkeypatch.setattr(os, "fsync", broken)
        with pytest.raises(told):
            write(out, "{}\n")
        assert list(out.parent.iterdir()) == [out]


@pytest.mark.browser
def test_the_browser_refuses_the_same(chromium):
    with modules(chromium) as page:
        found = page.evaluate(
            """async (texts) => {
              const { checkGiven } = await import("/transfer.js");
              return texts.map((given) => {
                try { return checkGiven(given) === given; } catch (error) { return error.name; }
              });
            }""",
            ["a 🙂", ["a1b2c3"], "x" * 1001, [5]],
        )
        half = page.evaluate(
            """async () => {
              const { checkGiven } = await import("/transfer.js");
              return ["secret\\ud83d", "\\ude42\\ud83d", ["a", "\\udfff"]].map((given) => {
                try { return checkGiven(given); } catch (error) { return error.name; }
              });
            }"""
        )
    assert found == [True, True, "refused", "refused"]
    assert half == ["refused"] * 3
