"""How a cache describes itself."""

from __future__ import annotations

from torch import Tensor

from headwise.cache.owner import Owned
from headwise.masks.fits import readable


def described(cache: Owned, k: Tensor | None, v: Tensor | None, sizes: dict[str, object]) -> str:
    """E.g. "GrowingCache(batch=[2], kv_heads=4, d_k=64, d_v=64, steps=7, float32 on cpu)".

    `steps` are what is seen so far: one number, or the least and the most of the batch.
    """
    parts = [f"{name}={value}" for name, value in sizes.items()]
    if k is None or v is None:
        return f"{type(cache).__name__}({', '.join((*parts, 'empty'))})"
    parts = [
        f"batch={list(k.shape[:-3])}",
        f"kv_heads={k.shape[-3]}",
        f"d_k={k.shape[-1]}",
        f"d_v={v.shape[-1]}",
        *parts,
        _steps(cache, k),
        f"{str(k.dtype).removeprefix('torch.')} on {k.device}",
    ]
    return f"{type(cache).__name__}({', '.join(parts)})"


def _steps(cache: Owned, k: Tensor) -> str:
    lengths = getattr(cache, "lengths", None)
    if lengths is None:
        return f"keys={k.shape[-2]}"
    if not readable(lengths):
        return "steps unknown"
    if not lengths.numel():
        return "steps=0"
    low, high = (int(end) for end in lengths.aminmax())
    return f"steps={low}" if low == high else f"steps={low} .. {high}"
