"""What a Vision Transformer makes of pixels before its first layer."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

Stem = Literal["patches", "convolutions"]
STEMS = ("patches", "convolutions")
NARROWEST = 8  # channels of the first convolution at least


class Patches(nn.Linear):
    """x_i = W_p patch_i + b_p, the paper's.

    Shapes: [batch, channels, height, width] -> [batch, rows * columns, d_model], row by row.

    Initialisation: W_p Xavier-uniform, b_p 0.
    """

    def __init__(self, channels: int, patch_size: tuple[int, int], d_model: int) -> None:
        self.patch_size = patch_size
        super().__init__(channels * patch_size[0] * patch_size[1], d_model)

    def reset_parameters(self) -> None:
        """Draw all weights anew; see Initialisation."""
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(cut_patches(images, self.patch_size))


def cut_patches(images: Tensor, patch_size: tuple[int, int]) -> Tensor:
    """Images [batch, channels, height, width] as patches [batch, n, channels * patch height * patch width],
    row by row."""
    height, width = patch_size
    channels, rows, columns = images.shape[1], images.shape[2] // height, images.shape[3] // width
    cut = images.reshape(-1, channels, rows, height, columns, width)
    return cut.permute(0, 2, 4, 1, 3, 5).reshape(-1, rows * columns, channels * height * width)


class ConvolutionStem(nn.Module):
    """Patches that overlap: small convolutions, each of which shrinks the image, down to the grid of patches.

        x_i = W gelu(LayerNorm(conv_n(... gelu(LayerNorm(conv_1(image))))))_i + b

    A patch of 16 x 16 becomes four convolutions of stride 2, one of 6 x 9 two of strides 2 x 3 and 3 x 3
    (the prime factors of its sides). Each doubles the channels of the one before; the last has d_model. Its
    width is 2 stride - 1, so neighbouring patches share pixels, and what lies outside of the image is 0.
    LayerNorm goes over all channels and places of an image, so no image changes another.
    (Xiao et al. 2021, *Early Convolutions Help Transformers See Better*; there batch norm and relu.)

    Shapes: [batch, channels, height, width] -> [batch, rows * columns, d_model], row by row.
    """

    def __init__(self, channels: int, patch_size: tuple[int, int], d_model: int) -> None:
        super().__init__()
        strides = strides_of(patch_size)
        widths = [max(d_model // 2 ** (len(strides) - 1 - at), NARROWEST) for at in range(len(strides))]
        layers: list[nn.Module] = []
        for (down, across), before, after in zip(strides, [channels, *widths], widths, strict=False):
            kernel = (max(2 * down - 1, 3), max(2 * across - 1, 3))
            padding = (kernel[0] // 2, kernel[1] // 2)
            layers += [
                nn.Conv2d(before, after, kernel, stride=(down, across), padding=padding, bias=False),
                nn.GroupNorm(1, after),
                nn.GELU(),
            ]
        self.convolutions = nn.Sequential(*layers)
        self.out = nn.Linear(widths[-1], d_model)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, images: Tensor) -> Tensor:
        x = self.convolutions(images)  # [batch, width, rows, columns]
        out: Tensor = self.out(x.flatten(2).transpose(1, 2))
        return out


def strides_of(patch_size: tuple[int, int]) -> list[tuple[int, int]]:
    """Strides (down, across) whose products are the sides of a patch, small ones first: (4, 6) gives (2, 2)
    and (2, 3). At least one, if need be of 1."""
    down, across = _factors(patch_size[0]), _factors(patch_size[1])
    count = max(len(down), len(across), 1)
    return list(zip([1] * (count - len(down)) + down, [1] * (count - len(across)) + across, strict=True))


def _factors(number: int) -> list[int]:
    """Prime factors, the smallest first."""
    found, factor = [], 2
    while number > 1:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return found
