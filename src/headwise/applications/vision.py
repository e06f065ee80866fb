"""Vision: images into classes, by a Vision Transformer.

data       scikit-learn's digits, MNIST, or a folder of classes, see `headwise.applications.data_images`
model      `VisionTransformer`
metric     accuracy
recipe     AdamW with half a cosine; in every epoch each image is moved, turned and scaled a little anew
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headwise.applications.augment_images import Augmentation, augment
from headwise.applications.base import Say
from headwise.applications.data_images import DIGITS, ImageSet, Split, load_images
from headwise.applications.errors import DataError
from headwise.applications.plain import plain
from headwise.applications.vision_trained import Classifier, Guess, normalized, one_path, split_named
from headwise.models.stem import Stem
from headwise.models.vision import VisionConfig, VisionTransformer
from headwise.training.batches import Collated
from headwise.training.loss import token_loss
from headwise.training.recipe import Recipe
from headwise.training.runs import Which, load_run
from headwise.training.settings import SettingError
from headwise.training.task import Better, Loss

NAME = "vision"


def _recipe() -> Recipe:
    return Recipe(
        steps=2000,
        schedule="cosine",
        rate=2e-3,
        warmup=100,
        weight_decay=0.05,
        beta2=0.99,
        clip=1.0,
        validate_every=250,
        keep=3,
    )


@dataclass(frozen=True, kw_only=True)
class VisionSettings:
    """Everything that `--set` can change.

    Args:
        patch: height and width of a patch; None: about a quarter of the image (a seventh from 28 pixels on).
        size: files are brought to so many pixels each way; None: those of the first
        layers, d_model, d_ff, heads, dropout: of the Transformer
        stem: "patches" or "convolutions", see `VisionConfig`
        batch: images of a step
        smoothing: of labels
        augmentation: how far images are moved in training
        recipe: how it is trained
    """

    patch: int | None = None
    size: int | None = None
    layers: int = 6
    d_model: int = 96
    d_ff: int = 192
    heads: int = 6
    dropout: float = 0.1
    stem: Stem = "patches"
    batch: int = 64
    smoothing: float = 0.1
    augmentation: Augmentation = field(default_factory=Augmentation)
    recipe: Recipe = field(default_factory=_recipe)

    def __post_init__(self) -> None:
        for name in ("patch", "size", "layers", "d_model", "d_ff", "heads", "batch"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}: it must be at least 1")


class VisionTask:
    """What `train` trains."""

    model: nn.Module
    metric = "accuracy"
    better: Better = "higher"
    counted = "images"

    def __init__(
        self,
        model: VisionTransformer,
        sets: Mapping[Split, ImageSet],
        settings: VisionSettings,
        config: Mapping[str, Any],
    ) -> None:
        self.model, self.sets, self.settings, self.config = model, sets, settings, config

    def batches(self, split: str, epoch: int, seed: int) -> Collated[dict[str, Tensor]]:
        images = self.sets[split_named(split)]
        chance = random.Random(f"headwise vision {seed} {epoch}")
        order = list(range(len(images)))
        moved: Tensor | None = None
        if split == "train":
            chance.shuffle(order)
            # drawn for all images at once, so that a batch doesn't depend on those before it
            moved = self.settings.augmentation.draw(len(images), chance.getrandbits(62))
        size = self.settings.batch
        plan = [order[start : start + size] for start in range(0, len(order), size)]

        def collate(numbers: Sequence[int]) -> dict[str, Tensor]:
            rows = torch.tensor(list(numbers))
            pixels = images.images[rows].float() / 255
            if moved is not None:
                pixels = augment(pixels, moved[rows])
            pixels = normalized(pixels, self.config["mean"], self.config["std"])
            return {"images": pixels, "labels": images.labels[rows]}

        return Collated(plan, collate)

    def loss(self, batch: Mapping[str, Tensor]) -> Loss:
        logits = self.model(batch["images"])
        found = token_loss(logits, batch["labels"], smoothing=self.settings.smoothing)
        right = (logits.detach().argmax(-1) == batch["labels"]).sum()
        return found.loss_sum, found.tokens, {"nll": found.nll_sum, "accuracy": right}

    def validate(self) -> dict[str, float]:
        device = next(self.model.parameters()).device
        nll, right, count = 0.0, 0.0, 0
        for batch in self.batches("valid", 0, 0):
            _, images, sums = self.loss({name: one.to(device) for name, one in batch.items()})
            nll, right = nll + float(sums["nll"]), right + float(sums["accuracy"])
            count += int(images)
        return {"accuracy": right / count, "nll": nll / count}


class Vision:
    """The application, for the registry."""

    name = NAME
    about = "sort images into classes, learned from images of each"

    def settings(self) -> VisionSettings:
        return VisionSettings()

    def task(self, data: Sequence[Path], settings: Any, run: Path | None, say: Say) -> VisionTask:
        """See `Application.task`.

        Raises:
            DataError: see `load_images`; patches that don't fill the images.
            SettingError: sizes that make no model.
        """
        path = one_path(data)
        size = None if settings.size is None else (settings.size, settings.size)
        sets = load_images(path, size=size)
        train = sets["train"]
        say("read " + ", ".join(f"{len(images):,} images for {split}" for split, images in sets.items()))
        try:
            sizes = vision_config(train, settings)
            model = VisionTransformer(sizes)
        except DataError:
            raise
        except (ValueError, TypeError) as error:
            raise SettingError(f"the settings make no model: {error}") from None
        mean, std = mean_and_deviation(train)
        counts: dict[str, Any] = {
            split: {"images": len(one), "sha256": one.digest()} for split, one in sets.items()
        }
        config: dict[str, Any] = {
            "application": NAME,
            "settings": plain(settings),
            "model": sizes.to_dict(),
            "classes": list(train.classes),
            "mean": mean,
            "std": std,
            "data": {"paths": [str(path) if str(path) == DIGITS else str(path.resolve())], **counts},
        }
        rows, columns = sizes.grid
        count = sum(one.numel() for one in model.parameters())
        say(f"{len(train.classes)} classes, {rows} x {columns} patches, {count:,} parameters")
        return VisionTask(model, sets, settings, config)

    def open(self, run: Path, which: Which = "best", say: Say = lambda line: None) -> Classifier:
        return Classifier(load_run(run, which, warn=say))


def vision_config(images: ImageSet, settings: VisionSettings) -> VisionConfig:
    """The model of a set of images.

    Raises:
        DataError: patches that don't fill its images.
    """
    height, width = images.size
    patch = settings.patch
    if patch is None:
        patch = _patch_of(height, width)
    if height % patch or width % patch:
        raise DataError(
            f"patches of {patch} pixels don't fill images of {height} x {width}: set patch to a number that "
            "divides both, or size to a multiple of it"
        )
    return VisionConfig(
        image_size=images.size,
        patch_size=(patch, patch),
        channels=images.images.shape[1],
        num_classes=len(images.classes),
        num_layers=settings.layers,
        d_model=settings.d_model,
        d_ff=settings.d_ff,
        num_heads=settings.heads,
        dropout=settings.dropout,
        stem=settings.stem,
        max_length=1 + (height // patch) * (width // patch),
    )


def _patch_of(height: int, width: int) -> int:
    """The common divisor nearest to a quarter of small images, a seventh of larger ones."""
    wanted = height / (7 if height >= 28 else 4)
    whole = math.gcd(height, width)
    return min(
        (side for side in range(1, whole + 1) if not whole % side), key=lambda side: abs(side - wanted)
    )


def mean_and_deviation(images: ImageSet) -> tuple[list[float], list[float]]:
    """Of each channel, pixels being 0 to 1."""
    pixels = images.images.float() / 255
    deviations = pixels.std(dim=(0, 2, 3)).clamp(min=1e-3)
    return pixels.mean(dim=(0, 2, 3)).tolist(), deviations.tolist()


def classify(
    run: Path | str, images: Sequence[Path | str], *, invert: bool = False, which: Which = "best"
) -> list[Guess]:
    """What images show, by a trained run. (`Vision().open(run)` keeps the model for more calls.)

    Args:
        invert: dark on light becomes light on dark, as MNIST and the digits are.

    Raises:
        RunError, CheckpointError: the run can't be used.
        DataError: an image can't.
    """
    classifier = APPLICATION.open(Path(run), which)
    return [classifier.classify(image, invert=invert) for image in images]


APPLICATION = Vision()
