"""headwise train, evaluate, translate: what they print, and mistakes in one line."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from headwise.applications.registry import MODULES, find
from headwise.cli.app import app
from headwise.training.settings import setting_names

SETTINGS = (
    "num_layers=1,d_model=16,d_ff=32,num_heads=2,vocab_size=300,steps=2,validate_every=2,precision=float32,"
    "device=cpu,max_tokens=300"
)
CHANGES = [word for change in SETTINGS.split(",") for word in ("--set", change)]


def headwise(*arguments, **options):
    return CliRunner().invoke(app, [str(one) for one in arguments], **options)


def refused(*arguments, code=2, **options):
    found = headwise(*arguments, **options)
    assert found.exit_code == code, found.output
    line = found.stderr.strip().splitlines()
    assert len(line) == 1
    assert line[0].startswith("headwise: ")
    return line[0]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for split, count in (("train", 29), ("val", 3), ("test", 5)):
        for language, words in (("en", "one two"), ("de", "eins zwei")):
            first, second = words.split()
            lines = [f"{first} {second}" if number % 2 else f"{second}." for number in range(count)]
            (folder / f"{split}.{language}").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    found = headwise("train", "translation", "--data", data, "--out", folder, *CHANGES)
    assert found.exit_code == 0, found.output
    assert found.stdout == f"{folder}\n"
    assert "29 pairs for train" in found.stderr
    return folder


def test_help_imports_no_application():
    code = (
        "import sys; from headwise.cli.app import app\n"
        "try: app(['train', '--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('headwise.applications', 'headwise.training') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip().endswith("[]")


def test_all_settings_are_listed_as_set_reads_them():
    found = headwise("train", "translation", "--list-settings", "--set", "warmup=7")
    lines = found.stdout.splitlines()
    assert "recipe.warmup=7" in lines
    assert [line.partition("=")[0] for line in lines] == list(setting_names(find("translation").settings()))
    changes = [word for line in lines for word in ("--set", line)]
    assert headwise("train", "translation", "--list-settings", *changes).stdout == found.stdout


def test_every_application_of_the_registry_is_there():
    for name in MODULES:
        assert find(name).name == name


def test_translate_writes_a_line_for_each_text(run):
    found = headwise("translate", run, "one two", "two.", "--beam", 2)
    assert found.exit_code == 0, found.output
    assert len(found.stdout.splitlines()) == 2
    piped = headwise("translate", run, "-", "--beam", 2, input="one two\n\ntwo.\n")
    first, empty, last = piped.stdout.split("\n")[:3]
    assert [first, last] == found.stdout.splitlines()
    assert empty == ""
    told = json.loads(headwise("translate", run, "one two", "two.", "--beam", 2, "--json").stdout)
    assert [one["output"] for one in told] == [first, last]


def test_evaluate_prints_figures_and_writes_outputs(run, tmp_path):
    found = headwise("evaluate", run, "--beam", 1, "--out", tmp_path / "out.jsonl")
    assert found.exit_code == 0, found.output
    assert "source copied" in found.stdout
    assert "5 examples" in found.stdout
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [one["input"] for one in lines] == ["two.", "one two"] * 2 + ["two."]
    told = json.loads(headwise("evaluate", run, "--beam", 1, "--json", "--limit", 3).stdout)
    assert told["examples"] == 3
    assert told["split"] == "test"
    assert {"bleu", "chrf"} <= set(told["figures"])


def test_a_run_is_continued(run, data):
    found = headwise("train", "translation", "--out", run, "--resume", "--set", "steps=3")
    assert found.exit_code == 0, found.output
    assert "continuing" in found.stderr


def test_mistakes_are_one_line(run, data, tmp_path):
    out = ("--out", tmp_path / "run")
    assert "did you mean translation" in refused("train", "translator", "--data", data, *out)
    assert "question-answering, speech, summarization, translation, vision" in refused("train", *out)
    assert "--data" in refused("train", "translation", *out)
    assert "no train set" in refused("train", "translation", "--data", tmp_path, *out)
    assert "warmup" in refused("train", "translation", "--data", data, *out, "--set", "warmip=3")
    assert "no setting" in refused("train", "translation", "--data", data, *out, "--set", "warmup")
    assert "--budget 0" in refused("train", "translation", "--data", data, *out, "--budget", 0)
    assert "no run" in refused("train", "translation", "--resume", *out)
    assert "holds a run already" in refused("train", "translation", "--data", data, "--out", run)
    assert "no run" in refused("evaluate", tmp_path / "none")
    assert "no run" in refused("evaluate", tmp_path)
    assert "is a file" in refused("evaluate", run / "config.json")
    assert "--checkpoint worst" in refused("evaluate", run, "--checkpoint", "worst")
    assert "no other set" in refused("evaluate", run, "--split", "other")
    assert "--limit 0" in refused("evaluate", run, "--limit", 0)
    assert "--out" in refused("evaluate", run, "--out", tmp_path)
    assert "empty" in refused("translate", run, " ")
    assert f"translate {run} - < {data}/test.en" in refused("translate", run, f"{data}/test.en")
    assert "UTF-8" in refused("translate", run, "-", input=b"f\xfcnf\n")
    assert "--beam 0" in refused("translate", run, "one", "--beam", 0)
    assert not (tmp_path / "run").exists()


def test_uneven_files_are_refused_with_the_line(tmp_path):
    (tmp_path / "a.en").write_text("one\ntwo\nthree\n")
    (tmp_path / "a.de").write_text("eins\nzwei\n")
    arguments = ("--data", tmp_path / "a.en", "--data", tmp_path / "a.de", "--out", tmp_path / "run")
    assert "line 3" in refused("train", "translation", *arguments)


TINY = [word for change in (*CHANGES[1::2], "steps=1", "validate_every=1") for word in ("--set", change)]


@pytest.mark.parametrize(
    ("name", "columns", "command"),
    [
        ("summarization", ("text", "summary"), ("summarize",)),
        ("question-answering", ("context", "question", "answer"), ("answer", "--question", "which")),
    ],
)
def test_tables_train_and_are_used(tmp_path, run, name, columns, command):
    cells = {"text": "one two", "summary": "two", "context": "one two", "question": "which", "answer": "two"}
    for split in ("train", "val", "test"):
        row = "\t".join(cells[column] for column in columns)
        (tmp_path / f"{split}.tsv").write_text("\n".join(["\t".join(columns), row, row]) + "\n")
    out = tmp_path / "run"
    found = headwise("train", name, "--data", tmp_path, "--out", out, *TINY)
    assert found.exit_code == 0, found.output
    told = headwise("evaluate", out, "--json")
    assert json.loads(told.stdout)["examples"] == 2
    text = tmp_path / "text.txt"
    text.write_text("one\ntwo\n")
    verb, *options = command
    plain = headwise(verb, out, text, *options)
    assert plain.exit_code == 0, plain.output
    assert json.loads(headwise(verb, out, text, *options, "--json").stdout)["output"] == plain.stdout.rstrip(
        "\n"
    )
    assert "translation" in refused(verb, run, "one", *options)
    assert name in refused("translate", out, "one")
    assert "no file" in refused(verb, out, tmp_path / "none.txt", *options)
