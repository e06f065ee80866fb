"""The recorder: what every head of a model does, while the model runs as ever.

with observe(model, Entropy(), TopKeys(4)) as seen:
    model(x)
seen["encoder.layers.3"].entropy
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from types import TracebackType
from typing import Any, Literal, NamedTuple, Protocol, Self, overload, runtime_checkable

import torch
from torch import Tensor, nn

from headwise.kernels.measure import measure
from headwise.kernels.problem import Problem
from headwise.kernels.recomputed import in_backward
from headwise.observers.base import Observer, require_observers
from headwise.observers.observations import Observations


class Call(NamedTuple):
    """One computation of attention: the name of its module, and what was observed."""

    name: str
    observations: Observations


@runtime_checkable
class _Attention(Protocol):
    """A module that calls its hooks after each computation: ours, and the drop-in for torch's."""

    attention_hooks: list[Callable[[Problem, Tensor], object]]


@dataclass(eq=False)
class _Layer:
    """One attention module: all names it goes by, and the calls that are kept, with their order."""

    module: weakref.ref[Any] | None  # an _Attention; weak, so that results don't keep a model alive
    names: list[str]
    forward: int = -1  # the forward pass of the model that `calls` belong to
    calls: list[tuple[int, Observations]] = field(default_factory=list)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "module": None}


class _Hook:
    """A hook that stays behind when its module is copied or saved: in the copy it does nothing."""

    def __init__(self, call: Callable[..., None] | None = None) -> None:
        self.call = call

    def __call__(self, *args: Any) -> None:
        if self.call is not None:
            self.call(*args)

    def __reduce__(self) -> tuple[type[_Hook], tuple[()]]:
        return _Hook, ()


