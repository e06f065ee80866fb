"""Runs a model while observers watch its heads, and sums up what each head does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from headwise.cli.classify import SINGLE, Verdict, classify
from headwise.cli.look import is_punctuation
from headwise.cli.runs.observers import Apart, Even, Same, Visible
from headwise.cli.runs.view import CELLS, Axis, Facts, Part, Strongest
from headwise.observers import (
    Distance,
    Entropy,
    Map,
    Mass,
    MaxWeight,
    Observations,
    Observer,
    Offset,
    TopKeys,
)
from headwise.recorder import Recording, observe

CLASSES = ("first", "separator", "punctuation")
TOP = 8


@dataclass(frozen=True, eq=False)
class Watch:
    """One use of attention in a model.

    Args:
        layers: pattern of the names of its attention modules
        queries, keys: one and the same axis in self-attention
        ids: int64 [length], of a text that attends to itself
    """

    key: str
    title: str
    about: str
    layers: str
    queries: Axis
    keys: Axis
    ids: Tensor | None = None

    @property
    def near(self) -> dict[int, str | None]:
        """Offsets that count as near, and the kind that each is by itself."""
        if self.queries is not self.keys:
            return {}
        if self.keys.kind == "patches":
            columns = self.keys.grid[1]
            return {0: "itself", **dict.fromkeys((-1, 1, -columns, columns), None)}
        return {-2: None, -1: "previous", 0: "itself", 1: "next", 2: None}

    def beside(self, offset: int) -> Tensor:
        """bool [queries]: has a query an ordinary key at this offset?"""
        special, count = torch.tensor(self.keys.special), len(self.keys.labels)
        at = torch.arange(count) + offset
        inside = (at >= 0) & (at < count)
        found = inside & ~special[at.clamp(0, count - 1)]
        columns = self.keys.grid[1]
        if self.keys.kind == "patches" and offset in (-1, 1) and columns > 1:  # not around the edge
            row = (torch.arange(count) - 1).div(columns, rounding_mode="floor")
            found &= (at - 1).div(columns, rounding_mode="floor") == row
        return found

    @property
    def shares(self) -> dict[str, Observer]:
        """What is averaged into shares of attention, by kind or offset."""
        found: dict[str, Observer] = {f"offset{offset}": Offset(offset) for offset in self.near}
        if self.ids is not None:
            found["same"] = Same(self.ids)
        return {**found, "classes": Mass(torch.tensor(_classes(self.keys)), classes=CLASSES)}

    def observers(self) -> list[Observer]:
        found: list[Observer] = [Map(CELLS), Entropy(), MaxWeight(), TopKeys(TOP), Visible()]
        if self.queries is self.keys:
            found.append(Apart(self.keys.grid) if self.keys.kind == "patches" else Distance())
        for one in self.shares.values():
            found += [one, Even(one)]
        return found


def watch(model: nn.Module, watches: Sequence[Watch], run: Callable[[], Any]) -> tuple[list[Part], Any]:
    """Call `run`, which runs the model on one input, and say what the heads did; and what it returned."""
    with ExitStack() as stack, torch.no_grad():
        seen = [stack.enter_context(observe(model, *one.observers(), layers=[one.layers])) for one in watches]
        returned = run()
    return [_part(one, recording) for one, recording in zip(watches, seen, strict=True)], returned


def _part(watch: Watch, recording: Recording) -> Part:
    calls = [recording[name] for name in recording]
    facts = tuple(tuple(_facts(watch, layer, found)) for layer, found in enumerate(calls))
    heads = torch.stack([found["map"][0].float() for found in calls])  # [layers, heads, queries, keys]
    maps = torch.cat((heads, heads.double().mean(1, keepdim=True).float()), 1)
    error = max(float(found.row_sum_error) for found in calls)
    return Part(watch.key, watch.title, watch.about, watch.queries, watch.keys, facts, maps, error)


def _facts(watch: Watch, layer: int, found: Observations) -> list[Facts]:
    queries = ~torch.tensor(watch.queries.special)
    if not bool(queries.any()):
        queries = torch.ones_like(queries)
    most = float(found["visible"][0].clamp(min=1).log2()[:, queries].mean())
    apart = found.get("apart") if "apart" in found else found.get("distance")
    made = []
    for head in range(found["entropy"].shape[1]):
        shares = _shares(watch, {name: found[one][0, head] for name, one in watch.shares.items()}, queries)
        even = _shares(
            watch, {name: found[Even(one)][0, head] for name, one in watch.shares.items()}, queries
        )
        shares = {kind: None if not even[kind] else share for kind, share in shares.items()}
        even = {kind: share or None for kind, share in even.items()}
        entropy = float(found["entropy"][0, head, queries].mean()) / math.log(2)
        evenness = min(entropy / most, 1.0) if most else 0.0
        largest = float(found["max_weight"].value[0, head, queries].mean())
        verdict = classify(shares, even, evenness)
        if verdict.kind == "mixed" and round(largest, 2) >= SINGLE:
            verdict = Verdict("single", None, also=verdict.also)
        made.append(
            Facts(
                layer=layer,
                head=head,
                verdict=replace(verdict, unit=watch.keys.unit),
                shares=shares,
                even=even,
                entropy=entropy,
                most=most,
                evenness=evenness,
                distance=None if apart is None else float(apart[0, head, queries].mean()),
                largest=largest,
                strongest=_strongest(watch, found, head, queries),
            )
        )
    return made


def _shares(watch: Watch, rows: Mapping[str, Tensor], queries: Tensor) -> dict[str, float | None]:
    """Share of each kind of key, averaged over the queries that have one."""
    found: dict[str, float | None] = {}
    near = torch.zeros(len(queries))
    for offset, kind in watch.near.items():
        beside = watch.beside(offset)
        near += rows[f"offset{offset}"] * beside
        if kind is not None:
            found[kind] = _mean(rows[f"offset{offset}"], queries & beside)
    if watch.near:
        found["nearby"] = _mean(near, queries)
    if watch.ids is not None:
        _, number, counts = watch.ids.unique(return_inverse=True, return_counts=True)
        copies = counts[number] > 1
        found["same"] = _mean(rows["same"], queries & copies)
    classes = _classes(watch.keys)
    for place, name in enumerate(CLASSES):
        found[name] = _mean(rows["classes"][:, place], queries) if place in classes else None
    return found


def _mean(values: Tensor, chosen: Tensor) -> float | None:
    return float(values[chosen].mean()) if bool(chosen.any()) else None


def _strongest(watch: Watch, found: Observations, head: int, queries: Tensor) -> Strongest:
    """The heaviest pair of tokens that aren't special; of any, where there is none."""
    keys, weights = found["top_keys"].indices[0, head], found["top_keys"].weights[0, head]
    special = torch.tensor(watch.keys.special)
    there = (keys >= 0) & queries[:, None]
    ordinary = there & ~special[keys.clamp(min=0)]
    chosen = ordinary if bool(ordinary.any()) else there
    query, place = divmod(int(weights.masked_fill(~chosen, -1.0).argmax()), keys.shape[1])
    return Strongest(query, int(keys[query, place]), float(weights[query, place]))


def _classes(axis: Axis) -> list[int]:
    """First token 0, special ones further on 1, punctuation 2, everything else -1."""
    found = []
    for place, (label, special) in enumerate(zip(axis.labels, axis.special, strict=True)):
        if place == 0:
            found.append(0)
        elif special:
            found.append(1)
        else:
            found.append(2 if axis.kind == "text" and is_punctuation(label.strip()) else -1)
    return found
