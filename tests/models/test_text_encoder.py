"""Encoder-only models: a class for a text, a span of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.models import SequenceClassifier, SpanReader, TextEncoder, TextEncoderConfig, best_spans

LENGTHS = [7, 3, 1]
IDS = torch.randint(0, 19, (3, 7), generator=torch.Generator().manual_seed(0))


def config(**changes: Any) -> TextEncoderConfig:
    sizes: dict[str, Any] = {"vocab_size": 19, "num_layers": 2, "d_model": 12, "d_ff": 17, "num_heads": 3}
    return TextEncoderConfig(**(sizes | changes))


@pytest.mark.parametrize("pool", ["mean", "first"])
def test_classes_do_not_see_padding(pool: Any) -> None:
    torch.manual_seed(0)
    model = SequenceClassifier(config(), 5, pool=pool).double().eval()
    out = model(IDS, torch.tensor(LENGTHS))
    assert out.shape == (3, 5)
    for row, length in enumerate(LENGTHS):
        alone = model(IDS[row : row + 1, :length])
        torch.testing.assert_close(alone[0], out[row], rtol=1e-10, atol=1e-12)


def test_spans_do_not_see_padding_and_stand_where_allowed() -> None:
    torch.manual_seed(0)
    model = SpanReader(config(segments=2)).double().eval()
    segments = (torch.arange(7) >= 1).long().expand(3, -1)
    start, end = model(IDS, torch.tensor(LENGTHS), segments=segments, allowed=segments.bool())
    for row, length in enumerate(LENGTHS):
        allowed = torch.arange(7) < length
        allowed[0] = False
        for scores in (start, end):
            assert torch.equal(scores[row].isfinite(), allowed)
        alone, _ = model(IDS[row : row + 1, :length], segments=segments[row : row + 1, :length])
        torch.testing.assert_close(alone[0, 1:], start[row, 1:length], rtol=1e-10, atol=1e-12)
    other, _ = model(IDS, torch.tensor(LENGTHS), segments=1 - segments)
    assert not torch.allclose(other[0], start[0])


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    length=st.integers(1, 9),
    longest=st.integers(1, 11),
    hidden=st.integers(0, 5),
)
def test_best_spans_against_all_spans(seed: int, length: int, longest: int, hidden: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    start, end = torch.randn(2, 2, length, generator=generator, dtype=torch.float64)
    start[0, : min(hidden, length)] = end[0, : min(hidden, length)] = -torch.inf
    first, last, score = best_spans(start, end, max_length=longest)
    for row in range(2):
        every = [
            (float(start[row, i] + end[row, j]), i, j)
            for i in range(length)
            for j in range(i, min(i + longest, length))
        ]
        best = max(every)
        assert float(score[row]) == best[0]
        if best[0] > -torch.inf:
            assert (int(first[row]), int(last[row])) == best[1:]


def test_windows_reach_both_sides() -> None:
    torch.manual_seed(0)
    model = TextEncoder(config(window=1, num_layers=1)).double().eval()
    changed = IDS.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 19
    moved = (model(IDS) != model(changed)).any(-1)
    assert moved[0].nonzero().flatten().tolist() == [3, 4, 5]


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="num_classes=0"):
        SequenceClassifier(config(), 0)
    with pytest.raises(ValueError, match="pool must be"):
        SequenceClassifier(config(), 3, pool="max")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="segments must be at least 0"):
        config(segments=-1)
    plain, kinds = TextEncoder(config()), TextEncoder(config(segments=2))
    with pytest.raises(ValueError, match="tells no segments apart"):
        plain(IDS, segments=torch.zeros_like(IDS))
    with pytest.raises(ValueError, match=r"segments must lie in 0 \.\. 1"):
        kinds(IDS, segments=torch.full_like(IDS, 2))
    with pytest.raises(ValueError, match="segments must have the shape of ids"):
        kinds(IDS, segments=torch.zeros_like(IDS[:, :2]))
    with pytest.raises(ValueError, match="allowed must be boolean"):
        SpanReader(config())(IDS, allowed=torch.ones_like(IDS))
    with pytest.raises(ValueError, match="max_length=0"):
        best_spans(torch.zeros(1, 2), torch.zeros(1, 2), max_length=0)
    with pytest.raises(ValueError, match="1 token or more"):
        best_spans(torch.zeros(1, 0), torch.zeros(1, 0))
