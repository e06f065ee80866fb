"""The states of all random generators, as JSON: taken and put back exactly."""

from __future__ import annotations

import base64
import random
import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def seed_everything(seed: int, rank: int = 0) -> None:
    """Seed python, torch and, where it is in use, numpy. Processes of one run get streams of their own.

    Build the model after this call, so that its weights come from the seed too.
    """
    mixed = random.Random(f"headwise {seed} {rank}").getrandbits(63) if rank else seed
    random.seed(mixed)
    torch.manual_seed(mixed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(mixed % 2**32)


def random_state() -> dict[str, Any]:
    """States of the generators of python, torch (CPU and every GPU) and, where it is in use, numpy."""
    version, words, gauss = random.getstate()
    state: dict[str, Any] = {
        "python": [version, _text(words, 4), gauss],
        "torch": _text(torch.get_rng_state().tolist()),
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = [_text(one.tolist()) for one in torch.cuda.get_rng_state_all()]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        kind, keys, position, has_gauss, cached = numpy.random.get_state()
        state["numpy"] = [kind, _text(keys.tolist(), 4), position, has_gauss, cached]
    return state


def set_random_state(state: dict[str, Any]) -> None:
    """Put back what `random_state` took."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(_numbers(words, 4)), gauss))
    torch.set_rng_state(_tensor(state["torch"]))
    if "cuda" in state and torch.cuda.is_available():
        for number, one in enumerate(state["cuda"][: torch.cuda.device_count()]):
            torch.cuda.set_rng_state(_tensor(one), number)
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in state:
        kind, keys, position, has_gauss, cached = state["numpy"]
        array = numpy.array(_numbers(keys, 4), dtype=numpy.uint32)
        numpy.random.set_state((kind, array, position, has_gauss, cached))


def _text(numbers: Sequence[int], width: int = 1) -> str:
    """Whole numbers of `width` bytes as base64."""
    return base64.b64encode(b"".join(one.to_bytes(width, "little") for one in numbers)).decode("ascii")


def _numbers(text: str, width: int = 1) -> list[int]:
    content = base64.b64decode(text)
    return [int.from_bytes(content[at : at + width], "little") for at in range(0, len(content), width)]


def _tensor(text: str) -> Tensor:
    return torch.tensor(_numbers(text), dtype=torch.uint8)
