"""An installation goes on without the compiled kernel where it can't be built, and pip says nothing: so this
does, and so do `explain` and `headwise doctor`. And an instruction set that is asked for is never passed
over."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import headwise as hw
from headwise.cli import doctor
from headwise.kernels import native as kernel
from headwise.kernels import native_build
from headwise.kernels.native_build import MISSING, Build, build, unbuilt


@pytest.mark.skipif(
    not any(shutil.which(one) for one in ("g++", "clang++")), reason="no C++ compiler to build it with"
)
def test_the_compiled_kernel_is_there_where_a_compiler_is() -> None:
    assert build() is not None, f"{MISSING}: pip install -v . shows the compiler's errors"


@pytest.mark.parametrize("compiler", ["g++", "clang++", None])
def test_what_is_missing_is_told_with_the_way_to_the_compilers_errors(
    compiler: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name == compiler else None)
    said = unbuilt()
    assert said.startswith("there is no compiled kernel, ")
    assert "pip install -v" in said
    if compiler is None:
        assert "no C++ compiler (GCC or Clang)" in said
    else:
        assert f"a C++ compiler is here ({compiler}): it failed when headwise was installed" in said
    # `explain` and `headwise doctor` hand it on as it is.
    kernel.refusals.cache_clear()
    for module in (kernel, native_build, doctor):
        monkeypatch.setattr(module, "MISSING", said)
    q = torch.zeros(1, 1, 2, 4)
    try:
        assert f"not native    {said}" in str(hw.explain(q, q, q))
    finally:
        kernel.refusals.cache_clear()
    assert f"native    no: {said}" in doctor.words(doctor.facts(None))


def test_a_module_that_is_not_there_is_told_at_import(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sys.modules.pop("headwise.kernels.native_build")
    monkeypatch.setitem(sys.modules, "headwise._native", None)
    try:
        again = importlib.import_module("headwise.kernels.native_build")
        assert again.native is None
        assert again.build() is None
        assert again.isa() is None
        said = again.MISSING
        assert said == unbuilt()
    finally:
        sys.modules["headwise.kernels.native_build"] = before


BUILT = Build("gcc 1.2", (("baseline", True), ("avx9", True), ("avx99", False)), "avx9", None, "avx avx9")


def asks(name: str) -> Build:
    return Build(BUILT.compiler, BUILT.sets, BUILT.used, name, BUILT.features)


@pytest.mark.parametrize(
    ("name", "lacks"), [("avx99", "this CPU"), ("sse9", "this build"), ("AVX9", "this build")]
)
def test_an_instruction_set_that_cant_be_had_is_named_with_those_that_can(name: str, lacks: str) -> None:
    assert asks(name).wrong() == (
        f"HEADWISE_ISA='{name}' asks for an instruction set that {lacks} doesn't have: built are baseline, "
        "avx9, avx99, and of these the CPU has baseline, avx9. Set it to one of these before headwise is "
        "imported, or unset it"
    )
    text = doctor.words(doctor.facts(asks(name)))
    assert f"refuses to run: HEADWISE_ISA='{name}'" in text
    assert "uses avx9" not in text
    assert doctor.facts(asks(name))["native"]["wrong"]
    assert BUILT.wrong() is None
    assert asks("avx9").wrong() is None
    assert doctor.facts(BUILT)["native"]["wrong"] is None


PROGRAM = """
import os, torch, headwise as hw
layer, q = hw.MultiHeadAttention(8, 2), torch.randn(1, 8, 64, 64)
calls = {
    "plain": lambda: hw.attention(q, q, q),
    "options": lambda: hw.attention(q, q, q, softcap=3.0),
    "asked for": lambda: hw.attention(q, q, q, kernel="native"),
    "explain": lambda: hw.explain(q, q, q),
    "layer": lambda: layer(torch.randn(1, 3, 8)),
    "once more": lambda: hw.attention(q, q, q),
}
for name, call in calls.items():
    try:
        call()
        print(name, "ran")
    except ValueError as error:
        print(name, str(error).split(":")[0])
hw.attention(q, q, q, kernel="tiled")
"""


def python(*arguments: str, isa: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HEADWISE_ISA": isa}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.skipif(native_build.native is None, reason="the compiled kernel wasn't built")
def test_every_call_says_so_and_none_takes_another_in_silence() -> None:
    done = python("-c", PROGRAM, isa="sse9")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 6
    assert all(
        line.endswith("HEADWISE_ISA='sse9' asks for an instruction set that this build doesn't have")
        for line in lines
    ), lines
    done = python("-c", PROGRAM, isa="baseline")
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["ran"] * 6, done.stderr
    done = python("-m", "headwise_command", "doctor", isa="sse9")
    told = python("-c", "from headwise_command import run; run()", "doctor", isa="sse9")
    assert told.returncode == 2, done
    assert told.stderr.startswith("headwise: HEADWISE_ISA='sse9' asks for")
    assert "refuses to run" in told.stdout


def test_a_build_of_other_sources_is_not_called() -> None:
    """It would read addresses in another order."""
    code = (
        "import sys, types; sys.modules['headwise._native'] = types.ModuleType('headwise._native');"
        "import torch, headwise as hw; x = torch.zeros(1, 1, 2, 4); print(hw.explain(x, x, x))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "not native" in told.stdout
    assert "was built from other sources than these: install headwise again" in told.stdout


@pytest.mark.skipif(
    not all(shutil.which(one) for one in ("g++", "nm")), reason="no compiler and binutils to look with"
)
def test_sets_share_no_function(tmp_path: Path) -> None:
    """Of a function that two sets' builds have under one name, the linker keeps one, maybe that of a CPU
    which this is not. Looked at without optimization, which inlines what isn't meant to be there."""
    sources = Path(__file__).parents[2] / "src/headwise/native/csrc"
    made = tmp_path / "set.o"
    command = [
        "g++",
        "-std=gnu++17",
        "-O0",
        "-w",
        "-fPIC",
        "-DHEADWISE_ISA_NAME=one_set",
        "-c",
        "-o",
        str(made),
    ]
    subprocess.run([*command, str(sources / "isa.cpp")], check=True, timeout=200)
    listed = subprocess.run(["nm", "-C", str(made)], check=True, capture_output=True, text=True, timeout=60)
    kinds = [line.split(maxsplit=2) for line in listed.stdout.splitlines() if not line.startswith(" ")]
    weak = [name for _, kind, name in kinds if kind in "WVu" and "__gxx_personality" not in name]
    assert weak
    assert [name for name in weak if "headwise::one_set::" not in name] == []
