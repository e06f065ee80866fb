"""The shortest way of a layer's step, in room made ahead and with the options of a decoder, gives what the
long one gives, to the last bit."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import headwise.multihead.layer as layer_module
from headwise.cache import CrossCache, GrowingCache, StaticCache
from headwise.kernels.native_build import isa
from headwise.kernels.plain import kernel_of_sizes
from headwise.masks import Causal, KeyLengths
from headwise.multihead import MultiHeadAttention
from headwise.positions import Rotary
from next_steps import DTYPES, long_way

pytestmark = pytest.mark.usefixtures("without_gradients")
WIDTH, HEADS = 96, 3  # heads of 32: whole vectors
OPTIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "grouped": {"num_heads": 6, "num_kv_heads": 2, "d_k": 32, "d_v": 32},
    "one key head": {"num_kv_heads": 1},
    "widths": {"d_k": 13, "d_v": 48},
    "rotary": {"rotary": Rotary(32)},
    "part of rotary": {"rotary": Rotary(32, layout="interleaved", rotary_dim=10), "num_kv_heads": 1},
    "norms": {"qk_norm": True, "rotary": Rotary(32)},
    "scale": {"scale": 0.7, "projection_bias": True},
}


def layer(dtype: torch.dtype = torch.float32, **options: Any) -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(WIDTH, options.pop("num_heads", HEADS), dtype=dtype, **options).eval()


def text(batch: int, length: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(batch, length, WIDTH, generator=torch.Generator().manual_seed(3)).to(dtype)


def fed(of: MultiHeadAttention, x: Tensor, cache: GrowingCache | StaticCache) -> Tensor:
    return torch.cat([of(one, mask=Causal(), cache=cache) for one in x.split(1, dim=1)], 1)


def static(of: MultiHeadAttention, batch: int, room: int) -> StaticCache:
    return StaticCache.for_layer(of, batch, room)


CACHES: dict[str, Callable[[MultiHeadAttention, int, int], GrowingCache | StaticCache]] = {
    "growing": lambda of, batch, length: GrowingCache(),
    "just room enough": static,
    "half empty": lambda of, batch, length: static(of, batch, 2 * length),
}


@pytest.fixture
def no_long_way(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From its call on, the long way fails."""

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("the long way was taken")

    return lambda: monkeypatch.setattr(layer_module, "problem", refuse)


def kernel(of: MultiHeadAttention, x: Tensor, keys: int) -> str | None:
    """Which kernel has a way of its own for a step of x; None: neither, and the long way is right."""
    q, k = (len(x), of.num_heads, 1, of.d_k), (len(x), of.num_kv_heads, keys, of.d_k)
    return kernel_of_sizes("cpu", x.dtype, q, k, (*k[:3], of.d_v), isa())


