"""The results page: tiny runs are written into it, and what it says is what the runs say."""

import json
import os
import random
import re
import shutil
from pathlib import Path

import pytest
from benchmarks.results import collect as collecting
from benchmarks.results import heads as of_heads
from benchmarks.results import page as of_page
from benchmarks.results.__main__ import main
from benchmarks.results.collect import evaluation, finished, options_of
from benchmarks.results.drawn import LONGEST, longest_readable
from benchmarks.results.sections import BY_NAME, SECTIONS, Section, Target, asked, goal, shown
from corpus import COUNTS
from tones import TINY as TINY_SPEECH
from tones import tone

from headwise.applications import find, train_application
from headwise.applications.plain import from_plain
from headwise.applications.sound import write_wav
from headwise.training import read_config, with_settings

ROOT = Path(__file__).parents[2]
FRAME = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


def between(text):
    """A page without what its markers hold."""
    return re.sub(r"(<!-- (\w+) -->\n).*?(<!-- /\2 -->)", r"\1\3", text, flags=re.DOTALL)


def empty_page(folder):
    folder.mkdir()
    (folder / "results.md").write_text(between(FRAME), encoding="utf-8")
    return folder


@pytest.fixture
def docs(tmp_path):
    return empty_page(tmp_path / "docs")


def section_of(docs, name):
    text = (docs / "results.md").read_text(encoding="utf-8")
    return text[text.index(f"<!-- {name} -->") : text.index(f"<!-- /{name} -->")]


def kept(docs, name):
    return json.loads((docs / "results" / f"{name}.json").read_text(encoding="utf-8"))


def write(docs, name, run, *options):
    assert main([name, str(run), "--docs", str(docs), "--observe", "5", *options]) == 0
    return section_of(docs, name), kept(docs, name)


@pytest.fixture(scope="module")
def vision_run(tmp_path_factory):
    pytest.importorskip("sklearn")
    run = tmp_path_factory.mktemp("vision") / "run"
    small = ("layers=1", "d_model=24", "d_ff=24", "heads=2", "warmup=1", "steps=6", "validate_every=2")
    train_application(find("vision"), run, [Path("digits")], changes=small, show=False)
    return run


@pytest.fixture(scope="module")
def translated(translation_run, tmp_path_factory):
    """The run that all tests share, copied, since evaluations are written into it."""
    return shutil.copytree(translation_run, tmp_path_factory.mktemp("translated") / "run")


@pytest.fixture(scope="module")
def written(translated, tmp_path_factory):
    """A page that has this run."""
    docs = empty_page(tmp_path_factory.mktemp("written") / "docs")
    write(docs, "multi30k", translated)
    return docs


def test_a_run_is_written_into_its_section_alone(written, translated):
    text, facts = section_of(written, "multi30k"), kept(written, "multi30k")
    said = json.loads((translated / "evaluation" / "test-best.json").read_text(encoding="utf-8"))
    figures = said["figures"]
    interval = f"({figures['bleu_low']:.1f} to {figures['bleu_high']:.1f})"
    assert f"| {figures['bleu']:.1f} {interval} | " in text
    assert f"| source copied | {said['baselines']['source copied']['bleu']:.1f} |" in text
    assert "| nearest neighbour | " in text
    assert f"{COUNTS['train']} pairs to learn from, {COUNTS['val']} for validation" in text
    assert f"test set, {COUNTS['test']} examples" in text
    assert "1 thread of" in text
    assert f"{facts['parameters']:,} parameters." in text
    for other in SECTIONS:
        assert ("Not run yet" in section_of(written, other.name)) == (other.name != "multi30k")
    summary = section_of(written, "summary")
    assert summary.count("| not run yet |") == len(SECTIONS) - 1
    assert f"BLEU {figures['bleu']:.1f} {interval}" in summary
    for name in re.findall(r"\]\((images/\S+)\)", text):
        assert (written / name).stat().st_size > 1000
    assert between((written / "results.md").read_text(encoding="utf-8")) == between(FRAME)


def test_no_path_of_the_machine_is_told(written, translated, numbers):
    for file in (written / "results.md", written / "results" / "multi30k.json"):
        text = file.read_text(encoding="utf-8")
        assert not any(str(path) in text for path in (translated, numbers, written, Path.home()))


def test_the_command_gives_the_runs_settings(written, translated):
    facts = kept(written, "multi30k")
    assert facts["command"].startswith("headwise train translation --data multi30k/ --set ")
    changes = re.findall(r"--set (\S+)", facts["command"])
    config = read_config(translated)
    default = find("translation").settings()
    wanted = from_plain(type(default), {**config["settings"], "recipe": config["recipe"]})
    assert with_settings(default, changes) == wanted != default
    config["recipe"]["budget_minutes"] = 2.5
    assert options_of("translation", config)[0] == "--budget 2.5"
    assert len(options_of("translation", config)) == len(changes) + 1


