"""Multi-head attention as a layer: four projections around `attention`."""

from headwise.multihead.fused import FusedRows
from headwise.multihead.layer import MultiHeadAttention

__all__ = ["FusedRows", "MultiHeadAttention"]
