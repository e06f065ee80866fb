"""Whether torch.func transforms, forward-mode derivatives or a recording of operations are at work."""

from __future__ import annotations

import torch
from torch import Tensor


def under_functions() -> bool:
    """Whether a transform of torch.func (vmap, grad, jvp, ...) is running."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def forward_mode() -> bool:
    """Whether forward-mode derivatives are being computed, of whatever tensors."""
    return torch.autograd.forward_ad._current_level >= 0


def transforming() -> bool:
    """Either of them."""
    return under_functions() or forward_mode()


def carried(*tensors: Tensor | None) -> bool:
    """Whether a tensor stands for more than its own numbers: for a batch of tensors (`is_grads_batched`,
    vmap), or for itself and its tangent. In a backward pass a gradient may be of this kind though the forward
    pass knew nothing of it, and only operations that can be transformed carry the rest on."""
    given = [x for x in tensors if x is not None]
    if any(torch._C._functorch.is_functorch_wrapped_tensor(x) or _legacy(x) for x in given):
        return True
    return forward_mode() and any(
        torch.autograd.forward_ad.unpack_dual(x).tangent is not None for x in given if x.is_floating_point()
    )


def recorded() -> bool:
    """Whether operations are being written down, to be run again with other numbers (`torch.jit.trace`,
    `make_fx`), or run without any (a fake tensor mode, also on real ones). What is decided by looking at
    numbers would be written down as if it held for all of them, or can't be decided."""
    if torch._C._is_tracing():
        return True
    if not torch._C._len_torch_dispatch_stack():
        return False
    from torch.fx.experimental.proxy_tensor import get_proxy_mode  # slow to import, and seldom needed

    kind = torch._C._TorchDispatchModeKey.FAKE
    return get_proxy_mode() is not None or torch._C._get_dispatch_mode(kind) is not None


def _legacy(x: Tensor) -> bool:
    """Whether it is a batch of the older vmap, which `is_grads_batched` still takes."""
    return bool(torch._C._functorch.is_legacy_batchedtensor(x))
