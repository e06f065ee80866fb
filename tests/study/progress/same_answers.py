"""What is asked of the server's log and of the browser's, and what both have to answer."""

A, B, C, D = ("entry-aaaa", "entry-bbbb", "entry-cccc", "entry-dddd")
MINUTE = 60_000


def review(id, expects=None, card="card-one", rating=3, rev=1, **more):
    return ("review", {"id": id, "card": card, "rev": rev, "rating": rating, "expects": expects, **more})


def undo(id, undoes):
    return ("undo", {"id": id, "undoes": undoes})


def mark(id, activity="first", done=True):
    return ("mark", {"id": id, "activity": activity, "done": done})


def answer(id, given="12", question="how-many", seed=1):
    return ("answer", {"id": id, "question": question, "rev": 1, "given": given, "seed": seed})


# Each: what is sent, at which minute, and what comes: "added", "repeated", "told" (added, with a word about
# the clock), or the name of the error.
CASES = {
    "a review twice": [(review(A), 0, "added"), (review(A), 1, "repeated"), (review(A), 99, "repeated")],
    "a review of another card under its id": [
        (review(A), 0, "added"),
        (review(A, card="card-two"), 1, "refused"),
    ],
    "another rating under its id": [(review(A), 0, "added"), (review(A, rating=1), 1, "refused")],
    "another revision under its id": [(review(A), 0, "added"), (review(A, rev=2), 1, "refused")],
    "a second review that knows of none": [(review(A), 0, "added"), (review(B), 1, "conflict")],
    "a chain": [(review(A), 0, "added"), (review(B, A), 11, "added"), (review(C, A), 12, "conflict")],
    "a clock that was set back": [
        (review(A), 99, "added"),
        (review(B, A), 0, "told"),
        (review(B, A), 1, "repeated"),
    ],
    "a clock that was set back by seconds": [(review(A), 0.5, "added"), (review(B, A), 0, "added")],
    "an undo twice": [(review(A), 0, "added"), (undo(B, A), 1, "added"), (undo(B, A), 2, "repeated")],
    "another undo of the same": [
        (review(A), 0, "added"),
        (undo(B, A), 1, "added"),
        (undo(C, A), 2, "conflict"),
    ],
    "an undo of nothing": [(undo(B, A), 0, "refused")],
    "an undo of what is not the last": [
        (review(A), 0, "added"),
        (review(B, A), 11, "added"),
        (undo(C, A), 12, "conflict"),
        (undo(C, B), 13, "added"),
        (undo(C, A), 14, "refused"),
        (undo(D, A), 15, "added"),
    ],
    "a review of what was undone": [
        (review(A), 0, "added"),
        (undo(B, A), 1, "added"),
        (review(C, A), 2, "conflict"),
    ],
    "a mark twice": [(mark(A), 0, "added"), (mark(A), 1, "repeated")],
    "another mark under its id": [(mark(A), 0, "added"), (mark(A, done=False), 1, "refused")],
    "a mark elsewhere under its id": [(mark(A), 0, "added"), (mark(A, activity="second"), 1, "refused")],
    "an answer twice": [(answer(A), 0, "added"), (answer(A, seed=2), 1, "repeated")],
    "another answer under its id": [(answer(A), 0, "added"), (answer(A, given="13"), 1, "refused")],
    "an answer to another question": [
        (answer(A), 0, "added"),
        (answer(A, question="what-name"), 1, "refused"),
    ],
    "one id in two logs": [(review(A), 0, "added"), (mark(A), 1, "added"), (answer(A), 2, "added")],
    "ids that are none": [
        (review("short"), 0, "refused"),
        (review(A, "é"), 0, "refused"),
        (undo(A, "short"), 0, "refused"),
        (mark("a b c d e f"), 0, "refused"),
        (answer("x" * 65), 0, "refused"),
    ],
    "values that are none": [
        (review(A, rating=5), 0, "refused"),
        (review(A, rating="3"), 0, "refused"),
        (review(A, rev=0), 0, "refused"),
        (review(A, duration=-1), 0, "refused"),
        (review(A, duration=1.5), 0, "refused"),
        (mark(A, done=1), 0, "refused"),
        (answer(A, seed=-1), 0, "refused"),
        (answer(A, given="x" * 1001), 0, "refused"),
    ],
}
