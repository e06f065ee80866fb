"""The position-wise feed-forward network."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from headwise.kernels.quantities import check_share
from headwise.models.dropping import dropped
from headwise.multihead.projections import project

Activation = Literal["relu", "gelu"]

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU}


class FeedForward(nn.Module):
    """The same two-layer network at every position.

        FFN(x) = activation(x W_1 + b_1) W_2 + b_2

    with W_1 in R^{d_model x d_ff}, W_2 in R^{d_ff x d_model}; the paper's activation is max(0, .)
    (*Attention Is All You Need*, 3.3, equation 2).

    Shapes: [..., d_model] -> [..., d_model].

    Args:
        activation: "relu" (the paper's) or "gelu" (BERT's, the exact one with erf).
        dropout: share of the inner activations set to 0 while training. The paper has none here.

    Initialisation: Xavier-uniform weights, as the attention's; biases 0.

    Raises:
        ValueError: a size below 1, an activation that isn't known, dropout outside [0, 1).
    """

    def __init__(
        self, d_model: int, d_ff: int, *, activation: Activation = "relu", dropout: float = 0.0
    ) -> None:
        super().__init__()
        if d_model < 1 or d_ff < 1:
            raise ValueError(f"d_model and d_ff must be at least 1, got d_model={d_model} and d_ff={d_ff}")
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {sorted(ACTIVATIONS)}, got {activation!r}")
        check_dropout(dropout)
        self.inner = nn.Linear(d_model, d_ff)
        self.activation = ACTIVATIONS[activation]()
        self.dropout = nn.Dropout(dropout)
        self.outer = nn.Linear(d_ff, d_model)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew; see Initialisation."""
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.activation(project(self.inner, x))  # [..., d_ff]
        return project(self.outer, dropped(self.dropout, hidden))  # [..., d_model]


def check_dropout(dropout: float) -> None:
    """Raise TypeError or ValueError unless dropout is a number, 0 <= dropout < 1."""
    check_share("dropout", dropout)
