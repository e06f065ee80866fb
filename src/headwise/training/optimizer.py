"""Adam as the paper has it, AdamW by option; norms of gradients."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from headwise.training.recipe import Recipe


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Adam:
    """Adam with beta1 0.9, beta2 0.98, epsilon 1e-9 (*Attention Is All You Need*, 5.3) on what trains.

    With weight decay it is AdamW (Loshchilov and Hutter 2019), and only matrices decay: pulling biases and
    norms' scales to 0 has no use. The learning rate is set by the schedule before every step.

    Raises:
        ValueError: no parameter requires gradients.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not trained:
        raise ValueError("no parameter of the model requires gradients: there is nothing to train")
    matrices = [parameter for parameter in trained if parameter.ndim > 1]
    others = [parameter for parameter in trained if parameter.ndim <= 1]
    groups: list[dict[str, object]] = [
        {"params": chosen, "weight_decay": decay}
        for chosen, decay in ((matrices, recipe.weight_decay), (others, 0.0))
        if chosen
    ]
    kind = torch.optim.AdamW if recipe.weight_decay else torch.optim.Adam
    fused = all(parameter.is_floating_point() for parameter in trained)
    betas = (recipe.beta1, recipe.beta2)
    return kind(groups, lr=0.0, betas=betas, eps=recipe.epsilon, fused=fused)


def scale_gradients(parameters: Iterable[nn.Parameter], factor: float) -> None:
    """Multiply all gradients in place."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if gradients and factor != 1.0:
        torch._foreach_mul_(gradients, factor)


def gradient_norm(parameters: Iterable[nn.Parameter]) -> Tensor:
    """The Euclidean norm of all gradients as one vector."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return torch.nn.utils.get_total_norm(gradients)
