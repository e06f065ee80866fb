"""What a layer refuses, and what its messages say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from headwise.cache import Cache, CrossCache
from headwise.kernels.check import check_positions
from headwise.kernels.quantities import called, check_scale, check_share, check_softcap, check_whole
from headwise.kernels.recomputed import in_backward
from headwise.positions.base import Bias
from headwise.positions.rotary import Rotary

if TYPE_CHECKING:
    from headwise.multihead.layer import MultiHeadAttention


def sizes(
    d_model: int,
    num_heads: int,
    num_kv_heads: int,
    d_k: int | None,
    d_v: int | None,
    dropout: float,
    rotary: Rotary | None,
) -> tuple[int, int]:
    """d_k and d_v, by default d_model / num_heads each.

    Raises:
        ValueError: sizes below 1, heads that don't divide, a dropout outside 0 .. 1, a rotary of another d_k.
    """
    for name, size in {"d_model": d_model, "num_heads": num_heads, "num_kv_heads": num_kv_heads}.items():
        check_whole(name, size)
    if d_model < 1 or num_heads < 1 or num_kv_heads < 1:
        raise ValueError(
            f"d_model={d_model}, num_heads={num_heads}, num_kv_heads={num_kv_heads}: each must be 1 or more."
        )
    if num_heads % num_kv_heads:
        raise ValueError(
            f"num_heads={num_heads} is no multiple of num_kv_heads={num_kv_heads}: query heads share "
            f"key/value heads evenly, so num_kv_heads must be one of {_divisors(num_heads)}."
        )
    if (d_k is None or d_v is None) and d_model % num_heads:
        raise ValueError(
            f"d_model={d_model} doesn't divide into num_heads={num_heads}, so there is no default width of a "
            f"head: pass d_k= and d_v= (any sizes), or another num_heads."
        )
    d_k = d_model // num_heads if d_k is None else d_k
    d_v = d_model // num_heads if d_v is None else d_v
    check_whole("d_k", d_k)
    check_whole("d_v", d_v)
    if d_k < 1 or d_v < 1:
        raise ValueError(f"d_k={d_k} and d_v={d_v}: each must be 1 or more.")
    check_share("dropout", dropout)
    if rotary is not None and not isinstance(rotary, Rotary):
        raise TypeError(f"rotary is {called(rotary)}: expected a Rotary, such as Rotary({d_k}).")
    if rotary is not None and rotary.d_k != d_k:
        raise ValueError(f"rotary is for d_k={rotary.d_k} but the layer has d_k={d_k}: use Rotary({d_k}).")
    return d_k, d_v


def check_parts(score_bias: object, softcap: float | None, scale: float | None) -> None:
    """Raise where an option of a layer would only be refused when the layer is called, or never."""
    if score_bias is not None and not isinstance(score_bias, Bias | nn.Module):
        fix = ": pass AddedScores(tensor)" if isinstance(score_bias, Tensor) else ""
        if isinstance(score_bias, type):
            fix = ": such as ALiBi.for_heads(num_heads) or RelativeBias(num_heads)"
        raise TypeError(
            f"score_bias is {called(score_bias)}: expected a Bias, or a module that hands one out{fix}."
        )
    if isinstance(score_bias, Bias) and any(isinstance(t, nn.Parameter) for t in score_bias.tensors()):
        raise ValueError(
            f"score_bias is a {type(score_bias).__name__} over a Parameter, which would be missing in the "
            f"layer's parameters() and state dict: pass a module that owns the Parameter and hands out the "
            f"bias when called (as RelativeBias does)."
        )
    check_softcap(softcap)
    check_scale(scale)


def check_widths(layer: MultiHeadAttention) -> None:
    """Raise ValueError where an input or the output has no width."""
    for name in ("input_dim", "memory_dim", "value_dim", "output_dim"):
        check_whole(name, getattr(layer, name))
        if getattr(layer, name) < 1:
            raise ValueError(f"{name}={getattr(layer, name)}: must be 1 or more.")


def check_inputs(
    layer: MultiHeadAttention,
    x: Tensor,
    memory: Tensor | None,
    values: Tensor | None,
    cache: Cache | CrossCache | None,
    lengths: Tensor | None,
    positions: Tensor | None,
    memory_positions: Tensor | None,
) -> None:
    """Raise ValueError or TypeError where the inputs of a call don't fit the layer or each other."""
    _check_width("x", x, layer.input_dim, "input_dim")
    _check_dtype("x", x, layer.q_proj)
    crossing = isinstance(cache, CrossCache)
    if cache is not None and not isinstance(cache, Cache | CrossCache):
        raise TypeError(_not_a_cache(cache))
    if cache is not None:
        cache.check_owner(layer)
    if memory is None:
        if values is not None:
            raise ValueError("values= given without memory=: pass what the keys are read from as memory=.")
        if memory_positions is not None:
            raise ValueError("memory_positions= given without memory=: positions= are those of x.")
        if crossing and not (isinstance(cache, CrossCache) and cache.filled):
            raise ValueError(
                "This CrossCache is empty: pass memory= on the first call; later calls may leave it."
            )
        if not crossing and not layer.input_dim == layer.memory_dim == layer.value_dim:
            raise ValueError(
                f"This layer reads keys from width memory_dim={layer.memory_dim} and values from width "
                f"value_dim={layer.value_dim}, but x has {layer.input_dim}: pass memory= (and values=)."
            )
    else:
        _check_width("memory", memory, layer.memory_dim, "memory_dim")
        _check_dtype("memory", memory, layer.k_proj)
        if isinstance(cache, Cache):
            raise ValueError(
                f"memory= with a {type(cache).__name__}: that keeps the steps of x. To compute a memory's "
                f"keys and values once, use cache=CrossCache()."
            )
        if isinstance(cache, CrossCache) and cache.filled and cache.length != memory.shape[-2]:
            raise ValueError(
                f"memory.shape={tuple(memory.shape)} but the CrossCache holds {cache.length} keys of another "
                f"memory: reset() it for a new one, or leave memory= out."
            )
        _check_pair("memory", memory, x, same_length=False)
        if values is None and layer.memory_dim != layer.value_dim:
            raise ValueError(
                f"This layer reads keys from width memory_dim={layer.memory_dim} and values from width "
                f"value_dim={layer.value_dim}: pass values= besides memory=."
            )
        if values is not None:
            _check_width("values", values, layer.value_dim, "value_dim")
            _check_pair("values", values, memory, same_length=True)
    if memory_positions is not None and isinstance(cache, CrossCache) and cache.filled:
        _check_kept(memory_positions, cache.positions)
    # Before rotary positions turn anything.
    check_positions("positions", positions, tuple(x.shape[:-2]), x.shape[-2], x.device)
    if memory is not None:
        lead = tuple(memory.shape[:-2])
        check_positions("memory_positions", memory_positions, lead, memory.shape[-2], memory.device)
    if isinstance(cache, Cache) and in_backward():
        raise RuntimeError(
            "A cache inside gradient checkpointing: computed again, the call would append its steps a second "
            "time. Train without a cache, or without checkpointing."
        )
    if isinstance(cache, Cache) and positions is not None:
        raise ValueError(
            "positions= with a cache: the cache knows the positions of its steps; leave them out."
        )
    if lengths is not None and not isinstance(cache, Cache):
        raise ValueError(
            "lengths= says how many new steps go into a cache, and there is none: to hide padding, pass "
            "mask=KeyLengths(lengths)."
        )