def test_the_page_is_written_again_from_what_is_kept(written, tmp_path):
    before = (written / "results.md").read_text(encoding="utf-8")
    docs = empty_page(tmp_path / "docs")
    shutil.copytree(written / "results", docs / "results")
    assert main(["--docs", str(docs)]) == 0
    assert (docs / "results.md").read_text(encoding="utf-8") == before


def test_the_repositorys_page_is_what_is_kept(tmp_path):
    """If this fails: python docs/make_results.py"""
    copied = empty_page(tmp_path / "docs")
    if (ROOT / "docs" / "results").exists():
        shutil.copytree(ROOT / "docs" / "results", copied / "results")
    of_page.write(copied)
    assert (copied / "results.md").read_text(encoding="utf-8") == FRAME
    for link in re.findall(r"\]\((images/\S+)\)", FRAME):
        assert (ROOT / "docs" / link).is_file()


def test_an_evaluation_is_read_again_until_the_run_goes_on(translated, monkeypatch):
    first = evaluation(translated, "best", "test", ())
    calls = []
    really = collecting.evaluate
    monkeypatch.setattr(collecting, "evaluate", lambda *a, **k: calls.append(a) or really(*a, **k))
    assert evaluation(translated, "best", "test", ()) == first
    assert not calls
    newest = max((translated / "checkpoints").iterdir())
    later = (translated / "evaluation" / "test-best.json").stat().st_mtime + 5
    os.utime(newest, (later, later))
    assert evaluation(translated, "best", "test", ()) == first
    assert len(calls) == 1


def test_of_several_checkpoints_validation_chooses(docs, vision_run):
    text, facts = write(docs, "digits", vision_run, "--checkpoint", "best", "--checkpoint", "average")
    figures = {(one["checkpoint"], one["split"]): one["figures"] for one in facts["evaluations"]}
    assert set(figures) == {(name, split) for name in ("best", "average") for split in ("test", "val")}
    valid = {name: found["accuracy"] for (name, split), found in figures.items() if split != "test"}
    assert valid[facts["checkpoint"]] == max(valid.values())
    assert "Validation chose the checkpoint in bold" in text
    assert text.count("| **") == 1
    assert "**Missed.**" in text
    assert "The commonest mistakes: " in text


def test_attention_is_drawn_over_the_images_that_are_shown(docs, vision_run):
    text, facts = write(docs, "digits", vision_run)
    drawn = (docs / "images" / "results" / "digits-heads.svg").read_text()
    for row in facts["outputs"]["rows"]:
        assert f"{row['reference']}, taken for {row['output']}" in drawn
    assert drawn.count("<image ") == 5 * 3  # the image; it and the attention over it, in two rows
    assert "the patch to the left" in text


def test_speech_is_shown_with_the_sounds_of_its_evaluation(docs, tmp_path):
    pytest.importorskip("jiwer")
    chance = random.Random(3)
    folder = tmp_path / "recordings"
    folder.mkdir()
    for digit in range(3):
        for take in range(9):
            write_wav(folder / f"{digit}_anna_{take}.wav", tone(digit, chance), 2000)
    run = tmp_path / "run"
    few = [one for one in TINY_SPEECH if not one.startswith(("steps", "validate_every", "warmup"))]
    train_application(
        find("speech"), run, [folder], changes=[*few, "warmup=1", "steps=3", "validate_every=3"], show=False
    )
    text, facts = write(docs, "fsdd", run)
    assert {head["kind"] for head in facts["heads"]} == set(of_heads.KINDS) - {"copying"}
    assert "Accuracy is of 15 single recordings" in text
    assert "| nothing heard |  | 100.0 % |" in text
    assert all(row["input"].endswith(".wav") for row in facts["outputs"]["rows"])


def test_the_longest_string_that_can_be_read_is_drawn():
    assert longest_readable({7: 3, 2: LONGEST, 5: LONGEST + 1, 1: 9}) == 2
    assert longest_readable({7: LONGEST + 2, 5: LONGEST + 1}) == 5


@pytest.mark.parametrize("name", ["summaries", "clozes"])
def test_texts_of_every_kind_are_shown(docs, tmp_path, name):
    chance = random.Random(5)
    words = ["lamp", "door", "river", "stone", "cloud", "green", "small", "slow"]
    rows = []
    for _ in range(300):
        text, place = chance.sample(words, 5), chance.randrange(4)  # no place alone gives the answers away
        summary, cloze = (" ".join(text), text[0]), (" ".join(text), f"{text[place + 1]} _", text[place])
        rows.append(summary if name == "summaries" else cloze)
    columns = ("text", "summary") if name == "summaries" else ("context", "question", "answer")
    data = tmp_path / "rows.tsv"
    data.write_text("\n".join("\t".join(row) for row in (columns, *rows)) + "\n")
    run = tmp_path / "run"
    small = ["num_layers=1", "d_model=16", "d_ff=16", "num_heads=2", "vocab_size=300", "precision=float32"]
    few = ["steps=3", "validate_every=3", "warmup=1", "validation_texts=5"]
    train_application(find(BY_NAME[name].application), run, [data], changes=[*small, *few], show=False)
    text, facts = write(docs, name, run)
    assert len(facts["outputs"]["rows"]) >= 3
    assert "Encoder self-attention" in text
    assert ("Cross-attention" in text) == (name == "summaries")
    assert ("*Copying*, 1 head: " in text) == (name == "summaries")
    assert [head["head"] for head in facts["heads"] if head["kind"] == "encoder self-attention"] == [0, 1]
    drawn = docs / "images" / "results" / f"{name}-heads.svg"
    assert drawn.exists() == (name == "summaries")


