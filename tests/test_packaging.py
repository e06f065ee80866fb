"""What a fresh machine is promised: pins, extras, the licence, and what the wheel carries."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = {
    canonicalize_name(name): version
    for name, version in re.findall(
        r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
}
EXTRAS = PROJECT["optional-dependencies"]


REQUIRED = [Requirement(text) for text in PROJECT["dependencies"]] + [
    Requirement(text) for extra in EXTRAS.values() for text in extra if not text.startswith("headwise[")
]


@pytest.mark.parametrize("requirement", REQUIRED, ids=str)
def test_everything_that_is_required_is_pinned_to_a_version_that_satisfies_it(requirement):
    assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)])


def test_the_core_needs_torch_alone():
    assert [Requirement(text).name for text in PROJECT["dependencies"]] == ["torch"]
    assert Requirement(PROJECT["dependencies"][0]).specifier.contains("2.9")
    assert PINS["torch"] == "2.13.0"


def test_every_line_of_the_constraints_is_a_pin_or_a_comment():
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        assert line.startswith("#") or re.fullmatch(r"[\w.-]+==[\w.]+", line), line


def test_the_licence_is_the_whole_apache_licence():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["license"] == "Apache-2.0"
    for part in ("Version 2.0, January 2004", "END OF TERMS AND CONDITIONS", "APPENDIX"):
        assert part in text


def test_continuous_integration_runs_make_test():
    script = ROOT / ".ci" / "run"
    lines = script.read_text(encoding="utf-8").splitlines()
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in lines
    assert lines[-1] == "make test"


def test_the_makefile_explains_its_targets():
    listed = subprocess.run(
        ["make", "-s", "-C", str(ROOT)], capture_output=True, text=True, check=True
    ).stdout
    for target in ("env", "demo", "test", "test-slow", "native-check", "bench", "docs", "clean"):
        assert re.search(rf"^make {target} +\w", listed, re.MULTILINE)


STUDY = [
    *("fsrs", "genanki", "markdown_it", "mdit_py_plugins", "msgspec", "selectolax", "spellchecker"),
    *("starlette", "uvicorn"),
]

BLOCKED = """
import importlib.abc, pkgutil, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {extras!r}:
            raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)

sys.meta_path.insert(0, Missing())
"""


def run_without(extras, code):
    source = BLOCKED.format(extras=tuple(extras)) + code
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, timeout=120
    )


def test_the_core_imports_where_no_extra_is_installed():
    extras = ["jinja2", "rich", "safetensors", "tokenizers", "transformers", "typer", "numpy", *STUDY]
    code = """
import headwise
apart = ('headwise.cli', 'headwise.study', 'headwise.interop.huggingface', 'headwise.__main__')
for module in pkgutil.walk_packages(headwise.__path__, 'headwise.', onerror=lambda name: None):
    if not module.name.startswith(apart):
        importlib.import_module(module.name)
print('fine')
"""
    result = run_without(extras, "import importlib\n" + code)
    assert result.stdout == "fine\n", result.stderr


@pytest.mark.parametrize("missing", ["jinja2", "rich", "safetensors", "tokenizers", "typer"])
def test_the_command_names_the_missing_extra_in_one_line(missing):
    code = "sys.argv = ['headwise', 'see', 'hello', '--json']\nfrom headwise.cli.main import run\nrun()"
    result = run_without([missing], code)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert "pip install" in line
    assert "headwise[see]" in line


@pytest.mark.parametrize(
    ("missing", "command"),
    [(name, "anki") for name in ("genanki", "markdown_it", "msgspec")]
    + [(name, "--no-browser") for name in ("fsrs", "mdit_py_plugins", "starlette", "uvicorn", "jinja2")],
)
def test_studying_names_its_own_extra_in_one_line(missing, command):
    code = f"sys.argv = ['headwise', 'study', {command!r}]\nfrom headwise.cli.main import run\nrun()"
    result = run_without([missing], code)
    assert (result.returncode, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert missing in line
    assert "pip install 'headwise[study]'" in line


BUILD = """
import sys
from scikit_build_core.build import build_wheel

build_wheel(sys.argv[1], {"wheel.cmake": "false"})
"""


def test_the_wheel_carries_code_types_templates_the_sample_and_the_guide(tmp_path):
    command = [sys.executable, "-c", BUILD, str(tmp_path)]  # without the compiled kernel, which takes minutes
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=120)
    (wheel,) = tmp_path.glob("headwise-*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith("/")}
    source = ROOT / "src"
    for path in (source / "headwise").rglob("*"):
        if path.is_file() and not {"__pycache__", "csrc"} & set(path.parts) and path.suffix != ".so":
            assert str(path.relative_to(source)) in names
    assert not [name for name in names if "csrc" in name]  # compiled, where there is a compiler
    assert {"headwise/py.typed", "headwise/cli/templates/report.html.j2"} <= names
    assert {"headwise/cli/samples/lighthouse.txt"} <= names
    assert {"headwise/study/static/ASSETS.json", "headwise/study/templates/base.html.j2"} <= names
    guide = ROOT / "guides" / "attention-is-all-you-need"
    for path in guide.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            assert f"headwise/guides/{guide.name}/{path.relative_to(guide).as_posix()}" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_every_test_file_has_a_name_of_its_own():
    # pytest imports test files by their basename: two of one name can't both be collected.
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
