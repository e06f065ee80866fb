"""Whether torch.func transforms or forward-mode derivatives are at work."""

from __future__ import annotations

import torch


def under_functions() -> bool:
    """Whether a transform of torch.func (vmap, grad, jvp, ...) is running."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def forward_mode() -> bool:
    """Whether forward-mode derivatives are being computed, of whatever tensors."""
    return torch.autograd.forward_ad._current_level >= 0


def transforming() -> bool:
    """Either of them."""
    return under_functions() or forward_mode()
