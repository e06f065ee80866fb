"""`headwise doctor`: what was built and what is used, for people and for programs."""

import json

from typer.testing import CliRunner

from headwise.cli import doctor
from headwise.cli.app import app
from headwise.kernels.native_build import Build, build


def run(*arguments):
    return CliRunner().invoke(app, ["doctor", *arguments], catch_exceptions=False)


def test_it_says_the_same_to_people_and_programs():
    found = json.loads(run("--json").stdout)
    text = run().stdout
    assert found["headwise"] in text
    assert found["torch"] in text
    assert f"threads   {found['threads']['torch']} " in text
    assert found["projections"] in text
    built = build()
    assert found["native"]["built"] == (built is not None)
    if built is None:
        assert found["native"]["missing"] in text
        return
    assert found["native"]["used"] == built.used
    assert f"uses {built.used}: {built.why()}" in text
    assert [one["name"] for one in found["native"]["instruction_sets"]] == [name for name, _ in built.sets]


BUILT = Build("gcc 1.2", (("baseline", True), ("avx9", True), ("avx99", False)), "avx9", None, "avx avx9")


def test_it_says_which_set_is_used_and_why():
    text = doctor.words(doctor.facts(BUILT))
    assert "built by gcc 1.2 for baseline, avx9, avx99 (not on this CPU)" in text
    assert "uses avx9: the best one that was built and that this CPU has" in text
    assert "the CPU offers avx avx9" in text
    assert "avx9 build was not measured" in text  # so auto leaves to torch what torch takes


def test_it_says_how_to_get_what_is_missing():
    found = doctor.facts(None) | {"native": {"built": False, "missing": "it wasn't built"}}
    text = doctor.words(found)
    assert "native    no: it wasn't built" in text
    assert "other kernels compute the same" in text
