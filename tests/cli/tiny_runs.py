"""One tiny run of each application, trained for a few steps, and an input for each."""

import random

import torch

from headwise.applications import find, train_application
from headwise.applications.sound import write_wav

SIZES = ("d_model=16", "d_ff=24", "dropout=0", "warmup=1", "device=cpu")
TOKENS = (*SIZES, "num_layers=2", "num_heads=3", "d_k=5", "d_v=7", "vocab_size=300", "precision=float32")
RATE = 2000
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven"]


def train(name, data, folder, *changes, steps=2):
    train_application(
        find(name),
        folder,
        [data],
        changes=[*changes, f"steps={steps}", f"validate_every={steps}"],
        show=False,
    )
    return folder


def translation(folder):
    data = folder / "data"
    data.mkdir()
    for split, count in (("train", 29), ("val", 3), ("test", 3)):
        for language, words in (("en", "one two"), ("de", "eins zwei")):
            first, second = words.split()
            rows = [f"{first} {second}." if number % 2 else f"{second} {first}." for number in range(count)]
            (data / f"{split}.{language}").write_text("\n".join(rows) + "\n")
    return train(
        "translation", data, folder / "run", *TOKENS, "num_decoder_layers=1", "max_tokens=300", steps=40
    )


def table(folder, columns, row):
    chance = random.Random(3)
    lines = ["\t".join(("group", *columns))]
    lines += ["\t".join((str(number), *row(chance.sample(NUMBERS, 3)))) for number in range(200)]
    file = folder / "all.tsv"
    file.write_text("\n".join(lines) + "\n")
    return file


def summarization(folder):
    file = table(
        folder, ("text", "summary"), lambda some: (f"Not {some[0]}. It is {some[1]}.", f"about {some[1]}")
    )
    changes = ("max_tokens=500", "longest=13", "longest_summary=7", "validation_texts=3")
    return train("summarization", file, folder / "run", *TOKENS, *changes)


def question_answering(folder):
    def row(some):
        return f"not {some[0]} it is {some[1]} not {some[2]}", "which is it", some[1]

    file = table(folder, ("context", "question", "answer"), row)
    changes = ("max_tokens=600", "longest=31", "validation_texts=3")
    return train("question-answering", file, folder / "run", *TOKENS, *changes)


def vision(folder):
    return train("vision", "digits", folder / "run", *SIZES, "layers=2", "heads=2", "patch=2")


def speech(folder):
    chance = torch.Generator().manual_seed(2)
    for digit in (3, 5):
        for take in (0, 5, 8, 9):
            sound = torch.randn(700, generator=chance) / 5
            write_wav(folder / f"{digit}_x_{take}.wav", sound, RATE)
    changes = ("bands=7", "layers=1", "decoder_layers=1", "heads=2", "positions=sinusoidal")
    return train("speech", folder, folder / "run", *SIZES, *changes)


MAKE = {
    "translation": translation,
    "summarization": summarization,
    "question-answering": question_answering,
    "vision": vision,
    "speech": speech,
}


def inputs(folder):
    """The words after the run, for each application."""
    from PIL import Image

    image = Image.new("L", (8, 8))
    for place in range(8):
        image.putpixel((place, (place * 3) % 8), 30 * place + 20)
    image.save(folder / "seven.png")
    sound = torch.randn(900, generator=torch.Generator().manual_seed(5)) / 5
    write_wav(folder / "said.wav", sound, RATE)
    return {
        "translation": ["one two one."],
        "summarization": ["Not one. It is four."],
        "question-answering": ["not one it is two not six", "--question", "which is it"],
        "vision": [str(folder / "seven.png")],
        "speech": [str(folder / "said.wav")],
    }
