"""What each head of a trained model does on held-out inputs: figures of the observers, and words for them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

import headwise as hw
from headwise.observers import Observations

KINDS = ("encoder self-attention", "decoder self-attention", "cross-attention", "copying")
ACROSS = KINDS[2:]  # from what is written to what is read
OBSERVERS = (
    hw.Entropy(),
    hw.Distance(),
    hw.MaxWeight(),
    hw.KeyMass(),
    hw.Offset(-1),
    hw.Offset(0),
    hw.Offset(1),
    hw.Mass([0], called="first"),
    hw.Mass([-1], called="last"),
)
MOSTLY = 0.5
EVENLY = 0.8
IN_ORDER = 0.8


@dataclass(frozen=True)
class Head:
    """Means over all queries of all inputs.

    Attributes:
        entropy: in nats
        evenness: entropy divided by the largest that it could be; 1: all keys alike
        distance: in positions; of self-attention alone, as are previous, own and next
        previous, own, following: what a query gives to the token before it, to itself, to the next, where
            there is one
        first, last: what it gives to the first and the last key
        surest: its largest weight
        order: of those from output to input: the correlation of a query's place with that of its heaviest key
    """

    kind: str
    layer: int
    head: int
    entropy: float
    evenness: float
    distance: float
    previous: float
    own: float
    following: float
    first: float
    last: float
    surest: float
    order: float

    @property
    def name(self) -> str:
        return f"{self.layer}.{self.head}"


@dataclass
class _Sums:
    """Of one layer, by head."""

    sums: dict[str, Tensor] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, values: Tensor) -> None:
        """Values [heads, n]."""
        if values.shape[1]:
            self.sums[name] = self.sums.get(name, 0) + values.double().sum(1)
            self.counts[name] += values.shape[1]

    def mean(self, name: str, head: int) -> float:
        return float(self.sums[name][head]) / self.counts[name] if self.counts[name] else 0.0


def kind_of(name: str) -> str:
    """Which of the three uses of attention a module's name stands for, or the head that copies."""
    if "copy_attention" in name:
        return KINDS[3]
    if "cross_attention" in name:
        return KINDS[2]
    return KINDS[1] if re.search(r"(^|\.)decoder\.", name) else KINDS[0]


def layer_of(name: str) -> int:
    """The number of a module's layer."""
    numbers = re.findall(r"layers\.(\d+)\.", name)
    return int(numbers[-1]) if numbers else 0


@torch.no_grad()
def observe(examples: Any, numbers: Iterable[int]) -> list[Head]:
    """All heads of a model, over its run on these examples, each read alone (so nothing is padding).

    Args:
        examples: see `benchmarks.results.examples`
    """
    layers: dict[tuple[str, int], _Sums] = {}
    for number in numbers:
        with hw.observe(examples.model, *OBSERVERS) as seen:
            examples.run(number)
        for name, one in seen.items():
            key = (kind_of(name), layer_of(name))
            _add(layers.setdefault(key, _Sums()), key[0], one)
    order = sorted(layers, key=lambda key: (KINDS.index(key[0]), key[1]))
    return [head for kind, layer in order for head in _heads(kind, layer, layers[kind, layer])]


def _add(sums: _Sums, kind: str, seen: Observations) -> None:
    entropy = seen["entropy"][0]  # [heads, queries]
    queries, keys = entropy.shape[1], seen["key_mass"].shape[-1]
    visible = torch.arange(1, queries + 1) if kind == KINDS[1] else torch.full((queries,), keys)
    sums.add("entropy", entropy)
    several = visible > 1
    sums.add("possible", visible[several].double().log().expand(entropy.shape[0], -1))
    sums.add("found", entropy[:, several])
    sums.add("surest", seen["max_weight"].value[0])
    sums.add("first", seen["mass[first]"][0])
    sums.add("last", seen["mass[last]"][0])
    if kind in ACROSS:
        sums.add("order", _order(seen["max_weight"].key[0])[:, None] if queries > 2 else entropy[:, :0])
        return
    sums.add("distance", seen["distance"][0])
    sums.add("previous", seen["offset[-1]"][0][:, 1:])
    sums.add("own", seen["offset[0]"][0])
    sums.add("following", seen["offset[1]"][0][:, :-1])


