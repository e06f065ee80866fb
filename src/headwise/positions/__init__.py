"""Where tokens stand: encodings added to embeddings, rotations, and biases added to scores."""

from headwise.positions.added import AddedScores
from headwise.positions.alibi import ALiBi, alibi_slopes
from headwise.positions.base import Bias
from headwise.positions.learned import LearnedPositions
from headwise.positions.relative import RelativeBias, RelativeBuckets, relative_buckets
from headwise.positions.rotary import Rotary, convert_rotary
from headwise.positions.scaling import LinearScaling, Llama3Scaling
from headwise.positions.sinusoidal import Sinusoidal, sinusoidal

__all__ = [
    "ALiBi",
    "AddedScores",
    "Bias",
    "LearnedPositions",
    "LinearScaling",
    "Llama3Scaling",
    "RelativeBias",
    "RelativeBuckets",
    "Rotary",
    "Sinusoidal",
    "alibi_slopes",
    "convert_rotary",
    "relative_buckets",
    "sinusoidal",
]
