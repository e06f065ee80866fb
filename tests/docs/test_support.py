"""docs/support.md says what the kernels say, and what they say holds."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from headwise.kernels import KERNELS
from headwise.kernels.native_build import native
from headwise.kernels.reference import Reference

SCRIPT = Path(__file__).parents[2] / "docs" / "make_support.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_support", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_support"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


support = _load()
CALLS = [call for _, rows in support.calls() for call in rows]


@pytest.mark.skipif(native is None, reason="the page has a column of the compiled kernel, which wasn't built")
def test_the_page_is_what_the_kernels_say() -> None:
    assert support.PAGE.read_text(encoding="utf-8") == support.page(), "run python docs/make_support.py"


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.label)
def test_kernels_compute_what_they_take(call: object) -> None:
    given = call.problem()
    out, lse = Reference().solve(given)
    half = given.q.dtype in (torch.float16, torch.bfloat16)
    for kernel in KERNELS:
        if not kernel.supports(given):
            mine, mine_lse = kernel.solve(given)
            torch.testing.assert_close(mine, out, rtol=2e-2 if half else 1e-5, atol=2e-2 if half else 1e-5)
            torch.testing.assert_close(mine_lse, lse, rtol=1e-5, atol=1e-5)


def test_a_kernel_that_looks_at_values_to_say_so_is_caught() -> None:
    claimed = support.described(CALLS[0].problem(), "cuda")
    assert claimed.q.device.type == "cuda"
    with pytest.raises(RuntimeError, match="looked at values"):
        claimed.q.sum()