class Recording(Mapping[str, Observations]):
    """What was observed: one entry per attention layer that ran, in the order of the first calls.

        seen["encoder.layers.3.attention"]    the last call of that layer
        seen["encoder.layers.3"]              the same, where it holds one attention layer only
        seen.calls("encoder.layers.3")        all calls that are kept, oldest first
        seen.calls()                          of all layers: `Call(name, observations)` in call order
        seen.layers                           names of all layers that are watched

    A module that sits at several places of a model (shared weights) is one layer with several names:
    each of them gives all of its calls.

    Afterwards it holds results alone: it doesn't keep the model alive, and is copied and saved without it.
    """

    def __init__(
        self,
        model: nn.Module,
        observers: tuple[Observer, ...],
        layers: Iterable[str | int] | None,
        keep: Literal["last", "all"],
        detach: bool,
    ) -> None:
        self._alive: nn.Module | None = model  # until the block ends
        self._model: weakref.ref[nn.Module] | None = weakref.ref(model)
        self._observers = observers
        self._keep = keep
        self._detach = detach
        self._layers = _choose(find(model), layers)
        self._count = 0
        self._forward = 0  # number of the model's forward passes so far
        self._depth = 0  # above 0 inside of one
        self._undo: list[Callable[[], object]] = []

    # While the model runs

    def __enter__(self) -> Self:
        if self._undo:
            raise RuntimeError("this observe(...) is already in use: make another one for a nested block")
        model = None if self._model is None else self._model()
        if model is None:
            raise RuntimeError("the model of this observe(...) is gone: make another one for another model")
        self._alive = model
        try:
            for layer in self._layers:
                self._watch(layer)
            before = model.register_forward_pre_hook(_Hook(self._begin))
            self._undo.append(before.remove)
            after = model.register_forward_hook(_Hook(self._end), always_call=True)
            self._undo.append(after.remove)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._depth = 0
        self._alive = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_alive": None, "_model": None, "_undo": []}

    def _watch(self, layer: _Layer) -> None:
        module = None if layer.module is None else layer.module()
        if module is None:
            raise RuntimeError(f"{layer.names[0]!r} is no part of the model any more: observe(...) it anew")
        kernel = getattr(module, "kernel", "auto")
        hook = _Hook(lambda problem, lse: self._note(layer, problem, lse, kernel))
        hooks = module.attention_hooks
        hooks.append(hook)
        self._undo.append(lambda: _remove(hooks, hook))

    def _begin(self, model: nn.Module, args: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            self._forward += 1

    def _end(self, model: nn.Module, args: Any, output: Any) -> None:
        self._depth = max(0, self._depth - 1)

    def _note(self, layer: _Layer, problem: Problem, lse: Tensor, kernel: str) -> None:
        if in_backward():  # gradient checkpointing computes a call again, which is no new one
            return
        if self._detach:
            with torch.no_grad():
                seen = measure(problem, self._observers, lse=lse, kernel=kernel).detach()
        else:
            seen = measure(problem, self._observers, lse=lse, kernel=kernel)
        # "last" is the last forward pass: a module that sits in twelve places runs twelve times in one.
        same_pass = self._depth > 0 and layer.forward == self._forward
        if self._keep == "last" and not same_pass:
            layer.calls.clear()
        layer.forward = self._forward if self._depth else -1
        layer.calls.append((self._count, seen))
        self._count += 1

    # Afterwards

    @property
    def layers(self) -> list[str]:
        """Names of the layers that are watched, whether they ran or not, in the order of the model."""
        return [layer.names[0] for layer in self._layers]

    def __getitem__(self, name: str) -> Observations:
        return self.calls(name)[-1]

    @overload
    def calls(self, name: None = None) -> list[Call]: ...
    @overload
    def calls(self, name: str) -> list[Observations]: ...
    def calls(self, name: str | None = None) -> list[Call] | list[Observations]:
        """All calls that are kept, oldest first: the observations of one layer, or `Call`s of all.

        Raises:
            KeyError: no such layer (with the nearest names), several, or one that has not run.
        """
        if name is None:
            every = [(n, Call(layer.names[0], seen)) for layer in self._layers for n, seen in layer.calls]
            return [call for _, call in sorted(every, key=lambda pair: pair[0])]
        layer = self._find(name)
        if not layer.calls:
            raise KeyError(f"{layer.names[0]!r} is watched, but has not run since observe(...) began")
        return [seen for _, seen in layer.calls]

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and bool(self._find(name).calls)
        except KeyError:
            return False

    def __iter__(self) -> Iterator[str]:
        ran = [layer for layer in self._layers if layer.calls]
        return (layer.names[0] for layer in sorted(ran, key=lambda layer: layer.calls[0][0]))

    def __len__(self) -> int:
        return sum(bool(layer.calls) for layer in self._layers)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        ran = "".join(f"\n  {name!r}: {self[name]!r}" for name in self)
        return f"Recording of {len(self)} of {len(self._layers)} layers{ran}"

    def _find(self, name: str) -> _Layer:
        exact = [layer for layer in self._layers if name in layer.names]
        inside = exact or [layer for layer in self._layers if any(_within(n, name) for n in layer.names)]
        if len(inside) == 1:
            return inside[0]
        if inside:
            raise KeyError(f"{name!r} holds several layers, ask for one: {_listed(inside)}")
        known = [n for layer in self._layers for n in layer.names]
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        hint = (
            f"; did you mean {' or '.join(map(repr, near))}?"
            if near
            else f"; watched: {_listed(self._layers)}"
        )
        raise KeyError(f"no attention layer {name!r} is watched{hint}")


def observe(
    model: nn.Module,
    *observers: Observer,
    layers: Iterable[str | int] | None = None,
    keep: Literal["last", "all"] = "last",
    detach: bool = True,
) -> Recording:
    """Record what every head of a model does: `with observe(model, Entropy()) as seen: model(x)`.

    Each `MultiHeadAttention` in the model, at any depth, is observed on the problem that it really
    solves (after rotary positions, with its caches, masks and biases). The output of the model stays
    the same, bit by bit, in training and evaluation, with gradients or without. Each call of a layer
    costs one more pass over its rows, and keeps nothing but the results.

    Args:
        observers: what to record, e.g. `Entropy(), TopKeys(4)`.
        layers: which attention layers: names ("encoder.layers.3", of the layer or of a module around
            it), patterns ("decoder.*"), or numbers in the order of the model (-1: the last). None: all.
        keep: "last" keeps, for each layer, the calls of the last forward pass of `model` in which it ran
            (one, unless its weights are shared or it runs in a loop); for parts of the model that are
            called by themselves, the last call. "all" keeps every call since the block began.
        detach: False keeps the results in the autograd graph, for losses on them.

    Raises:
        TypeError: not a module; no observers, or something else among them.
        ValueError: two observers of one name; a model without a `MultiHeadAttention`; `layers` that match
            none; another `keep`.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"observe takes a torch.nn.Module first, got {type(model).__name__}")
    if not observers:
        raise TypeError("observe needs an observer or more after the model, such as Entropy()")
    require_observers(observers)
    if keep not in ("last", "all"):
        raise ValueError(f"keep must be 'last' or 'all', got {keep!r}")
    return Recording(model, observers, layers, keep, detach)


def find(model: nn.Module) -> list[_Layer]:
    """Every attention module of a model, once, with all of its names."""
    layers: dict[int, _Layer] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, _Attention):
            layers.setdefault(id(module), _Layer(weakref.ref(module), [])).names.append(name)
    if not layers:
        raise ValueError(_none_found(model))
    return list(layers.values())


def _none_found(model: nn.Module) -> str:
    there = Counter(
        "torch.nn.MultiheadAttention" if type(module) is nn.MultiheadAttention else type(module).__name__
        for module in model.modules()
        if "attention" in type(module).__name__.lower()
    )
    message = f"{type(model).__name__} holds no headwise.MultiHeadAttention to observe"
    if not there:
        return f"{message}, and no other module with 'attention' in its class name"
    listed = ", ".join(f"{count} x {name}" for name, count in there.items())
    fix = "bring it over with a converter of headwise.interop"
    if "torch.nn.MultiheadAttention" in there:
        fix = "swap them with headwise.interop.torch.replace_torch_attention(model)"
    return f"{message}. It holds {listed}: {fix}, then observe"


def _choose(found: list[_Layer], wanted: Iterable[str | int] | None) -> list[_Layer]:
    if wanted is None:
        return found
    chosen: set[int] = set()
    for want in [wanted] if isinstance(wanted, str | int) else wanted:
        if isinstance(want, bool) or not isinstance(want, str | int):
            raise TypeError(f"layers takes names and numbers, got {want!r}")
        if isinstance(want, int):
            if not -len(found) <= want < len(found):
                raise ValueError(
                    f"layers asks for number {want}, but there are {len(found)} attention layers"
                )
            chosen.add(want % len(found))
            continue
        matches = {place for place, layer in enumerate(found) if any(_matches(n, want) for n in layer.names)}
        if not matches:
            raise ValueError(f"layers: {want!r} matches none of {_listed(found)}")
        chosen |= matches
    if not chosen:
        raise ValueError("layers is empty: name one layer or more, or leave it out for all")
    return [layer for place, layer in enumerate(found) if place in chosen]


def _matches(name: str, wanted: str) -> bool:
    return name == wanted or _within(name, wanted) or fnmatchcase(name, wanted)


def _within(name: str, parent: str) -> bool:
    return not parent or name.startswith(f"{parent}.")


def _listed(layers: list[_Layer]) -> str:
    names = [repr(layer.names[0]) for layer in layers]
    return ", ".join(names if len(names) <= 12 else [*names[:10], f"... ({len(names)} in all)"])


def _remove(hooks: list[Any], hook: object) -> None:
    for place, other in enumerate(hooks):
        if other is hook:
            del hooks[place]
            return
