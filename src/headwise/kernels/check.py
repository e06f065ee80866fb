"""The checks that an attention call passes before anything is computed."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from headwise.kernels.addresses import PLAIN
from headwise.kernels.quantities import called, check_scale, check_share, check_softcap
from headwise.masks.base import Mask
from headwise.masks.fits import broadcasts
from headwise.positions.added import AddedScores
from headwise.positions.base import Bias

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
Kinds = tuple[
    torch.Size,
    torch.Size,
    torch.Size,
    torch.dtype,
    torch.dtype,
    torch.dtype,
    torch.device,
    torch.device,
    torch.device,
]


def check_tensors(q: Tensor, k: Tensor, v: Tensor) -> tuple[int, ...]:
    """Check types and shapes of q [*batch, heads, q_len, d_k], k [*batch, kv_heads, k_len, d_k] and
    v [*batch, kv_heads, k_len, d_v]; return the batch dimensions (those of k and v may be 1 or absent)."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} is a {type(x).__name__}: pass a tensor [*batch, heads, length, d]")
        if x.is_nested or x.layout is not torch.strided:
            raise TypeError(_other_layout(name, x))
    # Sizes that have passed are looked up, which touches less memory than to check again: that shows where
    # the products of the call before have emptied the processor's caches. Sizes that a compiler or an export
    # leaves open can't be looked up.
    fixed = not torch.compiler.is_compiling() and all(type(x) in PLAIN for x in (q, k, v))
    check = check_kinds if fixed else check_kinds.__wrapped__
    return check(kinds_of(q, k, v))


def kinds_of(q: Tensor, k: Tensor, v: Tensor) -> Kinds:
    """All that the checks of three tensors look at."""
    return q.shape, k.shape, v.shape, q.dtype, k.dtype, v.dtype, q.device, k.device, v.device


@functools.lru_cache(maxsize=256)
def check_kinds(kinds: Kinds) -> tuple[int, ...]:
    """`check_tensors` of what `kinds_of` says of them."""
    q, k, v, q_type, k_type, v_type, q_device, k_device, v_device = kinds
    for name, shape in (("q", q), ("k", k), ("v", v)):
        if len(shape) < 3:
            raise ValueError(
                f"{name}.shape={list(shape)} has {len(shape)} dimensions: {name} is [*batch, heads, length, "
                f"d]; for one head, {name}.unsqueeze(-3)"
            )
    if q_type not in _FLOATS:
        raise TypeError(
            f"q.dtype={q_type}: attention computes in float16, bfloat16, float32 or float64; convert with "
            "q.float()"
        )
    if k_type != q_type or v_type != q_type:
        raise TypeError(
            f"q, k and v are {q_type}, {k_type} and {v_type}: they must be the same; convert two of them, "
            "for example with k.to(q.dtype)"
        )
    if k_device != q_device or v_device != q_device:
        raise ValueError(
            f"q, k and v are on {q_device}, {k_device} and {v_device}: move them to one, for example with "
            "k.to(q.device)"
        )
    if k[-1] != q[-1]:
        raise ValueError(
            f"d_k differs: q.shape={list(q)} and k.shape={list(k)}, whose last dimensions must be equal "
            "(scores are q . k)"
        )
    if v[-2] != k[-2]:
        raise ValueError(
            f"k_len differs: k.shape={list(k)} and v.shape={list(v)}, whose second last dimensions must "
            "be equal (each key has one value)"
        )
    if v[-3] != k[-3]:
        raise ValueError(
            f"kv_heads differs: k.shape={list(k)} and v.shape={list(v)}, whose third last dimensions "
            "must be equal"
        )
    heads, kv_heads = q[-3], k[-3]
    if (kv_heads == 0) != (heads == 0) or (kv_heads and heads % kv_heads):
        raise ValueError(
            f"heads={heads} (q.shape={list(q)}) can't be shared evenly by kv_heads={kv_heads} "
            f"(k.shape={list(k)}): heads must be a multiple of kv_heads, so that query head i reads "
            "key/value head i // (heads // kv_heads)"
        )
    batch = tuple(q[:-3])
    for name, shape in (("k", k), ("v", v)):
        if not broadcasts(shape[:-3], batch):
            raise ValueError(
                f"{name}.shape={list(shape)} has batch dimensions {list(shape[:-3])}, which don't broadcast "
                f"to those of q, {list(batch)} (q.shape={list(q)})"
            )
    return batch


