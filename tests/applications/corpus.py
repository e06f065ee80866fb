"""A corpus by a rule: digits in English words become German ones."""

import random

ENGLISH = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
GERMAN = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]
COUNTS = {"train": 700, "val": 23, "test": 47}
# A model that learns the rule in seconds
QUICK = [
    "num_layers=1",
    "d_model=64",
    "d_ff=128",
    "num_heads=4",
    "dropout=0",
    "steps=150",
    "warmup=50",
    "rate=0.5",
    "validate_every=150",
    "precision=float32",
    "vocab_size=300",
    "max_tokens=300",
    "validation_texts=23",
    "device=cpu",
    "label_smoothing=0.05",
]


def english(digits):
    return " ".join(ENGLISH[digit] for digit in digits) + "."


def german(digits):
    return " ".join(GERMAN[digit] for digit in digits) + "."


def write_corpus(folder, counts=COUNTS, seed=5):
    """train.en, train.de, val.en, ..."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    for split, count in counts.items():
        rows = [[chance.randrange(10) for _ in range(chance.randint(3, 4))] for _ in range(count)]
        for language, spell in (("en", english), ("de", german)):
            text = "".join(spell(row) + "\n" for row in rows)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    return folder
