"""What `headwise see RUN INPUT` shows: the input, what the model made of it, and its heads on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from torch import Tensor

from headwise.cli.classify import Verdict

CELLS = 256
"""Up to this many tokens along a side a map holds every weight; beyond, cells of several tokens."""

UNITS = {"text": "token", "patches": "patch", "frames": "frame"}
MANY = {"text": "tokens", "patches": "patches", "frames": "frames"}


@dataclass(frozen=True)
class Axis:
    """What the queries or the keys of an attention are.

    Attributes:
        kind: tokens of a text, patches of an image (the class token first), or frames of a sound
        labels: of each
        special: those that stand for no part of the input: [BOS], [EOS], the class token
        grid: rows and columns of patches
        step: seconds from frame to frame
    """

    name: str
    kind: Literal["text", "patches", "frames"]
    labels: tuple[str, ...]
    special: tuple[bool, ...]
    grid: tuple[int, int] = (0, 0)
    step: float = 0.0

    @property
    def unit(self) -> str:
        return UNITS[self.kind]

    @property
    def cells(self) -> int:
        return min(len(self.labels), CELLS)

    @property
    def whole(self) -> bool:
        """Is each token a cell of its own?"""
        return len(self.labels) <= CELLS

    @property
    def cell_labels(self) -> tuple[str, ...]:
        """Of each cell of a map."""
        if self.whole:
            return self.labels
        count, cells = len(self.labels), self.cells
        first = [-(-cell * count // cells) for cell in range(cells + 1)]
        return tuple(
            self.labels[one] if other == one + 1 else f"{self.labels[one]} … {self.labels[other - 1]}"
            for one, other in pairwise(first)
        )


@dataclass(frozen=True)
class Strongest:
    """The heaviest pair, special tokens aside."""

    query: int
    key: int
    weight: float


@dataclass(frozen=True)
class Facts:
    """What one head does, averaged over the queries that aren't special.

    Attributes:
        shares: of its attention by kind of key, 0 to 1; None where there is no such key
        even: what a head that attends evenly would give
        entropy: in bits; `most` is the largest possible, `evenness` their ratio
        distance: in tokens, frames or patches; None between two sequences
        largest: mean of each query's largest weight
    """

    layer: int
    head: int
    verdict: Verdict
    shares: Mapping[str, float | None]
    even: Mapping[str, float | None]
    entropy: float
    most: float
    evenness: float
    distance: float | None
    largest: float
    strongest: Strongest


@dataclass(frozen=True, eq=False)
class Part:
    """All heads of one use of attention.

    Attributes:
        facts: [layers][heads]; none for what no head does, such as attention rollout
        maps: [layers, heads + 1, query cells, key cells], the share of their attention that the queries of a
            cell give to the keys of another; the last of each layer is the mean over its heads
    """

    key: str
    title: str
    about: str
    queries: Axis
    keys: Axis
    facts: tuple[tuple[Facts, ...], ...]
    maps: Tensor
    row_sum_error: float

    @property
    def layers(self) -> int:
        return int(self.maps.shape[0])

    @property
    def heads(self) -> int:
        return len(self.facts[0]) if self.facts else 0

    @property
    def one_sequence(self) -> bool:
        return self.queries is self.keys

    def mean(self, layer: int) -> Tensor:
        """[query cells, key cells], over the heads of a layer."""
        return self.maps[layer, -1]

    @property
    def sharpest(self) -> int:
        """The layer whose mean over heads gives most to single keys that aren't special; queries that are
        special don't count."""
        maps = self.maps[:, -1].clone()
        if self.keys.whole and not all(self.keys.special):
            maps[..., [at for at, special in enumerate(self.keys.special) if special]] = 0
        if self.queries.whole and not all(self.queries.special):
            maps = maps[:, [at for at, special in enumerate(self.queries.special) if not special]]
        return int(maps.amax(-1).mean(-1).argmax())


@dataclass(frozen=True)
class Written:
    """A translation or a summary.

    Attributes:
        copied: of each token that is written, [EOS] too, the share that copying from the input has in it
            (1 - p_gen); empty where the run does not copy
    """

    source: str
    output: str
    log_probability: float
    finished: bool
    beam: int
    copied: tuple[float, ...] = ()


@dataclass(frozen=True)
class Answered:
    """An answer, where it stands in its text (characters), and the likeliest tokens to begin and to end it.

    Attributes:
        starts, ends: (place in the sequence of tokens, probability), the likeliest first
    """

    question: str
    text: str
    output: str
    span: tuple[int, int]
    starts: tuple[tuple[int, float], ...]
    ends: tuple[tuple[int, float], ...]


@dataclass(frozen=True, eq=False)
class Classified:
    """A class of an image. pixels: uint8 [channels, height, width], as the model reads them."""

    probabilities: Mapping[str, float]
    pixels: Tensor

    @property
    def output(self) -> str:
        return next(iter(self.probabilities))


@dataclass(frozen=True, eq=False)
class Heard:
    """What was heard.

    Attributes:
        output: by CTC
        written: by the decoder; None where there is none
        features: log-mel [frames, bands], as the model reads them
        seconds: of the whole sound
        symbols: (frame of the memory, symbol, probability) of what CTC heard, in order
    """

    output: str
    written: str | None
    features: Tensor
    seconds: float
    symbols: tuple[tuple[int, str, float], ...]


Result = Written | Answered | Classified | Heard


@dataclass(frozen=True, eq=False)
class View:
    """Everything that the terminal, the page and the JSON show."""

    application: str
    run: str
    checkpoint: str
    origin: str
    result: Result
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = field(default=())

    def part(self, key: str) -> Part | None:
        return next((one for one in self.parts if one.key == key), None)

    @property
    def row_sum_error(self) -> float:
        return max(part.row_sum_error for part in self.parts)

    def opening(self, layer: int | None = None) -> tuple[Part, int]:
        """Part and layer that say most: the sharpest layer of an alignment; without one, the last layer.

        Args:
            layer: the one that is asked for, of the first part that has it
        """
        part = self.part("cross") or self.parts[0]
        if layer is not None:
            return (part if layer < part.layers else next(p for p in self.parts if p.layers > layer)), layer
        return part, part.sharpest if part.key == "cross" else part.layers - 1
