"""Question answering: both formats, spans found again in their texts, and a model that learns to read."""

import json
import random
import re

import pytest
import torch
from corpus import ENGLISH

from headwise.applications import DataError, application_of, find, train_application
from headwise.applications.clozes import asked_for, others
from headwise.applications.questions import (
    Question,
    exact,
    load_questions,
    most_frequent,
    overlap,
    read_squad,
)
from headwise.applications.reading import chosen_spans, collate, read
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
    batch = collate([row], 3)
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


def test_a_cloze_asks_again_with_other_words_masked():
    text = "A loom weaves cloth. Cloth of wool keeps warm; looms wear."
    asked = Question("a @placeholder that weaves cloth of silk", text, ("loom",), ((2, 6),), "g")
    answers = asked_for([asked, Question("@placeholder @placeholder", text, ("cloth",), ((14, 19),), "h")])
    assert answers == {"loom", "cloth"}
    first, second = others(asked, answers | {"silk", "wool"})  # no wool is asked of, no silk in the text
    assert first is asked
    assert second.question == "a loom that weaves @placeholder of silk"
    assert second.answers == ("cloth", "Cloth")
    assert [text[start:stop] for start, stop in second.starts] == ["cloth", "Cloth"]
    assert others(asked, ()) == [asked]
    plain = Question("what weaves?", text, ("loom",), ((2, 6),), "g")
    assert others(plain, answers) == [plain]
    assert asked_for([plain]) == frozenset()


def test_training_asks_every_cloze_that_a_sentence_can_be_and_no_other(tmp_path):
    from headwise.training import with_settings

    text = "red two blue"
    rows = [
        (text, "a @placeholder two", "red"),
        (text, "red @placeholder", "two"),
        (text, "@placeholder", "blue"),
    ]
    lines = [
        "context\tquestion\tanswer\tgroup",
        *("\t".join((*row, str(number))) for number, row in enumerate(rows)),
    ]
    for split in ("train", "val"):
        (tmp_path / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    seen = {}
    for chosen in ("true", "false"):
        made = with_settings(APPLICATION.settings(), [*QUICK, f"other_words={chosen}"])
        task = APPLICATION.task([tmp_path], made, None, print)
        found = set()
        for epoch in range(20):
            for batch in task.batches("train", epoch, 0):
                ids = batch["ids"]
                for row in range(len(ids)):
                    right = task.tokens.decode([ids[row][batch["starts"][row]].tolist()])[0]
                    question = ids[row][: ids[row].tolist().index(task.tokens.eos_id)].tolist()
                    found.add((task.tokens.decode([question])[0], right[0]))
        seen[chosen] = found
    given = {("a @placeholder two", "r"), ("red @placeholder", "t"), ("@placeholder", "b")}
    assert seen["false"] == given
    assert seen["true"] == given | {("a red @placeholder", "t"), ("@placeholder two", "r")}


def test_words_that_the_question_has_too_are_a_kind_of_their_own():
    text = "Looms: the LOOM weaves, and the old loom wears."
    tokens = Tokens.train([text] * 3, SMALLEST + 17)
    row = read("the @placeholder loom", text, [], tokens, 100)
    said = [place for place, one in zip(row.places, row.asked, strict=True) if one]
    words = {match.span() for match in re.finditer(r"\b(the|loom)\b", text, re.IGNORECASE)}
    assert {right for _, right in said} >= {right for _, right in words}
    for left, right in said:
        assert any(start <= left + text[left:right].startswith(" ") < right <= stop for start, stop in words)
    batch = collate([row], 3)
    inside = batch["segments"][0, row.begins : -1]
    assert (inside == 2).tolist() == row.asked
    assert batch["segments"][0, : row.begins].tolist() == [0] * row.begins
    assert collate([row], 2)["segments"].unique().tolist() == [0, 1]


def test_an_answer_that_is_said_twice_gathers_its_probability():
    """0.35 + 0.3 for "one" against 0.34 for "two": places that say the same are added up."""
    text = "one two One"
    tokens = Tokens.train([text] * 3, SMALLEST + 17)
    row = read("?", text, [], tokens, 100)
    length = len(row.ids)
    shares = {"one": 0.3, "two": 0.35, "One": 0.34}
    start, end = torch.full((1, length), -torch.inf), torch.full((1, length), -torch.inf)
    for word, share in shares.items():
        left = text.index(word)
        inside = [number for number, (a, b) in enumerate(row.places) if a < left + len(word) and b > left]
        start[0, row.begins + inside[0]] = torch.tensor(share).log()
        end[0, row.begins + inside[-1]] = 0.0
    ((left, right),) = chosen_spans(start, end, [row], [text], longest_answer=5)
    assert text[left:right].strip() == "One"
    start[0, row.begins + [a for a, _ in row.places].index(text.index(" two"))] = torch.tensor(2.0).log()
    ((left, right),) = chosen_spans(start, end, [row], [text], longest_answer=5)
    assert text[left:right].strip() == "two"


def test_a_span_is_never_longer_than_asked_nor_outside_of_the_text():
    text = "one two one two one"
    tokens = Tokens.train([text] * 3, SMALLEST + 17)
    row = read("one two?", text, [], tokens, 100)
    start, end = torch.zeros(1, len(row.ids)), torch.zeros(1, len(row.ids))
    end[0, row.begins + 3] = 5.0  # its best first token is 3 before it
    start[0, row.begins] = 5.0
    batch = collate([row], 2)
    start, end = (one.masked_fill(~batch["allowed"], -torch.inf) for one in (start, end))
    for longest in (1, 2, 4, 100):
        ((left, right),) = chosen_spans(start, end, [row], [text], longest_answer=longest)
        inside = [place for place in row.places if place[0] >= left and place[1] <= right]
        assert 1 <= len(inside) <= longest


def test_answers_are_compared_as_squad_does():
    assert exact("The Nine.", ["ten", "nine"]) == 1
    assert exact("nine tables", ["nine"]) == 0
    assert overlap("nine tables", ["nine", "ten"]) == pytest.approx(2 / 3)
    assert overlap("", ["nine"]) == 0
    assert most_frequent(Question("chairs?", CONTEXT, (), (), "")) == "nine"
    words = "With this and with that the loom weaves, and with this loom they weave."
    assert most_frequent(Question("a tool?", words, (), (), "")) == "loom"
