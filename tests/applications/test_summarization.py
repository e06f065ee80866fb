"""Summarization: from a table to a model that summarizes."""

import json
import random

import pytest
from corpus import ENGLISH

from headwise.applications import application_of, find, train_application
from headwise.applications.rouge import scores_of
from headwise.applications.summarization import first_sentence
from headwise.training import SettingError

APPLICATION = find("summarization")
QUICK = [
    "num_layers=1",
    "d_model=48",
    "d_ff=96",
    "num_heads=4",
    "dropout=0",
    "steps=110",
    "warmup=40",
    "rate=0.5",
    "validate_every=110",
    "precision=float32",
    "vocab_size=300",
    "max_tokens=500",
    "longest=40",
    "longest_summary=7",
    "device=cpu",
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """What the second sentence says of the topic is the summary."""
    chance = random.Random(3)
    lines = ["group\ttext\tsummary"]
    for number in range(900):
        topic, other = chance.sample(ENGLISH, 2)
        lines.append(f"{number}\tNot {other} today. It is {topic}.\tabout {topic}")
    path = tmp_path_factory.mktemp("table") / "all.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "run"
    train_application(APPLICATION, run, [table], changes=QUICK, show=False)
    return run


def test_a_trained_run_beats_the_first_sentence(run):
    found = application_of(run).open(run, "best", print).evaluate("test", None, {"beam": 2})
    lead = found.baselines["first sentence"]
    for name in ("rouge1", "rouge_l"):
        assert found.figures[name] > lead[name]
        assert found.figures[f"{name}_low"] <= found.figures[name] <= found.figures[f"{name}_high"]


def test_a_run_copies_unless_it_was_trained_otherwise(run, table, tmp_path):
    assert APPLICATION.open(run).model.pointer is not None
    plain = tmp_path / "plain"
    train_application(
        APPLICATION, plain, [table], changes=[*QUICK, "copy=false", "steps=2", "warmup=1"], show=False
    )
    config = json.loads((plain / "config.json").read_text())
    for sizes in (config["model"], config["settings"]["model"]):  # as runs were before there was copying
        assert sizes.pop("copy") is False
    (plain / "config.json").write_text(json.dumps(config))
    older = APPLICATION.open(plain)
    assert older.model.pointer is None
    assert older.settings.model.copy is False
    assert len(older.summarize(["It is two."], beam=2)) == 1
    report = train_application(APPLICATION, plain, changes=["steps=3"], resume=True, show=False)
    assert report.step == 3


def test_long_texts_are_cut_and_summaries_kept_short(run):
    summarizer = APPLICATION.open(run)
    short = "Not one today. It is two."
    cut = summarizer.settings.longest
    ids = summarizer.tokens.encode([short * 50])[0]
    again = summarizer.tokens.decode([ids[: cut - 1]])[0]
    assert summarizer.tokens.encode([again])[0] == ids[: cut - 1]
    long, same, lines, empty = summarizer.summarize([short * 50, again, short.replace(" ", "\n"), " "])
    assert long == same
    assert lines == summarizer.summarize([short])[0]
    assert empty == ""
    written = summarizer.tokens.encode([long])[0]
    assert len(written) <= summarizer.settings.longest_summary


def test_rouge_counts_stems_that_are_shared():
    figures = scores_of(["the cats sat"], ["a cat sat down"])
    assert figures["rouge1"] == pytest.approx(100 * 2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4))
    assert figures["rouge2"] == pytest.approx(100 * 2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3))
    assert figures["rouge_l"] == pytest.approx(figures["rouge1"])
    assert "rouge1_low" not in figures  # one text has no interval


def test_first_sentences():
    assert first_sentence("Version 1.2 is out. Next.") == "Version 1.2 is out."
    assert first_sentence("  no end ") == "no end"
    assert first_sentence("What? Yes!") == "What?"


def test_settings_that_cannot_be_are_named(table, tmp_path):
    for change, words in (("longest_summary=0", "longest_summary is 0"), ("longest=1", "longest is 1")):
        with pytest.raises(SettingError, match=words):
            train_application(APPLICATION, tmp_path / "run", [table], changes=[change], show=False)
