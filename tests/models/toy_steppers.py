"""Models small enough to look at every output that they could write."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

EOS = 0


class TreeStepper:
    """Each input has its own table: the probabilities of what follows each possible beginning.

    tables: log-probabilities [n, nodes, V]. The empty beginning is node 0; after node p, token t leads to
    node p V + t + 1.
    """

    eos_id = EOS

    def __init__(self, tables: Tensor, limits: list[int]) -> None:
        self.tables = tables
        self.first = torch.full((len(limits),), -1)
        self._limits = torch.tensor(limits)
        self.present = torch.arange(len(limits))  # inputs that go on
        self.input = self.present.clone()  # of each row
        self.node = torch.full((len(limits),), -1)
        self.rows_seen: list[int] = []

    def limits(self, max_extra: int) -> Tensor:
        return self._limits

    def step(self, tokens: Tensor) -> Tensor:
        self.rows_seen.append(len(tokens))
        vocabulary = self.tables.shape[-1]
        self.node = torch.where(self.node < 0, 0, self.node * vocabulary + tokens + 1)
        return self.tables[self.input, self.node]

    def keep(self, rows: Tensor, inputs: Tensor | None) -> None:
        if inputs is not None:
            self.present = self.present[inputs]
        self.input, self.node = self.input[rows], self.node[rows]
        width = len(rows) // max(len(self.present), 1)
        assert torch.equal(self.input, self.present.repeat_interleave(width)), "rows of an input together"


def random_tables(seed: int, n: int, vocabulary: int, longest: int, *, sharp: float = 2.0) -> Tensor:
    nodes = sum(vocabulary**depth for depth in range(longest + 1))
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(n, nodes, vocabulary, generator=generator, dtype=torch.float64)
    return (sharp * scores).log_softmax(-1)


@dataclass(frozen=True)
class Output:
    tokens: tuple[int, ...]
    log_probability: float
    finished: bool

    def score(self, alpha: float) -> float:
        return self.log_probability / ((5 + len(self.tokens) + self.finished) / 6) ** alpha


def log_probability(table: Tensor, tokens: tuple[int, ...]) -> float:
    """Of these tokens (the end among them, if it is), in Python's own arithmetic."""
    node, total = 0, 0.0
    for token in tokens:
        total += float(table[node, token])
        node = node * table.shape[-1] + token + 1
    return total


def every_output(table: Tensor, limit: int) -> list[Output]:
    """All that end within `limit` tokens, the end counted, and all of `limit` tokens that don't."""
    others = range(1, table.shape[-1])
    ended = [
        Output(tokens, log_probability(table, (*tokens, EOS)), True)
        for length in range(limit)
        for tokens in itertools.product(others, repeat=length)
    ]
    cut = itertools.product(others, repeat=limit)
    return ended + [Output(tokens, log_probability(table, tokens), False) for tokens in cut]


def ranked(outputs: list[Output], alpha: float) -> list[Output]:
    return sorted(outputs, key=lambda one: (not one.finished, -one.score(alpha)))


def beam_by_hand(
    table: Tensor, limit: int, beam: int, alpha: float, *, early_stop: bool = True
) -> list[Output]:
    """The search that `beam_search` describes, written as plainly as can be."""
    alive: list[tuple[int, ...]] = [()]
    done: list[Output] = []
    for _ in range(limit):
        longer = [(*one, token) for one in alive for token in range(table.shape[-1])]
        longer.sort(key=lambda tokens: -log_probability(table, tokens))
        ends = [tokens for tokens in longer[:beam] if tokens[-1] == EOS]
        done += [Output(tokens[:-1], log_probability(table, tokens), True) for tokens in ends]
        alive = [tokens for tokens in longer if tokens[-1] != EOS][:beam]
        done = ranked(done, alpha)[:beam]
        if len(done) == beam and (early_stop or _beaten(table, alive, done, limit, alpha)):
            return done
    rest = [Output(tokens, log_probability(table, tokens), False) for tokens in alive]
    return (done + ranked(rest, 0.0))[:beam]


def _beaten(
    table: Tensor, alive: list[tuple[int, ...]], done: list[Output], limit: int, alpha: float
) -> bool:
    best = max((log_probability(table, tokens) for tokens in alive), default=-math.inf)
    return best / ((5 + limit) / 6) ** alpha <= done[-1].score(alpha)