def check_fused(layer: MultiHeadAttention, weight: Tensor | None, bias: Tensor | None) -> None:
    """Raise ValueError where the projections can't be one matrix, or the tensors have other widths."""
    other = [
        f"{name} is a {type(part).__name__}"
        for name, part in (("q_proj", layer.q_proj), ("k_proj", layer.k_proj), ("v_proj", layer.v_proj))
        if not isinstance(part, nn.Linear)
    ]
    if other:
        raise ValueError(
            f"Fused weights are those of plain nn.Linear, but {', '.join(other)}: merge it first."
        )
    if not layer.input_dim == layer.memory_dim == layer.value_dim:
        raise ValueError(
            f"input_dim={layer.input_dim}, memory_dim={layer.memory_dim} and value_dim={layer.value_dim} "
            f"differ, so the projections don't make one matrix: load q_proj, k_proj and v_proj one by one."
        )
    if weight is not None and (weight.ndim != 2 or weight.shape[1] != layer.input_dim):
        raise ValueError(
            f"The fused weight is {tuple(weight.shape)} as [rows, width]: expected width {layer.input_dim}. "
            f"One stored [width, rows] (GPT-2's Conv1D) needs transposed=True."
        )
    if bias is not None and layer.q_proj.bias is None:
        raise ValueError("A fused bias for a layer without: build it with projection_bias=True.")


def _not_a_cache(cache: object) -> str:
    fix = f": write {cache.__name__}(...) once, and give it at each step" if isinstance(cache, type) else ""
    return f"cache is {called(cache)}: expected a Cache of headwise.cache{fix}."


def _check_kept(given: Tensor, kept: Tensor | None) -> None:
    if torch.compiler.is_compiling() or (kept is not None and torch.equal(given, kept)):
        return
    raise ValueError(
        "memory_positions= are others than those with which this CrossCache was filled: its keys stand where "
        "they stood then. reset() it, or leave memory_positions out."
    )


def _check_width(name: str, given: Tensor, width: int, argument: str) -> None:
    if not isinstance(given, Tensor):
        raise TypeError(f"{name} is a {type(given).__name__}: expected a tensor [*batch, length, {width}].")
    if given.ndim < 2 or given.shape[-1] != width:
        raise ValueError(
            f"{name}.shape={tuple(given.shape)}: expected [*batch, length, {width}]. Build the layer with "
            f"{argument}={given.shape[-1] if given.ndim else 1} to take this {name}."
        )
    if not given.is_floating_point():
        raise TypeError(
            f"{name} is {given.dtype} {tuple(given.shape)}: expected floating-point features; token numbers "
            f"go through an nn.Embedding first, other numbers through {name}.float()."
        )


def _check_dtype(name: str, given: Tensor, projection: nn.Module) -> None:
    """A plain linear takes its own dtype alone; other modules (adapters, quantised ones) know their own."""
    weight = getattr(projection, "weight", None)
    if type(projection) is not nn.Linear or not isinstance(weight, Tensor) or given.dtype == weight.dtype:
        return
    device = given.device.type
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
        return
    raise TypeError(
        f"{name} is {given.dtype} and the layer's weights are {weight.dtype}: pass "
        f"{name}.to({weight.dtype}), move the layer with layer.to({given.dtype}), or run under "
        f"torch.autocast."
    )


def _check_pair(name: str, given: Tensor, other: Tensor, *, same_length: bool) -> None:
    other_name = "memory" if same_length else "x"
    end = -1 if same_length else -2
    if given.shape[:end] != other.shape[:end]:
        rule = "all but their width" if same_length else "their batch dimensions"
        raise ValueError(
            f"{name}.shape={tuple(given.shape)} and {other_name}.shape={tuple(other.shape)}: {rule} must be "
            f"equal."
        )


def _divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]