def same(mine: GrowingCache | StaticCache, theirs: GrowingCache | StaticCache) -> bool:
    at = int(mine.lengths.max())
    assert torch.equal(mine.lengths, theirs.lengths)
    assert torch.equal(mine.next_positions(2), theirs.next_positions(2))
    assert mine.k is not None and mine.v is not None  # noqa: PT018
    assert theirs.k is not None and theirs.v is not None  # noqa: PT018
    return torch.equal(mine.k[:, :, :at], theirs.k[:, :, :at]) and torch.equal(
        mine.v[:, :, :at], theirs.v[:, :, :at]
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", list(OPTIONS))
@pytest.mark.parametrize("kind", list(CACHES))
def test_steps_after_a_prefix(
    kind: str, options: str, dtype: torch.dtype, no_long_way: Callable[[], None]
) -> None:
    plain, x = layer(dtype, **OPTIONS[options]), text(2, 70, dtype)
    mine, theirs = (CACHES[kind](plain, 2, 70) for _ in range(2))
    other = long_way(plain)
    for of, cache in ((plain, mine), (other, theirs)):
        of(x[:, :60], mask=Causal(), cache=cache)
    expected = fed(other, x[:, 60:], theirs)
    if kernel(plain, x, 70) is not None:
        no_long_way()
    assert torch.equal(fed(plain, x[:, 60:], mine), expected)
    assert same(mine, theirs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", list(CACHES))
def test_a_text_long_enough_to_be_split(kind: str, dtype: torch.dtype) -> None:
    plain, x = layer(dtype), text(1, 2060, dtype)
    mine, theirs = (CACHES[kind](plain, 1, 2060) for _ in range(2))
    other = long_way(plain)
    for of, cache in ((plain, mine), (other, theirs)):
        of(x[:, :2050], mask=Causal(), cache=cache)
    assert torch.equal(fed(plain, x[:, 2050:], mine), fed(other, x[:, 2050:], theirs))
    whole = plain(x, mask=Causal())[:, 2050:]
    near = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 2e-2}[dtype]
    mine.crop(2050)
    torch.testing.assert_close(fed(plain, x[:, 2050:], mine), whole, rtol=near, atol=near)


def test_from_the_first_step_to_the_last(no_long_way: Callable[[], None]) -> None:
    """An empty cache too, up to the step that doesn't fit, which is refused as ever."""
    plain, x = layer(), text(2, 8)
    expected = plain(x, mask=Causal())
    cache = static(plain, 2, 7)
    no_long_way()
    torch.testing.assert_close(fed(plain, x[:, :7], cache), expected[:, :7], rtol=1e-5, atol=1e-6)
    before = cache.k.clone()
    with pytest.raises(ValueError, match="max_length=7"):
        plain(x[:, 7:], mask=Causal(), cache=cache)
    assert torch.equal(cache.k, before)
    assert cache.lengths.tolist() == [7, 7]


def test_what_becomes_of_a_cache_between_steps() -> None:
    """Cropped, copied, rolled back, its rows chosen, emptied, sequences unequal."""
    plain, x = layer(), text(3, 40)
    other = long_way(plain)
    mine, theirs = static(plain, 3, 50), static(plain, 3, 50)

    def both(part: Tensor) -> None:
        assert torch.equal(fed(plain, part, mine), fed(other, part, theirs))
        assert same(mine, theirs)

    def each(change: Callable[[StaticCache], object]) -> None:
        change(mine)
        change(theirs)

    both(x[:, :9])
    each(lambda cache: cache.crop(4))
    both(x[:, 9:15])
    copied, marks = copy.deepcopy(mine), (mine.mark(), theirs.mark())
    both(x[:, 15:16])
    mine.rollback(marks[0])
    theirs.rollback(marks[1])
    both(x[:, 16:20])
    each(lambda cache: cache.select(torch.tensor([2, 0, 1])))
    both(x[:, 20:22])
    each(lambda cache: cache.select(torch.tensor([True, False, True])))
    x = x[:2]
    both(x[:, 22:24])
    for of, cache in ((plain, mine), (other, theirs)):
        of(x[:, 24:27], mask=Causal(), cache=cache, lengths=torch.tensor([3, 1]))
    both(x[:, 27:30])
    each(lambda cache: cache.reset())
    both(x[:, 30:])
    assert copied.lengths.tolist() == [10, 10, 10]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", ["none", "grouped", "rotary"])
def test_sequences_of_unequal_length(
    options: str, dtype: torch.dtype, no_long_way: Callable[[], None]
) -> None:
    plain, x = layer(dtype, **OPTIONS[options]), text(3, 75, dtype)
    mine, theirs = static(plain, 3, 90), static(plain, 3, 90)
    other, lengths = long_way(plain), torch.tensor([70, 1, 33])
    for of, cache in ((plain, mine), (other, theirs)):
        of(x[:, :70], mask=Causal(), cache=cache, lengths=lengths)
    expected = fed(other, x[:, 70:], theirs)
    if kernel(plain, x, 90) == "native":  # torch needs a mask for it
        no_long_way()
    assert torch.equal(fed(plain, x[:, 70:], mine), expected)
    assert torch.equal(mine.lengths, lengths + 5)
    for row, length in enumerate(lengths.tolist()):
        for a, b in ((mine.k, theirs.k), (mine.v, theirs.v)):
            assert torch.equal(a[row, :, : length + 5], b[row, :, : length + 5])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_takes_the_long_way(bad: float) -> None:
    plain, x = layer(), text(2, 12)
    x[1, 5] = bad
    mine, theirs = static(plain, 2, 20), static(plain, 2, 20)
    found, expected = fed(plain, x, mine), fed(long_way(plain), x, theirs)
    assert torch.equal(found.nan_to_num(7.5), expected.nan_to_num(7.5))
    assert mine.lengths.tolist() == theirs.lengths.tolist() == [12, 12]


def test_room_that_holds_no_step_is_not_seen() -> None:
    """Whatever is in it: an earlier text's NaN, for instance."""
    plain, x = layer(), text(2, 70)
    cache = static(plain, 2, 80)
    cache._k.fill_(math.nan)
    cache._v.fill_(math.inf)
    torch.testing.assert_close(fed(plain, x, cache), plain(x, mask=Causal()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_modes_may_change_between_steps(mode: Any) -> None:
    plain, x = layer(), text(2, 12)
    expected = fed(long_way(plain), x, static(plain, 2, 12))
    cache = static(plain, 2, 12)
    with mode():
        first = fed(plain, x[:, :6], cache)
    assert torch.equal(torch.cat((first, fed(plain, x[:, 6:], cache)), 1), expected)
    with mode():
        made = static(plain, 2, 12)
        made_first = fed(plain, x[:, :6], made)
    assert torch.equal(made_first, first)
    if mode is torch.inference_mode:
        with pytest.raises(RuntimeError, match="inference"):
            fed(plain, x[:, 6:7], made)


@pytest.mark.parametrize("kind", list(CACHES))
@pytest.mark.parametrize("broken", ["q_proj", "k_proj", "v_proj"])
def test_a_projection_that_fails_leaves_no_trace(kind: str, broken: str) -> None:
    plain, x = layer(), text(2, 5)
    cache = CACHES[kind](plain, 2, 5)
    fed(plain, x[:, :3], cache)

    def fail(*given: object) -> None:
        raise KeyError(broken)

    handle = plain.get_submodule(broken).register_forward_hook(fail)
    with pytest.raises(KeyError):
        fed(plain, x[:, 3:4], cache)
    handle.remove()
    assert cache.lengths.tolist() == [3, 3]
    assert torch.equal(fed(plain, x[:, 3:], cache), fed(long_way(plain), x, GrowingCache())[:, 3:])


@pytest.mark.parametrize("options", ["grouped", "one key head", "widths", "norms", "scale"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("lengths", [None, 40, [40, 3], [61, 61]])
def test_queries_to_a_kept_memory(options: str, dtype: torch.dtype, lengths: Any) -> None:
    given = {key: value for key, value in OPTIONS[options].items() if key != "rotary"}
    plain, memory, x = layer(dtype, **given), text(2, 61, dtype), text(2, 3, dtype)
    mask = None if lengths is None else KeyLengths(lengths)
    mine, theirs, other = CrossCache(), CrossCache(), long_way(plain)
    for _ in range(3):
        found = plain(x, memory, mask=mask, cache=mine)
        assert torch.equal(found, other(x, memory, mask=mask, cache=theirs))
        x = found


@pytest.mark.parametrize("kind", list(CACHES))
def test_a_batch_may_be_empty(kind: str) -> None:
    plain, x = layer(), text(0, 5)
    cache = CACHES[kind](plain, 0, 5)
    assert fed(plain, x, cache).shape == (0, 5, WIDTH)


def test_a_cache_of_other_heads_is_refused() -> None:
    """One that has no owner any more, as after loading: by shapes."""
    cache = GrowingCache()
    fed(layer(num_kv_heads=1), text(2, 3), cache)
    cache._disown()
    with pytest.raises(ValueError, match="the cache holds"):
        fed(layer(), text(2, 1), cache)
    across = CrossCache()
    layer(num_kv_heads=1)(text(2, 1), text(2, 7), cache=across)
    across._disown()
    torch.testing.assert_close(
        layer(num_kv_heads=3)(text(2, 1), cache=across),
        long_way(layer(num_kv_heads=3))(text(2, 1), cache=across),
    )
