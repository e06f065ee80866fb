"""A sound, what was heard in it, and the heads over its frames."""

from __future__ import annotations

from pathlib import Path

import torch

from headwise.applications.sound import read_wav
from headwise.applications.speech_model import FIRST_SYMBOL, features_of, hear
from headwise.applications.speech_trained import Transcriber
from headwise.cli.runs.view import Axis, Heard, Part
from headwise.cli.runs.watching import Watch, watch

BLANK, BEGIN, END = 0, 1, 2


def sound(trained: Transcriber, file: Path, *, beam: int) -> tuple[Heard, list[Part], list[str]]:
    """What is said in a wav file: by CTC, by the decoder where there is one, and all heads."""
    wave = read_wav(file, rate=trained.rate)
    features, frames = features_of([wave.samples], trained.mel)
    model, config = trained.model, trained.model.config
    written = (
        hear(model, features, frames, decoder="attention", beam=beam)[0] if config.decoder_layers else []
    )
    before, after = [BEGIN, *written], [*written, END]
    count = int(frames[0])
    for _ in range(config.halvings):
        count = (count + 1) // 2
    step = trained.mel.hop * 2**config.halvings / trained.rate
    digits = 2 if step >= 0.01 else 3
    frame_axis = Axis(
        "frames",
        "frames",
        tuple(f"{frame * step:.{digits}f} s" for frame in range(count)),
        (False,) * count,
        step=step,
    )
    watches = [
        Watch(
            "encoder",
            "Encoder self-attention",
            "every frame of the sound looks at all of them",
            "*encoder.layers.*.self_attention",
            frame_axis,
            frame_axis,
        )
    ]
    if config.decoder_layers:
        read_axis, write_axis = _axis(before, trained.symbols), _axis(after, trained.symbols)
        watches = [
            Watch(
                "cross",
                "Cross-attention",
                "before a symbol is written (row), the frames of the sound (columns) are looked at",
                "*decoder.layers.*.cross_attention",
                write_axis,
                frame_axis,
            ),
            *watches,
            Watch(
                "decoder",
                "Decoder self-attention",
                "every symbol looks at itself and those before it",
                "*decoder.layers.*.self_attention",
                read_axis,
                read_axis,
                torch.tensor(before),
            ),
        ]
    parts, scores = watch(model, watches, lambda: model(features, frames, torch.tensor([before])))
    likely, best = scores.ctc[0, :count].softmax(-1).max(-1)
    symbols = tuple(
        (frame, trained.symbols[one - FIRST_SYMBOL], float(likely[frame]))
        for frame, one in enumerate(best.tolist())
        if one >= FIRST_SYMBOL and (frame == 0 or one != int(best[frame - 1]))
    )

    def text(ids: list[int]) -> str:
        return trained.joined_by.join(trained.symbols[one - FIRST_SYMBOL] for one in ids)

    ctc = hear(model, features, frames, decoder="ctc")[0]
    found = Heard(
        output=text(ctc),
        written=text(written) if config.decoder_layers else None,
        features=features[0, : int(frames[0])],
        seconds=wave.seconds,
        symbols=symbols,
    )
    return found, parts, [f"The sound: {note}." for note in wave.notes]


def _axis(ids: list[int], symbols: list[str]) -> Axis:
    names = {BEGIN: "[BOS]", END: "[EOS]", BLANK: "[PAD]"}
    labels = tuple(names[one] if one in names else symbols[one - FIRST_SYMBOL] for one in ids)
    return Axis("symbols", "text", labels, tuple(one in names for one in ids))