def test_a_run_is_finished_at_any_of_its_ends():
    recipe = {"steps": 10, "epochs": None, "patience": 3, "budget_minutes": 2.0}
    state = {"step": 9, "epoch": 99, "stale": 2, "seconds": 119.9}
    assert not finished(recipe, state)
    for end in ({"step": 10}, {"stale": 3}, {"seconds": 120.0}):
        assert finished(recipe, state | end)
    assert finished(recipe | {"epochs": 99}, state)


def test_a_run_that_was_stopped_is_taken_on_request(docs, translated, tmp_path):
    run = shutil.copytree(translated, tmp_path / "run")
    config = run / "config.json"
    config.write_text(
        config.read_text(encoding="utf-8").replace('"steps": 150', '"steps": 151'), encoding="utf-8"
    )
    text, _ = write(docs, "multi30k", run, "--unfinished")
    assert "Stopped before its end" in text


def test_what_cannot_be_written_is_said_in_a_line(docs, translated, tmp_path, capsys):
    before = (docs / "results.md").read_text()
    translated = shutil.copytree(translated, tmp_path / "run")
    assert main(["digits", str(translated), "--docs", str(docs)]) == 2
    assert main(["multi30k", str(tmp_path / "nothing"), "--docs", str(docs)]) == 2
    config = translated / "config.json"
    config.write_text(
        config.read_text(encoding="utf-8").replace('"steps": 150', '"steps": 151'), encoding="utf-8"
    )
    assert main(["multi30k", str(translated), "--docs", str(docs)]) == 2
    for folder in (translated / "checkpoints").iterdir():
        shutil.rmtree(folder)
    assert main(["multi30k", str(translated), "--docs", str(docs)]) == 2
    lines = capsys.readouterr().err.strip().split("\n")
    assert len(lines) == 4
    assert "is of 'translation'" in lines[0]
    assert "there is no run" in lines[1]
    assert "isn't finished: it is at step 150" in lines[2]
    assert "no validated checkpoint" in lines[3]
    assert (docs / "results.md").read_text() == before
    for wrong in (["multi31k"], ["multi30k"]):
        with pytest.raises(SystemExit):
            main(wrong)


# What is asked for


def test_targets_are_reached_or_missed():
    figures = {"accuracy": 0.99, "token_error": 0.02}
    section = BY_NAME["fsdd"]
    facts = {
        "evaluations": [{"split": "test", "checkpoint": "best", "figures": figures}],
        "checkpoint": "best",
        "seconds": 1800,
        "parameters": 1,
    }
    assert of_page.verdict(section, facts) == "missed"  # below 2 % is asked for
    figures["token_error"] = 0.0199
    assert of_page.verdict(section, facts) == "reached"
    assert of_page.verdict(section, facts | {"seconds": 1801}) == "missed"
    assert of_page.verdict(BY_NAME["asterisk"], facts) == "none was set"
    limited = Section("x", "speech", "X", "x", "", "", (Target("accuracy", 0.9),), minutes=30, parameters=1)
    assert of_page.verdict(limited, facts) == "missed"


def test_figures_are_shown_in_their_units():
    assert shown("accuracy", 0.98611) == "98.6 %"
    assert shown("exact", 42.25) == "42.2 %"
    assert shown("bleu", 37.04) == "37.0"
    assert goal(Target("accuracy", 0.975)) == "97.5 %"
    assert goal(Target("rouge1", 31.8)) == "31.8"
    assert "fewer than 10,000,000 parameters" in asked(BY_NAME["multi30k"])
    assert of_page.with_interval({"bleu": 1.0}, "bleu") == "1.0"


def test_no_mistake_is_not_taken_for_certainty(written):
    facts = kept(written, "multi30k")
    section = BY_NAME["multi30k"]
    assert "rule of three" not in of_page.body(section, facts, written)
    for one in facts["evaluations"]:
        one["figures"]["bleu_low"] = one["figures"]["bleu_high"] = one["figures"]["bleu"]
    assert "rule of three" in of_page.body(section, facts, written)


def test_every_section_names_an_application_and_sources():
    for section in SECTIONS:
        assert section.application == find(section.application).name
        assert f"## {section.title}\n" in FRAME
        assert all(one.source.startswith("https://") for one in section.published)


def test_texts_stand_in_cells_as_they_are():
    cell = of_page._cell("a|b [x](y) <i> `c`\nd *e* _f_")
    assert not set("|[]<`*_\n") & set(cell.replace("<br>", ""))
    assert of_page._cell("") == "(nothing)"
    assert len(of_page._cell("word " * 100)) < 310
