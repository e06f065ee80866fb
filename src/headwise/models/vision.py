"""The Vision Transformer: an image as a text of patches."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headwise.models.building import AttentionFactory, encoder_from, encoder_mask
from headwise.models.dropping import dropped
from headwise.models.embeddings import positions_from
from headwise.models.encoder import Norm
from headwise.models.feed_forward import Activation
from headwise.models.stack_config import Positions, StackConfig
from headwise.models.stem import STEMS, ConvolutionStem, Patches, Stem


@dataclass(frozen=True, kw_only=True)
class VisionConfig(StackConfig):
    """Sizes and choices of a `VisionTransformer`: pre-norm, gelu, learned positions, attention with biases,
    as in its paper.

    Args:
        image_size: height and width, in pixels.
        patch_size: height and width of a patch; they divide the image's.
        channels: 1 for grey, 3 for colour.
        num_classes: what images are sorted into.
        stem: "patches" (the paper's: a linear map of each) or "convolutions" (see `ConvolutionStem`), which
            learns from fewer images.
    """

    image_size: tuple[int, int]
    patch_size: tuple[int, int]
    channels: int
    num_classes: int
    norm: Norm = "pre"
    activation: Activation = "gelu"
    positions: Positions = "learned"
    attention_bias: bool = True
    stem: Stem = "patches"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_sizes("channels", "num_classes")
        self.check_choice("stem", STEMS)
        for name in ("image_size", "patch_size"):
            size = getattr(self, name)
            if len(size) != 2 or not all(isinstance(side, int) and side > 0 for side in size):
                raise ValueError(f"{name} must be (height, width), each 1 or more, got {size!r}")
        if any(whole % part for whole, part in zip(self.image_size, self.patch_size, strict=True)):
            raise ValueError(
                f"patches of {self.patch_size} pixels don't fill an image of {self.image_size}: each side of "
                "a patch must divide the image's"
            )

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.image_size[0] // self.patch_size[0], self.image_size[1] // self.patch_size[1]


class VisionTransformer(nn.Module):
    """A class for an image (Dosovitskiy et al. 2020, *An Image is Worth 16x16 Words*).

        x_0 = x_class,   x_i = W_p patch_i + b_p            i = 1 .. n, row by row
        scores = W Encoder(Dropout(x + positions))_0 + b

    Shapes: images [batch, channels, height, width], floating-point -> [batch, num_classes].

    Args:
        attention: makes the attention modules instead; called with "encoder", once for each layer.

    Token 0 of every attention is the class token; token 1 + r * columns + c is the patch in row r and column
    c of `config.grid`. With config.stem "convolutions", x_i are those of `ConvolutionStem` instead.

    Initialisation: W_p Xavier-uniform, x_class and positions N(0, 1 / d_model), biases 0.
    """

    def __init__(self, config: VisionConfig, *, attention: AttentionFactory | None = None) -> None:
        super().__init__()
        self.config = config
        rows, columns = config.grid
        stem = Patches if config.stem == "patches" else ConvolutionStem
        self.patches = stem(config.channels, config.patch_size, config.d_model)
        self.class_token = nn.Parameter(torch.empty(config.d_model))
        self.positions = positions_from(config, 1 + rows * columns)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = encoder_from(config, attention)
        self.classes = nn.Linear(config.d_model, config.num_classes)
        nn.init.normal_(self.class_token, std=config.d_model**-0.5)

    def forward(self, images: Tensor) -> Tensor:
        check_images(images, self.config)
        x = self.patches(images)  # [batch, n, d_model]
        first = self.class_token.to(x.dtype).expand(x.shape[0], 1, -1)
        x = torch.cat((first, x), dim=1)  # [batch, 1 + n, d_model]
        if self.positions is not None:
            x = self.positions(x)
        x = self.encoder(dropped(self.dropout, x), mask=encoder_mask(self.config))
        out: Tensor = self.classes(x[:, 0])
        return out


def check_images(images: Tensor, config: VisionConfig) -> None:
    """Raise unless images are as the model reads them."""
    if images.ndim != 4 or tuple(images.shape[1:]) != (config.channels, *config.image_size):
        raise ValueError(
            f"images.shape={tuple(images.shape)}: this model reads [batch, {config.channels}, "
            f"{config.image_size[0]}, {config.image_size[1]}]; resize or convert the images first"
        )
    if not images.is_floating_point():
        raise TypeError(f"images are {images.dtype}: give floating-point numbers, e.g. images.float() / 255")
