"""Small tasks for tests of the loop: their runs take a blink."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from headwise.training import Collated, Recipe, seed_everything, token_batches, token_loss

CLASSES = 7


class Scaled(nn.Module):
    """Divides by a running mean of what it has seen: state that changes without gradients."""

    def __init__(self):
        super().__init__()
        self.register_buffer("size", torch.ones(()))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        if self.training:
            self.calls += 1
            self.size.lerp_(x.detach().abs().mean().to(self.size.dtype), 0.1)
        return x / self.size


class Digits:
    """Tell the class of noisy one-hot vectors: 61 examples of unequal "length", with dropout and buffers."""

    metric, better = "accuracy", "higher"

    def __init__(self, seed=0, dropout=0.1, dtype=torch.float32, max_tokens=37):
        seed_everything(seed)
        self.model = nn.Sequential(
            nn.Linear(CLASSES, 13), Scaled(), nn.ReLU(), nn.Dropout(dropout), nn.Linear(13, CLASSES)
        ).to(dtype)
        if dtype == torch.float64:
            self.model[1] = nn.Identity()  # a whole batch's mean is not that of its parts
        chance = torch.Generator().manual_seed(11)
        self.targets = torch.randint(CLASSES, (61,), generator=chance)
        self.lengths = torch.randint(1, 6, (61,), generator=chance).tolist()
        noise = torch.randn(61, CLASSES, generator=chance)
        self.inputs = (F.one_hot(self.targets, CLASSES) * 3 + noise).to(dtype)
        self.max_tokens = max_tokens
        self.config = {"application": "digits", "classes": CLASSES}
        self.validations = 0

    def batches(self, split, epoch, seed):
        plan = token_batches(self.lengths, self.max_tokens, seed=seed, epoch=epoch)
        return Collated(plan, lambda rows: {"x": self.inputs[list(rows)], "y": self.targets[list(rows)]})

    def loss(self, batch):
        found = token_loss(self.model(batch["x"]), batch["y"], smoothing=0.1)
        return found.loss_sum, found.tokens, {"nll": found.nll_sum}

    def validate(self):
        self.validations += 1
        torch.rand(1)  # what a validation draws must not change the training
        logits = self.model(self.inputs)
        return {"accuracy": (logits.argmax(-1) == self.targets).double().mean().item()}


def quick(**changes):
    """A recipe of a few steps that writes a line for each."""
    settings = {"steps": 12, "schedule": "constant", "rate": 0.01, "warmup": 3, "log_every": 1}
    settings |= {"validate_every": 4, "device": "cpu", "checkpoint_every": 2}
    return Recipe(**(settings | changes))


def numbers(lines):
    """Lines of metrics without what depends on the clock."""
    return [{k: v for k, v in line.items() if k not in ("seconds", "per_second")} for line in lines]
