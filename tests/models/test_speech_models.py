"""Log-mel features, the convolution front end, and the model over them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from headwise.models import LogMel, SpeechConfig, SpeechTransformer
from headwise.models.decoding import beam_search, ctc_greedy, greedy
from headwise.models.log_mel import mel_filters

SIZES: dict[str, Any] = {
    "vocab_size": 13,
    "bands": 11,
    "num_layers": 2,
    "decoder_layers": 1,
    "d_model": 12,
    "d_ff": 17,
    "num_heads": 3,
    "ctc": True,
}
LENGTHS = torch.tensor([23, 5, 1, 0])


def build(**changes: Any) -> SpeechTransformer:
    torch.manual_seed(0)
    return SpeechTransformer(SpeechConfig(**(SIZES | changes))).double().eval()


def features() -> Tensor:
    return torch.randn(4, 23, 11, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_power_by_hand() -> None:
    """One frame of the STFT as the sum that it stands for."""
    torch.manual_seed(0)
    rate, window, hop = 800, 13, 5
    mel = LogMel(rate, bands=3, window=window, hop=hop, normalize=False)
    samples = torch.randn(1, 47)
    out, frames = mel(samples)
    assert frames.tolist() == [1 + 47 // hop]
    n = mel.fft_length
    assert n == 16
    at = 4  # this frame's middle stands at sample 4 x 5
    hann = [0.5 - 0.5 * math.cos(2 * math.pi * i / window) for i in range(window)]
    left = (n - window) // 2  # torch puts a shorter window in the middle
    power = []
    for k in range(n // 2 + 1):
        real = imaginary = 0.0
        for i in range(window):
            x = float(samples[0, at * hop - n // 2 + left + i]) * hann[i]
            angle = 2 * math.pi * k * (left + i) / n
            real, imaginary = real + x * math.cos(angle), imaginary - x * math.sin(angle)
        power.append(real**2 + imaginary**2)
    filters = mel_filters(n // 2 + 1, 3, rate, 0.0, rate / 2)
    expected = (filters @ torch.tensor(power)).clamp(min=1e-10).log()
    torch.testing.assert_close(out[0, at], expected, rtol=1e-4, atol=1e-4)


def test_a_tone_is_loudest_in_its_band() -> None:
    mel = LogMel(8000, bands=20, normalize=False)
    time = torch.arange(4000) / 8000
    loudest = []
    for hertz in (300, 1000, 3000):
        out, frames = mel(torch.sin(2 * math.pi * hertz * time)[None])
        band = int(out[0, int(frames) // 2].argmax())
        weights = mel_filters(mel.fft_length // 2 + 1, 20, 8000, 0.0, 4000.0)
        nearest = round(hertz / (4000 / (mel.fft_length // 2)))
        assert weights[band, nearest] >= weights[:, nearest].max() - 0.5
        loudest.append(band)
    assert loudest == sorted(set(loudest))


def test_filters_are_triangles_that_cover_all_between() -> None:
    filters = mel_filters(201, 7, 16000, 0.0, 8000.0)
    assert bool((filters >= 0).all())
    assert bool((filters <= 1).all())
    inside = filters.sum(0)[(filters.argmax(1)[0]) : (filters.argmax(1)[-1]) + 1]
    torch.testing.assert_close(inside, torch.ones_like(inside), rtol=0, atol=1e-6)  # neighbours sum to 1


def spoken(count: int = 5) -> list[Tensor]:
    """Sounds of unequal length, loudness and pitch."""
    torch.manual_seed(4)
    found = []
    for number in range(count):
        time = torch.arange(2000 + 700 * number) / 8000
        tone = torch.sin(2 * math.pi * (300 + 400 * number) * time)
        found.append((tone + 0.3 * torch.randn(len(time))) * 4.0**-number)
    return found


def test_statistics_measure_each_band_against_what_it_is_elsewhere() -> None:
    sounds = spoken()
    measured = LogMel(8000, bands=11).measure(sounds)
    mel = LogMel(8000, bands=11, statistics=measured)
    frames = torch.cat([mel(one[None])[0][0] for one in sounds])
    torch.testing.assert_close(frames.mean(0), torch.zeros(11), atol=0.05, rtol=0)  # but for what is cut off
    torch.testing.assert_close(frames.std(0), torch.ones(11), atol=0.05, rtol=0)
    one = mel(sounds[2][None])[0][0].mean(0)
    assert one.abs().max() > 0.5  # what tells this sound from the others is still there
    own = LogMel(8000, bands=11)(sounds[2][None])[0][0].mean(0)
    assert own.abs().max() < 1e-4  # where each sound is measured by itself, it isn't


def test_statistics_know_no_loudness() -> None:
    sounds = spoken()
    mel = LogMel(8000, bands=11, statistics=LogMel(8000, bands=11).measure(sounds))
    loud, _ = mel(sounds[1][None])
    soft, _ = mel(sounds[1][None] / 50)
    torch.testing.assert_close(loud, soft, atol=1e-3, rtol=0)
    silent, frames = mel(torch.zeros(1, 400))
    assert silent.shape[1] == frames[0]
    assert silent.abs().max() <= 5


def test_statistics_of_other_bands_are_refused() -> None:
    with pytest.raises(ValueError, match="statistics of 2 and 2 bands"):
        LogMel(8000, bands=3, statistics=([0.0, 0.0], [1.0, 1.0]))
    with pytest.raises(ValueError, match="positive"):
        LogMel(8000, bands=2, statistics=([0.0, 0.0], [1.0, 0.0]))
    assert LogMel(8000, bands=2).measure([]) == ([0.0, 0.0], [1.0, 1.0])


@pytest.mark.parametrize("normalize", [True, False, "statistics"])
def test_padding_does_not_change_features(normalize: bool | str) -> None:
    measured = LogMel(8000, bands=11).measure(spoken()) if normalize == "statistics" else None
    torch.manual_seed(0)
    mel = LogMel(8000, bands=11, normalize=bool(normalize), statistics=measured)
    lengths = torch.tensor([900, 333, 0])
    samples = torch.randn(3, 900)
    out, frames = mel(samples, lengths)
    assert frames.tolist() == [1 + 900 // 80, 1 + 333 // 80, 0]
    for row, length in enumerate(lengths.tolist()):
        count = int(frames[row])
        assert not out[row, count:].any()
        if count:
            alone, _ = mel(samples[row : row + 1, :length])
            torch.testing.assert_close(alone[0], out[row, :count], rtol=1e-4, atol=1e-4)
            if normalize is True:
                torch.testing.assert_close(alone[0].mean(0), torch.zeros(11), rtol=0, atol=1e-4)


def test_padding_does_not_change_the_model() -> None:
    model = build()
    x, target = features(), torch.randint(3, 13, (4, 5), generator=torch.Generator().manual_seed(0))
    memory, lengths = model.encode(x, LENGTHS)
    assert lengths.tolist() == [6, 2, 1, 0]
    logits, ctc = model(x, target, LENGTHS), model.ctc_logits(memory)
    assert bool(logits.isfinite().all())
    for row, length in enumerate(LENGTHS.tolist()[:3]):
        alone = model(x[row : row + 1, :length], target[row : row + 1])
        torch.testing.assert_close(alone[0], logits[row], rtol=1e-9, atol=1e-11)
        one, _ = model.encode(x[row : row + 1, :length])
        torch.testing.assert_close(
            model.ctc_logits(one)[0], ctc[row, : int(lengths[row])], rtol=1e-9, atol=1e-11
        )


@pytest.mark.parametrize(("halvings", "frames"), [(0, 23), (1, 12), (3, 3)])
def test_frames_after_the_front_end(halvings: int, frames: int) -> None:
    memory, lengths = build(halvings=halvings).encode(features())
    assert memory.shape == (4, frames, 12)
    assert lengths.tolist() == [frames] * 4


def test_no_sound_at_all() -> None:
    model = build()
    memory, lengths = model.encode(features()[:, :0])
    assert lengths.tolist() == [0] * 4
    assert bool(memory.isfinite().all())
    assert len(greedy(model.stepper(features()[:, :0]), max_extra=3)) == 4
    out, frames = LogMel(8000)(torch.zeros(2, 0))
    assert frames.tolist() == [0, 0]
    assert not out.any()


def test_decoding() -> None:
    model = build()
    found = greedy(model.stepper(features(), LENGTHS), max_extra=3)
    beams = beam_search(model.stepper(features(), LENGTHS), beam=1, max_extra=3)
    assert [one.tokens for one in found] == [one[0].tokens for one in beams]
    memory, lengths = model.encode(features(), LENGTHS)
    assert len(ctc_greedy(model.ctc_logits(memory), lengths)) == 4


def test_ctc_alone() -> None:
    """The loss of torch takes what the model gives."""
    model = build(decoder_layers=0)
    memory, lengths = model.encode(features()[:2], LENGTHS[:2])
    log_p = model.ctc_logits(memory).log_softmax(-1).transpose(0, 1)
    loss = torch.nn.functional.ctc_loss(
        log_p, torch.tensor([[3, 4], [5, 0]]), lengths, torch.tensor([2, 1]), blank=model.config.pad_id
    )
    assert bool(loss.isfinite())
    with pytest.raises(ValueError, match="no decoder"):
        model.decode(torch.ones(1, 1, dtype=torch.int64), memory[:1])
    with pytest.raises(ValueError, match="no decoder"):
        model.stepper(features())


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="nothing that writes"):
        SpeechConfig(**(SIZES | {"decoder_layers": 0, "ctc": False}))
    with pytest.raises(ValueError, match="no CTC head"):
        build(ctc=False).ctc_logits(torch.zeros(1, 1, 12))
    with pytest.raises(ValueError, match=r"reads \[batch, frames, 11\]"):
        build().encode(torch.zeros(1, 3, 7))
    with pytest.raises(ValueError, match="make one channel of stereo"):
        LogMel()(torch.zeros(2, 2, 100))
    with pytest.raises(ValueError, match="floating-point"):
        LogMel()(torch.zeros(2, 100, dtype=torch.int16))
    with pytest.raises(ValueError, match="highest=9000"):
        LogMel(16000, highest=9000)
    with pytest.raises(ValueError, match="bands=0"):
        LogMel(bands=0)
    with pytest.raises(ValueError, match="hop=0"):
        LogMel(16000, hop=0)
