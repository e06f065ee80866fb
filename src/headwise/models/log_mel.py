"""Sound as log-mel spectra."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from headwise.models.checks import check_lengths


class LogMel(nn.Module):
    """How loud each band of pitch is in each short stretch of sound.

        power = |STFT(samples)|^2            Hann window of `window` samples, every `hop` samples
        mel   = log(max(B power, 1e-10))     B: `bands` triangles, equally wide in mel

    with mel(f) = 2595 log10(1 + f / 700). With `normalize`, each band of each sound then has mean 0 and
    variance 1 over its real frames. In a sound of one word that takes away what tells the word: with
    `statistics`, of many sounds, every sound is first made as loud as every other (its mean square becomes
    1), and each band is then measured against what it is elsewhere:

        (mel - mean) / deviation             of the band in many sounds; kept within -5 and 5

    What stands beyond a sound's length doesn't change its frames, nor does the padding of a batch.

    Shapes: samples [batch, time] and int64 [batch] -> [batch, frames, bands] and int64 [batch], with
    1 + length // hop frames for a sound of `length` samples (0 for none).

    Args:
        sample_rate: samples per second.
        window, hop: in samples. Default 25 ms and 10 ms.
        lowest, highest: hertz. Default 0 and half of sample_rate.
        statistics: mean and deviation of each band, from `measure`; in place of `normalize`.
    """

    def __init__(
        self,
        sample_rate: int = 16000,
        *,
        bands: int = 80,
        window: int | None = None,
        hop: int | None = None,
        lowest: float = 0.0,
        highest: float | None = None,
        normalize: bool = True,
        statistics: tuple[Sequence[float], Sequence[float]] | None = None,
    ) -> None:
        super().__init__()
        if sample_rate < 1 or bands < 1:
            raise ValueError(f"sample_rate={sample_rate} and bands={bands}: both must be 1 or more")
        self.sample_rate = sample_rate
        self.window_length = round(0.025 * sample_rate) if window is None else window
        self.hop = round(0.01 * sample_rate) if hop is None else hop
        if self.window_length < 1 or self.hop < 1:
            raise ValueError(
                f"window={self.window_length} and hop={self.hop}: both must be 1 or more samples"
            )
        highest = sample_rate / 2 if highest is None else highest
        if not 0 <= lowest < highest <= sample_rate / 2:
            raise ValueError(
                f"lowest={lowest} and highest={highest}: 0 <= lowest < highest <= {sample_rate / 2} hertz, "
                f"half of the sample rate"
            )
        self.normalize = normalize and statistics is None
        self.statistics = statistics
        self.bound = 5.0  # exact silence would stand far out
        self.lowest, self.highest = lowest, highest
        if statistics is not None:
            mean, deviation = (torch.tensor(list(one), dtype=torch.float32) for one in statistics)
            if not mean.shape == deviation.shape == (bands,) or not bool((deviation > 0).all()):
                raise ValueError(
                    f"statistics of {len(mean)} and {len(deviation)} bands: give a mean and a positive "
                    f"deviation for each of {bands} bands"
                )
            self.register_buffer("mean", mean, persistent=False)
            self.register_buffer("deviation", deviation, persistent=False)
        self.fft_length = 2 ** math.ceil(math.log2(self.window_length))
        # neither changes in training, and both follow from the sizes: no part of the state dict
        self.register_buffer("window", torch.hann_window(self.window_length), persistent=False)
        filters = mel_filters(self.fft_length // 2 + 1, bands, sample_rate, lowest, highest)
        self.register_buffer("filters", filters, persistent=False)

    @torch.no_grad()
    def forward(self, samples: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if samples.ndim != 2 or not samples.is_floating_point():
            raise ValueError(
                f"samples must be floating-point [batch, time], got {samples.dtype} {tuple(samples.shape)}: "
                "make one channel of stereo, and divide whole numbers by their largest"
            )
        check_lengths("lengths", lengths, samples.shape[0])
        if lengths is None:
            lengths = torch.full((samples.shape[0],), samples.shape[1], device=samples.device)
        time = torch.arange(samples.shape[1], device=samples.device)
        samples = samples.masked_fill(time >= lengths[:, None], 0.0)
        if self.statistics is not None:
            power = samples.float().square().sum(1, keepdim=True) / lengths.clamp(min=1)[:, None]
            samples = samples / (power + 1e-10).sqrt()
        window: Tensor = self.get_buffer("window")
        spectrum = torch.stft(
            samples.float(),
            self.fft_length,
            hop_length=self.hop,
            win_length=self.window_length,
            window=window,
            center=True,
            pad_mode="constant",
            return_complex=True,
        )  # [batch, frequencies, frames]
        power = spectrum.real.square() + spectrum.imag.square()
        mel = (self.get_buffer("filters") @ power).clamp(min=1e-10).log().transpose(1, 2)
        frames = torch.where(lengths > 0, 1 + lengths // self.hop, 0)
        real = (torch.arange(mel.shape[1], device=mel.device) < frames[:, None])[..., None]
        if self.normalize:
            count = frames.clamp(min=1)[:, None, None]
            mel = mel - (mel * real).sum(1, keepdim=True) / count
            variance = (mel.square() * real).sum(1, keepdim=True) / count
            mel = mel / (variance + 1e-5).sqrt()
        if self.statistics is not None:
            mel = ((mel - self.get_buffer("mean")) / self.get_buffer("deviation")).clamp(
                -self.bound, self.bound
            )
        return mel.masked_fill(~real, 0.0), frames

    def measure(self, sounds: Iterable[Tensor]) -> tuple[list[float], list[float]]:
        """Mean and deviation of each band over all frames of many sounds [time], each made equally loud: the
        `statistics` of another LogMel of the same sizes. Of no frames: 0 and 1."""
        bands = self.get_buffer("filters").shape[0]
        plain = LogMel(
            self.sample_rate,
            bands=bands,
            window=self.window_length,
            hop=self.hop,
            lowest=self.lowest,
            highest=self.highest,
            statistics=([0.0] * bands, [1.0] * bands),
        )
        plain.bound = math.inf
        count, total, squares = 0, torch.zeros(bands).double(), torch.zeros(bands).double()
        for sound in sounds:
            mel = plain(sound[None])[0][0].double()
            count, total, squares = count + len(mel), total + mel.sum(0), squares + mel.square().sum(0)
        mean = total / max(count, 1)
        variance = (squares / max(count, 1) - mean.square()).clamp(min=0)
        deviation = variance.sqrt().clamp(min=1e-3) if count else torch.ones(bands).double()
        return [round(one, 5) for one in mean.tolist()], [round(one, 5) for one in deviation.tolist()]


def mel_filters(frequencies: int, bands: int, sample_rate: int, lowest: float, highest: float) -> Tensor:
    """Triangles over the frequencies of an STFT, each from the centre of the band before to that of the band
    after, equally far apart in mel: [bands, frequencies]."""
    hertz = torch.linspace(0, sample_rate / 2, frequencies, dtype=torch.float64)
    low_mel, high_mel = (2595 * math.log10(1 + f / 700) for f in (lowest, highest))
    mels = torch.linspace(low_mel, high_mel, bands + 2, dtype=torch.float64)
    edges = 700 * (10 ** (mels / 2595) - 1)  # [bands + 2], hertz
    low, centre, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising, falling = (hertz - low) / (centre - low), (high - hertz) / (high - centre)
    return torch.minimum(rising, falling).clamp(min=0).float()
