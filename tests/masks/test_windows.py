"""Other libraries' windows, each checked against that library's own rule written out."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest
import torch

from headwise.masks import Causal, Frame, Tile, Window

LENGTH = 11
FRAME = Frame.of((), 1, LENGTH, LENGTH)

# What each convention says, as its library states it: may the query at q see the key at k?
Rule = Callable[[int, int], bool]
CONVENTIONS: list[tuple[str, Window, Rule]] = [
    ("flash (3, 2)", Window.from_flash_attention((3, 2)), lambda q, k: q - 3 <= k <= q + 2),
    ("flash (-1, 0)", Window.from_flash_attention((-1, 0)), lambda q, k: k <= q),
    ("flash (2, -1)", Window.from_flash_attention([2, -1]), lambda q, k: k >= q - 2),
    ("flash (-1, -1)", Window.from_flash_attention((-1, -1)), lambda q, k: True),
    (
        "flash (3, 2), causal",
        Window.from_flash_attention((3, 2), causal=True),
        lambda q, k: q - 3 <= k <= q,
    ),
    ("varlen (3, 0)", Window.from_torch_varlen((3, 0)), lambda q, k: q - 3 <= k <= q),
    ("varlen (-1, -1)", Window.from_torch_varlen((-1, -1)), lambda q, k: True),
    ("flashinfer 3", Window.from_flashinfer(3), lambda q, k: q - 3 <= k <= q),
    ("flashinfer -1", Window.from_flashinfer(-1), lambda q, k: k <= q),
    ("flashinfer 3, not causal", Window.from_flashinfer(3, causal=False), lambda q, k: k >= q - 3),
    ("jax (3, 2)", Window.from_jax((3, 2)), lambda q, k: q - 3 <= k <= q + 2),
    ("jax 2", Window.from_jax(2), lambda q, k: abs(q - k) <= 2),
    ("jax 2, causal", Window.from_jax(2, is_causal=True), lambda q, k: q - 2 <= k <= q),
    ("attention-gym 3", Window.from_attention_gym(3), lambda q, k: q >= k and q - k <= 3),
    ("x-transformers 3", Window.from_x_transformers(3), lambda q, k: q >= k and not q - k > 3),
    ("mistral 3", Window.from_mistral(3), lambda q, k: k <= q and k > q - 3),
    ("mistral None", Window.from_mistral(None), lambda q, k: k <= q),
    ("keras 3", Window.from_keras(3), lambda q, k: k <= q and k - q >= -3 + 1),
    ("torchtune 3", Window.from_torchtune(3), lambda q, k: k <= q and k - q >= -3 + 1),
    ("huggingface None", Window.from_huggingface(None), lambda q, k: k <= q),
    ("huggingface None, both ways", Window.from_huggingface(None, causal=False), lambda q, k: True),
]


@pytest.mark.parametrize(("window", "rule"), [c[1:] for c in CONVENTIONS], ids=[c[0] for c in CONVENTIONS])
def test_converters_say_what_the_library_says(window: Window, rule: Rule) -> None:
    dense = window.dense(FRAME)[0]
    for q in range(LENGTH):
        for k in range(LENGTH):
            assert bool(dense[q, k]) == rule(q, k), (q, k)


@pytest.mark.parametrize("width", [1, 2, 3, 7, 13])
@pytest.mark.parametrize("causal", [True, False])
def test_huggingface_against_its_own_functions(width: int, causal: bool) -> None:
    masking = pytest.importorskip("transformers.masking_utils")
    name = f"sliding_window_{'causal' if causal else 'bidirectional'}_mask_function"
    if not hasattr(masking, name):
        pytest.skip(f"this transformers has no {name}")
    theirs = getattr(masking, name)(width)
    ours = Window.from_huggingface(width, causal=causal).dense(FRAME)[0]
    q, k = torch.arange(LENGTH)[:, None], torch.arange(LENGTH)
    zero = torch.zeros((), dtype=torch.int64)
    assert torch.equal(ours, torch.as_tensor(theirs(zero, zero, q, k)).expand(LENGTH, LENGTH))


def test_widths_of_a_row_in_the_middle() -> None:
    def keys(window: Window) -> int:
        return int(window.dense(FRAME)[0, LENGTH // 2].sum())

    assert keys(Window(3, 0)) == 4  # three neighbours and itself
    assert keys(Window.from_flash_attention((3, 0))) == keys(Window.from_x_transformers(3)) == 4
    assert keys(Window.from_huggingface(3)) == keys(Window.from_mistral(3)) == keys(Window.from_keras(3)) == 3
    assert keys(Window.from_huggingface(3, causal=False)) == 7


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Window(-1, 0), ["before=-1", "0 or more", "None", "from_flash_attention"]),
        (lambda: Window(0, -7), ["after=-7", "0 or more"]),
        (lambda: Window.from_flash_attention((-2, 0)), ["before=-2", "0 or more"]),
        (lambda: Window.from_flash_attention((1, 2, 3)), ["(1, 2, 3)", "pair (left, right)"]),
        (lambda: Window.from_torch_varlen(3), ["3", "pair (left, right)"]),  # type: ignore[arg-type]
        (lambda: Window.from_huggingface(0), ["from_huggingface(0)", "1 or more"]),
        (lambda: Window.from_mistral(-1), ["from_mistral(-1)", "1 or more"]),
        (lambda: Window.from_jax(-1), ["before=-1"]),
    ],
)
def test_values_that_no_window_has(make: Callable[[], Window], words: list[str]) -> None:
    with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
        make()
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("value", [2.0, True, "3", torch.tensor(3)])
def test_counts_are_whole_numbers(value: object) -> None:
    with pytest.raises(TypeError, match="whole numbers"):
        Window(value, 0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="whole numbers"):
        Window.from_mistral(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("far", [sys.maxsize, 2**63, 2**70, 2**62])
def test_a_count_of_any_size_reaches_everything(far: int) -> None:
    """Added to a position, 2**63 - 1 wraps around: tiles then called every key hidden."""
    frame = Frame.of((), 1, 19, 13)  # the first queries stand at positions below 0
    causal = Causal().dense(frame)
    for mask, expected in (
        (Window(far, far), torch.ones_like(causal)),
        (Window(None, far), torch.ones_like(causal)),
        (Window(far, 0), causal),
    ):
        assert torch.equal(mask.dense(frame), expected)
        assert torch.equal(mask.tiles(frame, 1, 1) == Tile.FULL, expected[0])
        assert torch.equal(mask.tiles(frame, 1, 1) == Tile.EMPTY, ~expected[0])
