"""The shortest way of a layer's call with a cache gives what the long one gives, to the last bit."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor

import headwise.multihead.layer as layer_module
from headwise.cache import CrossCache, GrowingCache
from headwise.masks import Causal, KeyLengths
from headwise.multihead import MultiHeadAttention
from headwise.positions import ALiBi, Rotary
from next_steps import DTYPES, long_way

pytestmark = pytest.mark.usefixtures("without_gradients")
WIDTH, HEADS, STEPS = 20, 5, 41  # more steps than room is made for at once


def layer(dtype: torch.dtype = torch.float32, **options: Any) -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(WIDTH, HEADS, dtype=dtype, **options).eval()


def texts(batch: int, length: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(batch, length, WIDTH, generator=torch.Generator().manual_seed(3)).to(dtype)


def steps(
    of: MultiHeadAttention, x: Tensor, cache: GrowingCache, first: int = 0, last: int | None = None
) -> Tensor:
    found = [of(one, mask=Causal(), cache=cache) for one in x[:, first:last].split(1, dim=1)]
    return torch.cat(found, 1)


def same(a: Tensor | None, b: Tensor | None) -> bool:
    assert a is not None
    assert b is not None
    return a.dtype == b.dtype and torch.equal(a.nan_to_num(7.5), b.nan_to_num(7.5))


@pytest.fixture
def only_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The long way fails."""

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("the long way was taken")

    monkeypatch.setattr(layer_module, "problem", refuse)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [False, True])
def test_steps_of_a_text(dtype: torch.dtype, bias: bool) -> None:
    plain, x = layer(dtype, projection_bias=bias), texts(3, STEPS, dtype)
    mine, theirs = GrowingCache(), GrowingCache()
    found, expected = steps(plain, x, mine), steps(long_way(plain), x, theirs)
    assert torch.equal(found, expected)
    assert same(mine.k, theirs.k)
    assert same(mine.v, theirs.v)
    assert torch.equal(mine.lengths, theirs.lengths)
    assert torch.equal(mine.next_positions(2), theirs.next_positions(2))


def test_it_is_the_short_way_that_is_taken(monkeypatch: pytest.MonkeyPatch, request: Any) -> None:
    plain, x, memory = layer(), texts(3, STEPS), texts(3, 7)
    own, across, padding = GrowingCache(), CrossCache(), KeyLengths([7, 2, 5])
    plain(x[:, :2], mask=Causal(), cache=own)
    across_layer = layer()
    across_layer(x[:, :1], memory, mask=padding, cache=across)
    request.getfixturevalue("only_short")
    steps(plain, x, own, 2)
    across_layer(x[:, :1], mask=padding, cache=across)
    with pytest.raises(AssertionError, match="long way"):
        plain(x, mask=Causal())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lengths", [None, [7, 2, 5], [7, 7, 7], [3, 0, 7], [4]])
@pytest.mark.parametrize("beam", [1, 4])
def test_queries_to_a_kept_memory(dtype: torch.dtype, lengths: list[int] | None, beam: int) -> None:
    batch = 3 if lengths is None else len(lengths)
    plain, memory, x = layer(dtype), texts(batch, 7, dtype), texts(batch, beam, dtype)
    mask = None if lengths is None else KeyLengths(lengths)
    mine, theirs, other = CrossCache(), CrossCache(), long_way(plain)
    for _ in range(3):
        found = plain(x, memory, mask=mask, cache=mine)
        assert torch.equal(found, other(x, memory, mask=mask, cache=theirs))
        x = found
    if lengths is not None and batch > 1:  # another mask, and other rows
        mask = KeyLengths([1, 7, 6])
        assert torch.equal(plain(x, mask=mask, cache=mine), other(x, mask=mask, cache=theirs))
        rows = torch.tensor([2, 0])
        mine.select(rows)
        theirs.select(rows)
        mask = KeyLengths([6, 1])
        assert torch.equal(plain(x[:2], mask=mask, cache=mine), other(x[:2], mask=mask, cache=theirs))


def test_a_memory_mask_that_does_not_fit_is_refused() -> None:
    plain, x = layer(), texts(2, 1)
    cache = CrossCache()
    plain(x, texts(2, 7), cache=cache)
    with pytest.raises(ValueError, match="KeyLengths"):
        plain(x, mask=KeyLengths([3, 8]), cache=cache)
    with pytest.raises(ValueError, match="KeyLengths"):
        plain(x, mask=KeyLengths([3, 4, 5]), cache=cache)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_takes_the_long_way(bad: float) -> None:
    plain, x = layer(), texts(3, STEPS)
    x[1, 5] = bad
    mine, theirs = GrowingCache(), GrowingCache()
    assert same(steps(plain, x, mine), steps(long_way(plain), x, theirs))
    assert same(mine.k, theirs.k)
    memory, padding = texts(3, 7), KeyLengths([7, 2, 5])
    memory[1, 4] = bad  # where it must not be seen
    across, other = CrossCache(), CrossCache()
    for _ in range(2):
        found = plain_or(plain, x[:, :1], memory, padding, across)
        assert torch.equal(found, plain_or(long_way(plain), x[:, :1], memory, padding, other))
        assert found.isfinite().all()


def plain_or(
    of: MultiHeadAttention, x: Tensor, memory: Tensor, mask: KeyLengths, cache: CrossCache
) -> Tensor:
    out: Tensor = of(x, memory, mask=mask, cache=cache)
    cache._disown()
    return out


