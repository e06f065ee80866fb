"""torch.nn.MultiheadAttention: convert it, replace it, or keep its face."""

from headwise.interop.torch.arguments import ShapeError
from headwise.interop.torch.convert import from_torch, refusals, to_torch
from headwise.interop.torch.drop_in import MultiheadAttention
from headwise.interop.torch.replace import replace_torch_attention

__all__ = [
    "MultiheadAttention",
    "ShapeError",
    "from_torch",
    "refusals",
    "replace_torch_attention",
    "to_torch",
]
