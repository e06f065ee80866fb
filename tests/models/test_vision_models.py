"""The Vision Transformer."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import nn

import headwise as hw
from headwise.models import VisionConfig, VisionTransformer
from headwise.models.stem import ConvolutionStem, cut_patches, strides_of

SIZES: dict[str, Any] = {
    "image_size": (6, 9),
    "patch_size": (2, 3),
    "channels": 2,
    "num_classes": 5,
    "num_layers": 2,
    "d_model": 12,
    "d_ff": 17,
    "num_heads": 3,
}


def test_patches_by_hand() -> None:
    """A 2 x 4 image of one channel in patches of 2 x 2: the left half, then the right."""
    config = VisionConfig(**(SIZES | {"image_size": (2, 4), "patch_size": (2, 2), "channels": 1}))
    image = torch.tensor([[[[1.0, 2, 3, 4], [5, 6, 7, 8]]]])
    assert cut_patches(image, (2, 2)).tolist() == [[[1, 2, 5, 6], [3, 4, 7, 8]]]
    assert config.grid == (1, 2)


def test_patches_are_those_of_a_convolution() -> None:
    """The paper says a linear map of patches; many write it as a convolution of that stride."""
    torch.manual_seed(0)
    config = VisionConfig(**SIZES)
    model = VisionTransformer(config)
    convolution = nn.Conv2d(2, 12, (2, 3), stride=(2, 3))
    convolution.weight.data = model.patches.weight.data.reshape(12, 2, 2, 3)
    convolution.bias = model.patches.bias
    images = torch.randn(7, 2, 6, 9)
    expected = convolution(images).flatten(2).transpose(1, 2)
    torch.testing.assert_close(model.patches(images), expected, rtol=1e-5, atol=1e-5)


def test_strides_are_the_prime_factors_of_a_patch() -> None:
    assert strides_of((16, 16)) == [(2, 2)] * 4
    assert strides_of((4, 6)) == [(2, 2), (2, 3)]
    assert strides_of((2, 9)) == [(1, 3), (2, 3)]
    assert strides_of((1, 1)) == [(1, 1)]


@pytest.mark.parametrize("patch", [(1, 1), (2, 3), (3, 2), (4, 9), (7, 1)])
def test_convolutions_end_at_the_grid_of_patches(patch: tuple[int, int]) -> None:
    rows, columns = 3, 5
    stem = ConvolutionStem(2, patch, 13)
    images = torch.randn(7, 2, rows * patch[0], columns * patch[1])
    assert stem(images).shape == (7, rows * columns, 13)


def test_convolutions_read_images_one_by_one_and_places_in_order() -> None:
    torch.manual_seed(0)
    stem = ConvolutionStem(1, (2, 2), 11).double()
    images = torch.randn(3, 1, 8, 12, dtype=torch.float64)
    whole = stem(images)
    for number in range(3):
        torch.testing.assert_close(stem(images[number : number + 1])[0], whole[number])
    spot = torch.zeros(1, 1, 8, 12, dtype=torch.float64)
    spot[0, 0, 4, 8] = 1.0  # in the patch of row 2, column 4, and in no other's convolution
    changed = (stem(spot) - stem(torch.zeros_like(spot))).abs().sum(-1).reshape(4, 6)
    assert changed.argmax() == 2 * 6 + 4


@pytest.mark.parametrize("stem", ["patches", "convolutions"])
def test_each_patch_and_its_place_matter(stem: str) -> None:
    torch.manual_seed(0)
    model = VisionTransformer(VisionConfig(**SIZES, stem=stem)).double().eval()
    images = torch.randn(1, 2, 6, 9, dtype=torch.float64)
    before = model(images)
    assert before.shape == (1, 5)
    swapped = images.flip(2)
    assert not torch.allclose(model(swapped), before)
    images.requires_grad_()
    model(images).square().sum().backward()
    assert images.grad is not None
    assert bool((images.grad != 0).all())


def test_without_positions_the_order_of_patches_is_not_seen() -> None:
    torch.manual_seed(0)
    model = VisionTransformer(VisionConfig(**(SIZES | {"positions": "none"}))).double().eval()
    images = torch.randn(1, 2, 6, 9, dtype=torch.float64)
    rolled = images.roll(3, dims=3)  # by one patch
    torch.testing.assert_close(model(rolled), model(images), rtol=1e-9, atol=1e-11)


def test_heads_are_seen_with_the_class_token_first() -> None:
    model = VisionTransformer(VisionConfig(**SIZES)).eval()
    with hw.observe(model, hw.Weights(rows=(0,))) as seen:
        model(torch.randn(7, 2, 6, 9))
    assert seen["encoder.layers.1.self_attention"].weights.shape == (7, 3, 1, 1 + 3 * 3)


@pytest.mark.parametrize("stem", ["patches", "convolutions"])
def test_it_is_exported_with_a_free_batch(stem: str) -> None:
    torch.manual_seed(0)
    model = VisionTransformer(VisionConfig(**SIZES, stem=stem)).eval()
    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(model, (torch.randn(3, 2, 6, 9),), dynamic_shapes=({0: batch},))
    images = torch.randn(11, 2, 6, 9)
    torch.testing.assert_close(exported.module()(images), model(images), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"patch_size": (4, 3)}, "patches of (4, 3) pixels don't fill an image of (6, 9)"),
        ({"patch_size": (0, 3)}, "patch_size must be (height, width)"),
        ({"image_size": (6,)}, "image_size must be (height, width)"),
        ({"num_classes": 0}, "num_classes must be at least 1"),
        ({"stem": "conv"}, "stem must be one of"),
    ],
)
def test_sizes_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        VisionConfig(**(SIZES | changes))


def test_images_that_do_not_fit() -> None:
    model = VisionTransformer(VisionConfig(**SIZES))
    with pytest.raises(ValueError, match=r"reads \[batch, 2, 6, 9\]"):
        model(torch.randn(3, 1, 6, 9))
    with pytest.raises(ValueError, match=r"reads \[batch, 2, 6, 9\]"):
        model(torch.randn(2, 6, 9))
    with pytest.raises(TypeError, match=r"images.float\(\) / 255"):
        model(torch.zeros(1, 2, 6, 9, dtype=torch.uint8))


def test_the_configuration_goes_through_json() -> None:
    import json

    config = VisionConfig(**SIZES)
    assert VisionConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
