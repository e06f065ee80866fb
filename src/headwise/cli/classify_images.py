"""`headwise classify`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import typer

from headwise.applications.vision_trained import Classifier
from headwise.cli.errors import printable
from headwise.cli.mistakes import at_least_one, checkpoint_named, told_plainly
from headwise.cli.trained import say, trained_for


def classify_images(
    run: Path, images: Sequence[Path], *, invert: bool, top: int, checkpoint: str, as_json: bool
) -> None:
    """See `headwise classify --help`. What had to be changed to read a file is said on standard error.

    Raises:
        UserError: no run of vision, a file that is no image.
    """
    which = checkpoint_named(checkpoint)
    at_least_one("top", top)
    with told_plainly():
        trained: Classifier = trained_for(run, "vision", "classify images", which)
        found = [(image, trained.classify(image, invert=invert)) for image in images]
    if as_json:
        rows = [
            {
                "input": str(image),
                "output": guess.label,
                "probabilities": dict(islice(guess.probabilities.items(), top)),
                "notes": guess.notes,
            }
            for image, guess in found
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for image, guess in found:
        for note in guess.notes:
            say(f"{image}: {note}")
        shares = ", ".join(f"{name} {share:.1%}" for name, share in islice(guess.probabilities.items(), top))
        typer.echo(printable(f"{image}: {shares}"))
