"""Wav files of every kind, sample rates, FSDD's names, transcripts; and what is refused."""

import math
import random
import struct
import tarfile
import wave

import pytest
import torch

from headwise.applications.data_sounds import digest, load_recordings
from headwise.applications.errors import DataError
from headwise.applications.sound import read_wav, resample, write_wav


def save(path, frames, *, width=2, channels=1, rate=8000):
    """Whole numbers as little-endian PCM (8 bits unsigned)."""
    with wave.open(str(path), "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(width)
        writer.setframerate(rate)
        signed = width > 1
        writer.writeframes(b"".join(one.to_bytes(width, "little", signed=signed) for one in frames))
    return path


@pytest.mark.parametrize(
    ("width", "frames"),
    [
        (1, [128, 192, 0, 255]),
        (2, [0, 1 << 14, -(1 << 15), (1 << 15) - 256]),
        (3, [0, 1 << 22, -(1 << 23), (1 << 23) - (1 << 16)]),
        (4, [0, 1 << 30, -(1 << 31), (1 << 31) - (1 << 24)]),
    ],
)
def test_every_width(tmp_path, width, frames):
    found = read_wav(save(tmp_path / "a.wav", frames, width=width))
    assert found.samples.tolist() == [0.0, 0.5, -1.0, 127 / 128]
    assert found.samples.dtype == torch.float32
    assert (found.rate, found.notes, found.seconds) == (8000, (), 4 / 8000)


def test_what_is_written_is_read(tmp_path):
    samples = torch.rand(101, generator=torch.Generator().manual_seed(1)) * 2 - 1
    write_wav(tmp_path / "a.wav", samples, 4000)
    found = read_wav(tmp_path / "a.wav")
    assert found.rate == 4000
    torch.testing.assert_close(found.samples, samples, atol=2 / 32768, rtol=0)


def test_channels_are_averaged_and_it_is_said(tmp_path):
    found = read_wav(save(tmp_path / "a.wav", [1 << 14, 0, 0, 1 << 13], channels=2))
    assert found.samples.tolist() == [0.25, 0.125]
    assert found.notes == ("2 channels were averaged",)


def test_another_rate_is_resampled_and_it_is_said(tmp_path):
    found = read_wav(save(tmp_path / "a.wav", [100] * 300, channels=3, rate=11025), rate=8000)
    assert found.rate == 8000
    assert len(found.samples) == math.ceil(100 * 8000 / 11025)
    assert found.notes == (
        "3 channels were averaged",
        "resampled from 11,025 to 8,000 samples a second",
    )


@pytest.mark.parametrize(("old", "new"), [(44100, 8000), (8000, 16000), (8001, 7919), (3, 7)])
def test_a_tone_keeps_its_pitch_and_loudness(old, new):
    low = 0.11 * min(old, new)  # hertz, well below half of either rate
    sound = torch.sin(2 * math.pi * low * torch.arange(2003, dtype=torch.float64) / old).float()
    found = resample(sound, old, new)
    assert len(found) == math.ceil(2003 * new / old)
    expected = torch.sin(2 * math.pi * low * torch.arange(len(found), dtype=torch.float64) / new).float()
    inner = slice(len(found) // 8, -(len(found) // 8))  # the filter reaches over either end
    torch.testing.assert_close(found[inner], expected[inner], atol=2e-3, rtol=0)


def test_pitch_that_the_lower_rate_can_not_hold_vanishes():
    time = torch.arange(4001) / 16000
    found = resample(torch.sin(2 * math.pi * 6000 * time), 16000, 8000)
    assert found[200:-200].abs().max() < 2e-3


def test_the_same_rate_and_no_sound_stay_as_they_are():
    sound = torch.rand(7)
    assert resample(sound, 5, 5) is sound
    assert resample(torch.zeros(0), 5, 7).shape == (0,)
    with pytest.raises(ValueError, match="rates are 0 and 5"):
        resample(sound, 0, 5)


def test_sounds_that_can_not_be_read_are_named(tmp_path):
    with pytest.raises(DataError, match=r"no file .*none\.wav"):
        read_wav(tmp_path / "none.wav")
    with pytest.raises(DataError, match="is a folder"):
        read_wav(tmp_path)
    for name, content in (("empty", b""), ("words", b"not a sound at all, only words"), ("half", b"RIFF")):
        (tmp_path / f"{name}.wav").write_bytes(content)
        with pytest.raises(DataError, match=rf"{name}\.wav can't be read as wav"):
            read_wav(tmp_path / f"{name}.wav")
    with pytest.raises(DataError, match="its length is 0"):
        read_wav(save(tmp_path / "silent.wav", []))
    whole = save(tmp_path / "whole.wav", list(range(500))).read_bytes()
    (tmp_path / "cut.wav").write_bytes(whole[:-400])
    with pytest.raises(DataError, match="cut off: it has 300 of its 500 samples"):
        read_wav(tmp_path / "cut.wav")
    floats = bytearray(whole)
    floats[20:22] = struct.pack("<H", 3)  # the format tag of floating-point numbers
    (tmp_path / "floats.wav").write_bytes(bytes(floats))
    with pytest.raises(DataError, match=r"floats\.wav can't be read as wav .*pcm_s16le"):
        read_wav(tmp_path / "floats.wav")


def digits(folder, takes=10, rate=2000):
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(3)
    for digit in (2, 7):
        for take in range(takes):
            frames = [chance.randint(-999, 999) for _ in range(31 + take)]
            save(folder / f"{digit}_ann_{take}.wav", frames, rate=rate)
    return folder


def test_digits_have_their_official_split(tmp_path):
    found = load_recordings(digits(tmp_path / "fsdd" / "recordings").parent)
    assert found.rate == 2000
    assert found.joined_by == " "
    assert found.symbols == ["2", "7"]
    takes = {
        split: sorted({int(one.name.rpartition("_")[2][:-4]) for one in recordings})
        for split, recordings in found.splits.items()
    }
    assert takes == {"train": [8, 9], "valid": [5, 6, 7], "test": [0, 1, 2, 3, 4]}
    assert all(one.symbols == (one.name[0],) for one in found.splits["test"])
    assert [len(one.samples) for one in found.splits["train"]] == [39, 40, 39, 40]


def test_an_archive_is_as_good_as_its_folder(tmp_path):
    folder = digits(tmp_path / "recordings")
    with tarfile.open(tmp_path / "fsdd.tar.gz", "w:gz") as archive:
        archive.add(folder, "recordings")
    plain, packed = load_recordings(folder), load_recordings(tmp_path / "fsdd.tar.gz")
    for split, recordings in plain.splits.items():
        assert digest(recordings) == digest(packed.splits[split])
    assert digest(plain.splits["train"]) != digest(plain.splits["valid"])


def test_what_was_changed_is_counted(tmp_path):
    folder = digits(tmp_path / "recordings")
    save(folder / "2_zed_9.wav", [5] * 60, channels=2, rate=4000)
    found = load_recordings(folder)
    assert found.notes == (
        "1 files: 2 channels were averaged",
        "1 files: resampled from 4,000 to 2,000 samples a second",
    )
    assert load_recordings(folder, rate=1000).rate == 1000


def test_texts_are_read_letter_by_letter(tmp_path):
    names = [f"clips/{number}.wav" for number in range(60)]
    (tmp_path / "clips").mkdir()
    for name in names:
        save(tmp_path / name, [1, 2, 3])
    text = "".join(f"{name}\tYou  are {number % 7}.\n" for number, name in enumerate(names))
    (tmp_path / "transcripts.tsv").write_text(f"{text}\n", encoding="utf-8-sig")
    found = load_recordings(tmp_path)
    assert found.joined_by == ""
    assert sum(map(len, found.splits.values())) == 60
    assert all("".join(one.symbols).startswith("you are ") for one in found.splits["train"])
    more = (tmp_path / "transcripts.tsv").read_text(encoding="utf-8-sig").splitlines()[:50]
    (tmp_path / "transcripts.tsv").write_text("\n".join(more))
    fewer = load_recordings(tmp_path)
    for split, recordings in fewer.splits.items():  # a file stays where it was
        assert {one.name for one in recordings} <= {one.name for one in found.splits[split]}


def test_folders_that_can_not_be_learned_from(tmp_path):
    with pytest.raises(DataError, match=r"no .*nothing: give a folder"):
        load_recordings(tmp_path / "nothing")
    with pytest.raises(DataError, match=r"digit_speaker_take\.wav, such as"):
        load_recordings(tmp_path)
    with pytest.raises(DataError, match="no recordings for train"):
        load_recordings(digits(tmp_path / "few", takes=7))
    (tmp_path / "words.tar.gz").write_text("no archive")
    with pytest.raises(DataError, match="no archive of recordings"):
        load_recordings(tmp_path / "words.tar.gz")
    table = tmp_path / "transcripts.tsv"
    for line in ("a.wav and no tab", "a.wav\t  ", "\ttext"):
        table.write_text(f"\n{line}\n")
        with pytest.raises(DataError, match="line 2: write a file, a tab"):
            load_recordings(tmp_path)
    table.write_text("missing.wav\ttext\n")
    with pytest.raises(DataError, match=r"missing\.wav"):
        load_recordings(tmp_path)
    table.write_bytes(b"a.wav\t\xff\n")
    with pytest.raises(DataError, match="no UTF-8 text"):
        load_recordings(tmp_path)
