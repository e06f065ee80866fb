"""An image, its class, and the heads over its patches."""

from __future__ import annotations

from pathlib import Path

import torch

from headwise.applications.vision_trained import Classifier
from headwise.cli.runs.view import CELLS, Axis, Classified, Part
from headwise.cli.runs.watching import Watch, watch

CLASS = "[class]"


def picture(trained: Classifier, file: Path, *, invert: bool) -> tuple[Classified, list[Part], list[str]]:
    """What an image file shows, all heads over its patches, and attention rollout."""
    read = trained.read(file, invert=invert)
    rows, columns = trained.model.config.grid
    patches = [f"{row},{column}" for row in range(rows) for column in range(columns)]
    axis = Axis(
        "patches", "patches", (CLASS, *patches), (True, *[False] * len(patches)), grid=(rows, columns)
    )
    watches = [
        Watch(
            "encoder",
            "Encoder self-attention",
            "the class token and every patch look at all of them",
            "*encoder.layers.*.self_attention",
            axis,
            axis,
        )
    ]
    parts, logits = watch(trained.model, watches, lambda: trained.logits(read.pixels[None].float() / 255))
    shares = logits[0].softmax(-1)
    order = shares.argsort(descending=True).tolist()
    found = Classified({trained.classes[one]: float(shares[one]) for one in order}, read.pixels)
    notes = [f"The image: {note}." for note in read.notes]
    if 1 + rows * columns <= CELLS:
        parts.append(rollout(parts[0]))
    return found, parts, notes


def rollout(part: Part) -> Part:
    """Attention rollout: what each token holds of each input after a layer, if values only mixed.

        R_l = (1/2 mean over heads of P_l + 1/2 I) R_(l-1),   R_(-1) = I

    (Abnar and Zuidema 2020, *Quantifying Attention Flow in Transformers*.)
    """
    held = torch.eye(part.maps.shape[-1], dtype=torch.float64)
    through = []
    for layer in range(part.layers):
        held = (part.mean(layer).double() + torch.eye(len(held), dtype=torch.float64)) / 2 @ held
        through.append(held.float())
    return Part(
        "rollout",
        "Attention rollout",
        "what a token holds of each patch after a layer: means over heads, multiplied layer by layer",
        part.queries,
        part.keys,
        (),
        torch.stack(through)[:, None],
        part.row_sum_error,
    )
