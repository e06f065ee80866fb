"""The study guide says what the results page says."""

import pytest
from benchmarks.results.guide_facts import GUIDE, command_of, lines_of, update, value_of

FACTS = {
    "command": "headwise train vision --data digits --out runs/digits",
    "data": {"train": 90, "what": "images", "test": 30},
    "seconds": 100.0,
    "parameters": 1234,
    "checkpoint": "average",
    "evaluations": [
        {
            "checkpoint": checkpoint,
            "split": split,
            "examples": 30,
            "figures": {"accuracy": value, "accuracy_low": value - 0.1, "accuracy_high": value + 0.05},
            "baselines": {"commonest class": {"accuracy": 0.1234}},
        }
        for checkpoint, split, value in (
            ("best", "val", 0.5),
            ("best", "test", 0.9),
            ("average", "val", 0.6),
            ("average", "test", 0.91),
        )
    ],
}


def test_facts_of_the_guide_are_those_of_the_runs():
    """After a new run, `python docs/make_results.py` brings them up to date."""
    text = GUIDE.read_text(encoding="utf-8")
    assert list(lines_of(text)) == text.splitlines()
    assert text.count("results.") > 30


def test_values_are_those_that_the_page_shows():
    assert value_of("images", FACTS) == 90
    assert value_of("singles", FACTS) == 30
    assert value_of("parameters", FACTS) == 1234
    assert value_of("minutes", FACTS) == 2
    assert value_of("accuracy", FACTS) == 91.0
    assert value_of("accuracy.best", FACTS) == 90.0
    assert value_of("accuracy.interval", FACTS) == "81.0 to 96.0"
    assert value_of("commonest", FACTS) == 12.3
    with pytest.raises(KeyError, match="bleu: the run's figures are accuracy"):
        value_of("bleu", FACTS)
    assert command_of("minutes", FACTS) == FACTS["command"]
    assert command_of("accuracy", FACTS) == "headwise evaluate runs/digits --checkpoint average"
    assert command_of("accuracy.best", FACTS) == "headwise evaluate runs/digits --checkpoint best"


def test_values_that_are_not_those_of_the_run_are_written_again(tmp_path):
    text = GUIDE.read_text(encoding="utf-8")
    file = tmp_path / "facts.toml"
    before, table, after = text.partition('["results.digits.accuracy"]\nvalue = ')
    file.write_text(f"{before}{table}12.5\n{after.partition(chr(10))[2]}")
    assert file.read_text() != text
    assert update(file).read_text() == text