def test_selected_rows_go_on() -> None:
    plain, x = layer(), texts(3, STEPS)
    mine, theirs, other = GrowingCache(), GrowingCache(), long_way(plain)
    for at, rows in ((3, [2, 0, 0, 1]), (9, [1, 3]), (30, [1, 1, 0])):
        number = len(mine.lengths) if at > 3 else 3
        more = texts(number, at)
        assert torch.equal(steps(plain, more, mine), steps(other, more, theirs))
        index = torch.tensor(rows)
        mine.select(index)
        theirs.select(index)
        assert same(mine.k, theirs.k)
    keep = torch.tensor([True, False, True])
    mine.select(keep)
    theirs.select(keep)
    assert torch.equal(steps(plain, x[:2], mine, 0, 3), steps(other, x[:2], theirs, 0, 3))


def test_what_was_handed_out_stays() -> None:
    plain, x = layer(), texts(2, STEPS)
    cache = GrowingCache()
    steps(plain, x, cache, 0, 9)
    before, copied = cache.k, copy.copy(cache)
    assert before is not None
    numbers = before.clone()
    mark = cache.mark()
    cache.crop(4)
    steps(plain, x, cache, 20, 29)
    assert torch.equal(before, numbers)
    assert same(copied.k, numbers)
    cache.rollback(mark)
    steps(plain, x, cache, 30, 33)
    assert torch.equal(before, numbers)
    again = layer()
    steps(again, x, copied, 9, 12)
    whole = GrowingCache()
    steps(long_way(again), x, whole, 0, 12)
    assert same(copied.k, whole.k)


def test_modes_may_change_between_steps() -> None:
    plain, x = layer(), texts(2, 12)
    cache, expected = GrowingCache(), GrowingCache()
    whole = steps(long_way(plain), x, expected)
    with torch.inference_mode():
        first = steps(plain, x, cache, 0, 4)
    second = steps(plain, x, cache, 4, 8)
    with torch.enable_grad():
        third = steps(plain, x.clone(), cache, 8, 10)
    assert third.requires_grad
    fourth = steps(plain, x, cache, 10)
    assert torch.equal(torch.cat((first, second, third, fourth), 1), whole)


@pytest.mark.parametrize(
    "options",
    [
        {"rotary": Rotary(4)},
        {"qk_norm": True},
        {"gate": True},
        {"score_bias": ALiBi.for_heads(HEADS)},
        {"softcap": 3.0},
        {"sinks": True},
        {"num_kv_heads": 1},
        {"d_k": 3, "d_v": 7},
        {"scale": 0.7},
        {"kernel": "tiled"},
        {"dropout": 0.5},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_count_in_steps(options: dict[str, Any]) -> None:
    of, x = layer(**options), texts(3, 9)
    if of.sinks is not None:
        of.sinks.add_(1.0)
    torch.testing.assert_close(steps(of, x, GrowingCache()), of(x, mask=Causal()), atol=1e-5, rtol=1e-5)


def test_another_layers_cache_is_refused() -> None:
    cache, x = GrowingCache(), texts(2, 3)
    first, second = layer(), layer()
    steps(first, x, cache)
    with pytest.raises(ValueError, match="another MultiHeadAttention"):
        second(x[:, :1], mask=Causal(), cache=cache)
    assert cache.lengths.tolist() == [3, 3]


def test_projections_are_called_once_for_each_step() -> None:
    plain, x, cache = layer(), texts(2, 3), GrowingCache()
    calls: list[Tensor] = []
    plain.k_proj.register_forward_hook(lambda module, given, out: calls.append(out))
    steps(plain, x, cache)
    assert len(calls) == 3


@pytest.mark.parametrize("broken", ["q_proj", "k_proj", "v_proj"])
def test_a_projection_that_fails_leaves_no_trace(broken: str) -> None:
    plain, x, cache = layer(), texts(2, 5), GrowingCache()
    steps(plain, x, cache, 0, 3)

    def fail(*given: object) -> None:
        raise KeyError(broken)

    handle = plain.get_submodule(broken).register_forward_hook(fail)
    with pytest.raises(KeyError):
        steps(plain, x, cache, 3, 4)
    handle.remove()
    assert cache.lengths.tolist() == [3, 3]
    whole = GrowingCache()
    assert torch.equal(steps(plain, x, cache, 3), steps(long_way(plain), x, whole)[:, 3:])


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_gradients_of_what_was_handed_out_wait_for_no_step(mode: Any) -> None:
    plain, x, cache = layer(), texts(2, 9), GrowingCache()
    steps(plain, x, cache, 0, 3)
    weight = torch.ones(WIDTH // HEADS, requires_grad=True)
    with torch.enable_grad():
        assert cache.k is not None
        loss = (cache.k * weight).sum()
        expected = cache.k.sum((0, 1, 2))
    with mode():
        steps(plain, x, cache, 3)
    loss.backward()
    assert weight.grad is not None
    torch.testing.assert_close(weight.grad, expected)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_lengths_that_are_written_into_count(mode: Any) -> None:
    plain, x, memory = layer(), texts(2, 1), texts(2, 7)
    with mode():
        lengths, cache = torch.tensor([3, 4]), CrossCache()
        mask = KeyLengths(lengths)
        plain(x, memory, mask=mask, cache=cache)
        for _ in range(3):
            found = plain(x, mask=mask, cache=cache)
            expected = long_way(plain)(x, memory, mask=KeyLengths(lengths.clone()), cache=CrossCache())
            assert torch.equal(found, expected)
            lengths += 1
