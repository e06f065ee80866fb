"""torch's fused CPU operation without a plan, for calls that are one call of it: planning took longer.

The same call that the kernel "torch" would make, and the same look at what comes back.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.kernels.addresses import watched
from headwise.kernels.live import all_finite, all_numbers
from headwise.kernels.transforms import transforming

_NAME = "_scaled_dot_product_flash_attention_for_cpu"
FUSED = getattr(torch.ops.aten, _NAME).default if hasattr(torch.ops.aten, _NAME) else None
_TYPES = (torch.float32, torch.float64, torch.bfloat16)


def direct_will_do(x: Tensor) -> bool:
    """Whether a layer of such inputs, called now, may use `direct`: plain numbers on the CPU, and nobody who
    differentiates, transforms, traces or casts."""
    return (
        type(x) is Tensor
        and FUSED is not None
        and x.dtype in _TYPES
        and x.device.type == "cpu"
        and not torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
        and not transforming()
        and not watched()
    )


def direct(
    q: Tensor, k: Tensor, v: Tensor, scale: float, added: Tensor | None, *, causal: bool = False
) -> Tensor | None:
    """Attention(q, k, v) with `added` on the scores; None where something isn't finite, which takes care.

    Args:
        causal: hide the keys that come later, both counted from the start

    Shapes: q [batch, heads, q_len, d], k and v [batch, heads, k_len, d], added [batch, 1, 1, k_len], which
    leaves every query a key -> [batch, heads, q_len, d].
    """
    if FUSED is None or not q.numel() or not k.numel():
        return None
    if not q.stride(-1) == k.stride(-1) == v.stride(-1) == 1:  # as the operation reads them
        return None
    if added is not None:
        added = added.expand(*added.shape[:2], q.shape[2], k.shape[2])
    out: Tensor
    out, lse = FUSED(q, k, v, 0.0, causal, attn_mask=added, scale=scale)
    return out if can_stand(out, lse, q, k) else None


def can_stand(out: Tensor, lse: Tensor, q: Tensor, k: Tensor) -> bool:
    """Whether what the operation gave is what the contract says.

    A row of nothing but NaN or -inf is 0 for the operation, and so is its log-sum-exp, by which we know it
    (another row's log-sum-exp is hardly ever exactly 0; then the inputs decide).
    """
    return all_numbers(out) and (bool(lse.all()) or all_finite(q, k))
