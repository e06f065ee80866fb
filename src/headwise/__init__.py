"""headwise: multi-head attention for PyTorch, exact, fast, and visible head by head."""

from headwise._version import __version__
from headwise.attention import attention, explain
from headwise.cache import CrossCache, GrowingCache, LayerCaches, RingCache, StaticCache
from headwise.kernels import Problem, merge
from headwise.masks import Allow, Causal, Documents, KeyLengths, Mask, Prefix, ValidKeys, Window
from headwise.multihead import MultiHeadAttention
from headwise.observers import (
    Distance,
    Entropy,
    KeyMass,
    LogSumExp,
    Map,
    Mass,
    MaxWeight,
    Observations,
    Observer,
    Offset,
    Spread,
    TopKeys,
    Weights,
)
from headwise.positions import (
    AddedScores,
    ALiBi,
    Bias,
    LearnedPositions,
    RelativeBias,
    RelativeBuckets,
    Rotary,
    Sinusoidal,
    sinusoidal,
)
from headwise.recorder import observe
from headwise.trace import trace

__all__ = [
    "ALiBi",
    "AddedScores",
    "Allow",
    "Bias",
    "Causal",
    "CrossCache",
    "Distance",
    "Documents",
    "Entropy",
    "GrowingCache",
    "KeyLengths",
    "KeyMass",
    "LayerCaches",
    "LearnedPositions",
    "LogSumExp",
    "Map",
    "Mask",
    "Mass",
    "MaxWeight",
    "MultiHeadAttention",
    "Observations",
    "Observer",
    "Offset",
    "Prefix",
    "Problem",
    "RelativeBias",
    "RelativeBuckets",
    "RingCache",
    "Rotary",
    "Sinusoidal",
    "Spread",
    "StaticCache",
    "TopKeys",
    "ValidKeys",
    "Weights",
    "Window",
    "__version__",
    "attention",
    "explain",
    "merge",
    "observe",
    "sinusoidal",
    "trace",
]
