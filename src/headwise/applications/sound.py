"""One wav file as numbers, and sounds at another sample rate."""

from __future__ import annotations

import math
import sys
import wave
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import torch
from torch import Tensor

from headwise.applications.errors import DataError

CHUNK = 1 << 13
ZEROS = 16
"""Zero crossings of the resampling filter on either side."""


@dataclass(frozen=True)
class Sound:
    """A sound that was read.

    Attributes:
        samples: float32 [time], -1 to 1, one channel
        rate: samples per second
        notes: what was changed on the way: channels averaged, another rate
    """

    samples: Tensor
    rate: int
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate


def read_wav(file: Path | str | IO[bytes], *, rate: int | None = None, name: str | None = None) -> Sound:
    """Read a wav file of whole numbers (PCM, 8 to 32 bits). Several channels are averaged.

    Args:
        file: a path, or an open file
        rate: samples per second to bring it to. Default: its own.
        name: what messages call it. Default: its path.

    Raises:
        DataError: no such file, no wav file, one of another encoding, cut off, or without sound.
    """
    what = name if name is not None else str(file)
    try:
        with wave.open(str(file) if isinstance(file, Path) else file, "rb") as reader:
            channels, width, own = reader.getnchannels(), reader.getsampwidth(), reader.getframerate()
            count = reader.getnframes()
            content = reader.readframes(count)
    except FileNotFoundError:
        raise DataError(f"there is no file {what}: check the path") from None
    except IsADirectoryError:
        raise DataError(f"{what} is a folder: give a wav file") from None
    except (wave.Error, EOFError) as error:
        reason = str(error) or "it ends before it begins"
        raise DataError(
            f"{what} can't be read as wav ({reason}): give PCM of 8 to 32 bits, such as "
            "`ffmpeg -i FILE -c:a pcm_s16le OUT.wav` writes"
        ) from None
    except OSError as error:
        raise DataError(f"{what} can't be read: {error.strerror or error}") from None
    if not count or not own:
        raise DataError(f"{what} has no sound: its length is 0")
    if len(content) < count * channels * width:
        there = len(content) // (channels * width)
        raise DataError(f"{what} is cut off: it has {there:,} of its {count:,} samples")
    samples = _numbers(content, width).reshape(count, channels)
    notes = []
    if channels > 1:
        notes.append(f"{channels} channels were averaged")
    mono = samples.mean(1)
    if rate is not None and own != rate:
        notes.append(f"resampled from {own:,} to {rate:,} samples a second")
        mono = resample(mono, own, rate)
        own = rate
    return Sound(mono, own, tuple(notes))


def _numbers(content: bytes, width: int) -> Tensor:
    """float32, -1 to 1. 8 bits are unsigned, others signed, all little-endian."""
    raw = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    if width == 1:
        return (raw.float() - 128) / 128
    parts = raw.reshape(-1, width).long()  # from the lowest byte to the highest
    value = parts.new_zeros(len(parts))
    for place in range(width):
        value += parts[:, place] << (8 * place)
    half = 1 << (8 * width - 1)
    return (torch.where(value >= half, value - 2 * half, value).double() / half).float()


def resample(samples: Tensor, old: int, new: int) -> Tensor:
    """A sound [time] at another rate: the band-limited signal through its samples, read at the new times.

        y(t) = sum_k x_k c sinc(c (t - k)) w(t - k)         c = 0.95 min(1, new / old),  w: Hann

    with 16 zero crossings either way. Its length is ceil(time * new / old). (Smith, *Digital Audio
    Resampling*.)

    Raises:
        ValueError: rates below 1.
    """
    if old < 1 or new < 1:
        raise ValueError(f"rates are {old} and {new}: both must be 1 or more samples a second")
    if old == new or not len(samples):
        return samples
    cut = 0.95 * min(1.0, new / old)
    reach = math.ceil(ZEROS / cut)
    count = -(-len(samples) * new // old)
    padded = torch.nn.functional.pad(samples, (reach, reach + 1))
    offsets = torch.arange(-reach + 1, reach + 1)
    parts = []
    for start in range(0, count, CHUNK):
        number = torch.arange(start, min(start + CHUNK, count))
        whole = number * old // new  # exact: whole numbers
        fraction = (number * old % new).double() / new
        distance = (fraction[:, None] - offsets).float()  # [chunk, 2 reach], from each sample to the time
        weights = cut * torch.sinc(cut * distance) * (0.5 + 0.5 * torch.cos(math.pi * distance / reach))
        weights = weights.masked_fill(distance.abs() >= reach, 0.0)
        near = padded[whole[:, None] + offsets + reach]
        parts.append((near * weights).sum(1))
    return torch.cat(parts)


def write_wav(path: Path | str, samples: Tensor, rate: int) -> None:
    """Write one channel, -1 to 1, as 16 bits."""
    whole = (samples.clamp(-1, 1) * 32767).round().to(torch.int16)
    content = whole.numpy().tobytes() if sys.byteorder == "little" else whole.numpy().byteswap().tobytes()
    with wave.open(str(path), "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(content)
