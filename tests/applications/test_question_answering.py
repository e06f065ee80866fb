"""Question answering: both formats, spans found again in their texts, and a model that learns to read."""

import json
import random

import pytest
import torch
from corpus import ENGLISH

from headwise.applications import DataError, application_of, find, train_application
from headwise.applications.question_answering import collate, read
from headwise.applications.questions import (
    Question,
    exact,
    load_questions,
    most_frequent,
    overlap,
    read_squad,
)
from headwise.applications.tokens import SMALLEST, Tokens

APPLICATION = find("question-answering")
QUICK = [
    "num_layers=1",
    "d_model=48",
    "d_ff=96",
    "num_heads=4",
    "dropout=0",
    "steps=90",
    "warmup=40",
    "rate=0.5",
    "validate_every=90",
    "precision=float32",
    "vocab_size=300",
    "max_tokens=600",
    "longest=60",
    "device=cpu",
]
CONTEXT = "Größe: the café in Zürich has nine tables, nine chairs"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The number that stands behind "is"."""
    chance = random.Random(3)
    lines = ["group\tcontext\tquestion\tanswer"]
    for number in range(700):
        other, right, last = chance.sample(ENGLISH, 3)
        lines.append(f"{number}\tnot {other} it is {right} not {last}\twhich is it\t{right}")
    path = tmp_path_factory.mktemp("table") / "all.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "run"
    train_application(APPLICATION, run, [table], changes=QUICK, show=False)
    return run


def squad(folder, start=27, text="nine"):
    answers = [{"text": text, "answer_start": start}]
    asked = [{"id": "a", "question": "How many?", "answers": answers}]
    asked.append({"id": "b", "question": "Why?", "answers": [], "is_impossible": True})
    path = folder / "train.json"
    path.write_text(
        json.dumps({"data": [{"title": "x", "paragraphs": [{"context": CONTEXT, "qas": asked}]}]})
    )
    return path


def test_a_trained_run_beats_the_most_frequent_word(run):
    found = application_of(run).open(run, "best", print).evaluate("test", None, {})
    assert found.figures["exact"] > found.baselines["most frequent word"]["exact"]
    assert found.figures["exact"] <= found.figures["f1"]
    assert all(one["output"] in one["input"] for one in found.outputs)


def test_a_run_answers_alone_as_it_does_among_others(run):
    answerer = APPLICATION.open(run)
    found = answerer.evaluate("val", None, {"limit": 5})
    for one in found.outputs:
        question, context = one["input"].split("\n")
        assert answerer.answer(question, context) == one["output"]
    with pytest.raises(DataError, match="question is empty"):
        answerer.answer(" ", "text")


def test_squad_files_load_without_impossible_questions(tmp_path):
    start = CONTEXT.index("nine")
    (one,) = read_squad(squad(tmp_path, start))
    assert one == Question("How many?", CONTEXT, ("nine",), ((start, start + 4),), "x")
    assert load_questions([tmp_path], "train") == [one]
    with pytest.raises(DataError, match=f"answer_start {start + 1}"):
        read_squad(squad(tmp_path, start + 1))
    (tmp_path / "train.json").write_text("[]")
    with pytest.raises(DataError, match="SQuAD's format"):
        read_squad(tmp_path / "train.json")


def test_clozes_are_right_wherever_the_word_stands(tmp_path):
    (tmp_path / "train.tsv").write_text(f"context\tquestion\tanswer\n{CONTEXT}\t@placeholder chairs\tNine\n")
    (one,) = load_questions([tmp_path], "train")
    first, second = CONTEXT.index("nine"), CONTEXT.rindex("nine")
    assert one.starts == ((first, first + 4), (second, second + 4))
    assert one.answers == ("nine",)
    (tmp_path / "train.tsv").write_text(f"context\tquestion\tanswer\n{CONTEXT}\t@placeholder\tten\n")
    with pytest.raises(DataError, match="'ten' doesn't stand"):
        load_questions([tmp_path], "train")


@pytest.mark.parametrize("word", ["Größe", "café", "Zürich", "nine tables", "chairs"])
def test_spans_of_tokens_cover_their_characters(word):
    tokens = Tokens.train([CONTEXT] * 3, SMALLEST + 17)
    start = CONTEXT.index(word)
    row = read("How?", CONTEXT, [(start, start + len(word))], tokens, 100)
    ((first, last),) = row.spans
    left, right = row.places[first - row.begins][0], row.places[last - row.begins][1]
    assert word in CONTEXT[left:right]
    assert tokens.decode([row.ids[row.begins : -1]]) == [CONTEXT]
    assert read("How?", CONTEXT, [(start, start + len(word))], tokens, 8).spans == []


def test_the_loss_adds_up_all_right_places(table):
    from headwise.training import with_settings

    settings = with_settings(APPLICATION.settings(), QUICK)
    task = APPLICATION.task([table], settings, None, print)
    task.model.eval()
    row = read("which is it", "not two it is two", [(4, 7), (14, 17)], task.tokens, 60)
    batch = collate([row])
    loss, count, _ = task.loss(batch)
    start, end = task.model(
        batch["ids"], batch["lengths"], segments=batch["segments"], allowed=batch["allowed"]
    )
    firsts, lasts = zip(*row.spans, strict=True)
    expected = -sum(
        scores[0].double().softmax(-1)[list(places)].sum().log()
        for scores, places in ((start, firsts), (end, lasts))
    )
    assert count == 1
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=0)
    loss.backward()
    assert all(one.grad is None or bool(one.grad.isfinite().all()) for one in task.model.parameters())


def test_answers_are_compared_as_squad_does():
    assert exact("The Nine.", ["ten", "nine"]) == 1
    assert exact("nine tables", ["nine"]) == 0
    assert overlap("nine tables", ["nine", "ten"]) == pytest.approx(2 / 3)
    assert overlap("", ["nine"]) == 0
    assert most_frequent(Question("chairs?", CONTEXT, (), (), "")) == "nine"
    words = "With this and with that the loom weaves, and with this loom they weave."
    assert most_frequent(Question("a tool?", words, (), (), "")) == "loom"