def check_options(
    q: Tensor,
    *,
    mask: object,
    bias: object,
    scale: float | None,
    softcap: float | None,
    sinks: Tensor | None,
    dropout: float,
) -> None:
    """Check the types and ranges of everything but q, k and v."""
    if mask is not None and not isinstance(mask, Mask):
        raise TypeError(_not_a_mask(mask))
    if bias is not None and not isinstance(bias, Bias | Tensor):
        made = ""
        if isinstance(bias, type) and issubclass(bias, Bias):
            how = f".for_heads({q.shape[-3]})" if hasattr(bias, "for_heads") else "(...)"
            made = f"; write {bias.__name__}{how}"
        raise TypeError(
            f"bias is {called(bias)}: pass a Bias (ALiBi, RelativeBuckets, ...) or a float tensor "
            f"broadcastable to [*batch, heads, q_len, k_len]{made}"
        )
    numbers = bias.tensor if isinstance(bias, AddedScores) else bias
    if isinstance(numbers, Tensor) and numbers.device != q.device:
        raise ValueError(f"bias is on {numbers.device} and q on {q.device}: pass bias.to(q.device)")
    check_scale(scale)
    if scale is None and q.shape[-1] == 0:
        raise ValueError("d_k is 0, and the scale 1 / sqrt(d_k) has no value there: pass scale=1.0")
    check_softcap(softcap)
    check_share("dropout", dropout)
    if sinks is not None:
        heads = q.shape[-3]
        if not isinstance(sinks, Tensor) or not sinks.is_floating_point() or tuple(sinks.shape) != (heads,):
            got = f"{sinks.dtype} {_shape(sinks)}" if isinstance(sinks, Tensor) else type(sinks).__name__
            raise ValueError(
                f"sinks is {got}: must be a float tensor [heads] = [{heads}], a logit per query head"
            )
        if sinks.device != q.device:
            raise ValueError(f"sinks is on {sinks.device} and q on {q.device}: pass sinks.to(q.device)")


def _other_layout(name: str, x: Tensor) -> str:
    if x.is_nested:
        return (
            f"{name} is a nested tensor: pad it with torch.nested.to_padded_tensor(..., 0.0) and pass "
            "mask=KeyLengths(lengths), or lay its sequences end to end and pass mask=Documents(ids)"
        )
    return f"{name}.layout={x.layout}: attention reads strided tensors; convert with {name}.to_dense()"


def check_positions(
    name: str, positions: Tensor | None, batch: tuple[int, ...], length: int, device: torch.device
) -> None:
    """Check that explicit positions are int64 [length] or [*batch, length]."""
    if positions is None:
        return
    if not isinstance(positions, Tensor) or positions.dtype != torch.int64:
        got = positions.dtype if isinstance(positions, Tensor) else type(positions).__name__
        raise TypeError(f"{name} is {got}: pass an int64 tensor [{length}] or [*batch, {length}]")
    if tuple(positions.shape) not in ((length,), (*batch, length)):
        raise ValueError(
            f"{name}.shape={_shape(positions)}: must be [{length}] (the same for the whole batch) or "
            f"{[*batch, length]}"
        )
    if positions.device != device:
        raise ValueError(f"{name} is on {positions.device}, not on {device}: pass {name}.to({str(device)!r})")


def _not_a_mask(mask: object) -> str:
    if isinstance(mask, type) and issubclass(mask, Mask):
        return f"mask is the class {mask.__name__}: write {mask.__name__}(...)"
    if not isinstance(mask, Tensor):
        return (
            f"mask is a {type(mask).__name__}: pass a Mask (Causal(), KeyLengths(n), Allow(tensor), ...), "
            "composed with &, | and ~"
        )
    what = f"mask is a {mask.dtype} tensor {_shape(mask)}"
    if mask.dtype == torch.bool:
        return (
            f"{what}: wrap it as Allow(mask), in which True means may attend. In torch.nn.MultiheadAttention "
            "True means the opposite: from there, pass Allow(~mask)"
        )
    if mask.is_floating_point():
        return (
            f"{what}: a number added to scores is a bias, so pass bias=mask; if it holds 1 for pairs that "
            "may attend and 0 for the others, pass Allow(mask.bool())"
        )
    return f"{what}: integers don't say what they mean; pass Allow(mask.bool()) if 1 means may attend"


def _shape(tensor: Tensor) -> str:
    return str(list(tensor.shape))
