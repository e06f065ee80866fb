"""Is this call one that gradient checkpointing makes again?"""

from __future__ import annotations

import torch


def in_backward() -> bool:
    """Whether a backward pass is running: `torch.utils.checkpoint` then runs its function once more, and
    whatever a call changes (a cache, a generator) would change twice. False while a graph is compiled."""
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1