def _order(keys: Tensor) -> Tensor:
    """Correlation of 0, 1, 2, ... with each row of keys [heads, n]; 0 where a row is constant."""
    places = torch.arange(keys.shape[1], dtype=torch.float64)
    a = places - places.mean()
    b = keys.double() - keys.double().mean(1, keepdim=True)
    scale = (a.square().sum() * b.square().sum(1)).sqrt()
    return torch.where(scale > 0, (a * b).sum(1) / scale.clamp(min=1e-12), 0.0)


def _heads(kind: str, layer: int, sums: _Sums) -> list[Head]:
    found = []
    for head in range(len(sums.sums["entropy"])):
        possible = sums.mean("possible", head)
        figures = {
            name: sums.mean(name, head)
            for name in (
                "entropy",
                "distance",
                "previous",
                "own",
                "following",
                "first",
                "last",
                "surest",
                "order",
            )
        }
        evenness = sums.mean("found", head) / possible if possible else 0.0
        found.append(Head(kind, layer, head, evenness=evenness, **figures))
    return found


def words(head: Head, places: Mapping[str, str]) -> str:
    """What a head does, by the first of these rules that holds:

    - it gives half of its weight or more to one place ("looks at ...")
    - its entropy is 0.8 of the largest possible or more ("spreads evenly")
    - from output to input: its heaviest keys follow the order of the queries, with a correlation of 0.8
      or more
    - its largest weight is half or more on average ("picks one")
    - none ("a mixture")

    Args:
        places: figures that are shares of the weight, and what stands there, such as {"last": "[EOS]"}
    """
    name = max(places, key=lambda one: float(getattr(head, one)))
    if getattr(head, name) >= MOSTLY:
        return f"looks at {places[name]}"
    if head.evenness >= EVENLY:
        return "spreads evenly"
    if head.kind in ACROSS and head.order >= IN_ORDER:
        return "follows the order of the input"
    return "picks one, wherever it stands" if head.surest >= MOSTLY else "a mixture"


def places_of(application: str, kind: str) -> dict[str, str]:
    """What `words` looks at, and how it is called."""
    found = {"previous": "the one before", "own": "itself", "following": "the next"}
    if kind == KINDS[1]:  # what is written; the next can't be seen, and the last one by itself alone
        return {"previous": found["previous"], "own": found["own"], "first": "the beginning, [BOS]"}
    ends = {
        "vision": {"first": "the class token"},
        "speech": {"first": "the first frame", "last": "the last frame"},
        "question-answering": {"first": "the beginning, [BOS]", "last": "the end, [EOS]"},
    }.get(application, {"first": "the first token", "last": "the end of the input, [EOS]"})
    if kind in ACROSS:
        return ends
    if application == "vision":
        found |= {"previous": "the patch to the left", "following": "the patch to the right"}
    return found | ends


def extremes(heads: Sequence[Head], places: Mapping[str, str]) -> list[tuple[str, str, Head]]:
    """For one kind of attention: (what, value, head) of the heads that stand out."""
    shown: list[tuple[str, str, Head]] = []

    def add(what: str, name: str, text: str, *, least: bool = False) -> None:
        values = [getattr(head, name) for head in heads]
        chosen = heads[values.index(min(values) if least else max(values))]
        shown.append((what, text.format(getattr(chosen, name)), chosen))

    add("narrowest", "entropy", "entropy {:.2f} nats", least=True)
    add("broadest", "entropy", "entropy {:.2f} nats")
    if heads[0].kind in ACROSS:
        add("most in the order of the input", "order", "correlation {:.2f}")
    else:
        add("nearest", "distance", "{:.1f} positions away on average", least=True)
        add("farthest", "distance", "{:.1f} positions away on average")
    for name, place in places.items():
        add(f"most on {place}", name, "{:.2f} of its weight")
    return shown


def plain(heads: Sequence[Head]) -> list[dict[str, Any]]:
    """For JSON."""
    return [
        {
            name: round(value, 4) if isinstance(value, float) and math.isfinite(value) else value
            for name, value in asdict(one).items()
        }
        for one in heads
    ]
