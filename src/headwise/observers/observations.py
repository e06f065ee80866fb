"""What was observed: results by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from headwise.observers.base import Observer


class Observations(Mapping[str, Any]):
    """The results of one attention call, in the order in which they were asked for.

        seen.entropy            by name
        seen["offset[-1]"]      by name with its parameters
        seen[Offset(-1)]        by an observer like the one that was asked for
        seen.offset             by kind, where exactly one of the kind is there

    A result is a tensor or a NamedTuple of tensors.

    Attributes:
        row_sum_error: self-check, a scalar tensor: the largest |sum of a row of weights - 1| (a sink's
            share counted in) over the rows that were looked at and may attend to something (where the
            kernel "native" observes in its own pass, over a few of them, from first to last). Infinite
            where a kernel and the scores disagree about which rows those are. A few 1e-6 in float32.
        row_sum_of: "kernel": the sums use the log-sum-exp that the kernel returned, and so check the
            kernel. "scores": no kernel had run; they use the one computed from the scores.
    """

    def __init__(
        self, results: Mapping[str, Any], *, row_sum_error: Tensor | None = None, row_sum_of: str = "scores"
    ) -> None:
        self._results = dict(results)
        self.row_sum_error = torch.zeros(()) if row_sum_error is None else row_sum_error
        self.row_sum_of = row_sum_of

    def __getitem__(self, key: str | Observer) -> Any:
        name = key.name if isinstance(key, Observer) else key
        found = self._find(name)
        if found is None:
            raise KeyError(self._unknown(name))
        return self._results[found]

    def __getattr__(self, name: str) -> Any:
        # Only called where no attribute of that name exists; `_results` itself is missing in copying.
        if name.startswith("_"):
            raise AttributeError(name)
        found = self._find(name)
        if found is None:
            raise AttributeError(self._unknown(name))
        return self._results[found]

    def __contains__(self, key: object) -> bool:
        return self._find(key.name if isinstance(key, Observer) else key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __eq__(self, other: object) -> bool:
        return self is other  # tensors have no one answer to ==

    __hash__ = object.__hash__

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in self._results if name.isidentifier())]

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {_shape(result)}" for name, result in self._results.items())
        return f"Observations({parts})"

    def map_tensors(self, change: Callable[[Tensor], Tensor]) -> Observations:
        """The same observations with every tensor changed."""
        changed = {name: map_tensors(result, change) for name, result in self._results.items()}
        return Observations(changed, row_sum_error=change(self.row_sum_error), row_sum_of=self.row_sum_of)

    def to(self, device: torch.device | str) -> Observations:
        return self.map_tensors(lambda tensor: tensor.to(device))

    def cpu(self) -> Observations:
        return self.to("cpu")

    def detach(self) -> Observations:
        return self.map_tensors(Tensor.detach)

    def _find(self, name: object) -> str | None:
        if not isinstance(name, str):
            return None
        if name in self._results:
            return name
        of_kind = [known for known in self._results if kind_of(known) == name]
        return of_kind[0] if len(of_kind) == 1 else None

    def _unknown(self, name: object) -> str:
        of_kind = [known for known in self._results if kind_of(known) == name]
        if of_kind:
            return f"{name!r} could be any of {', '.join(of_kind)}: ask for one as seen[{of_kind[0]!r}]"
        there = ", ".join(self._results) or "nothing"
        return f"no observation {name!r}; observed: {there}"


def kind_of(name: str) -> str:
    """The part of a name before its parameters: "offset[-1]" is an "offset"."""
    return name.partition("[")[0]


def map_tensors(result: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Change a tensor, or each tensor of a (Named)tuple of them."""
    if isinstance(result, Tensor):
        return change(result)
    if isinstance(result, tuple):
        changed = [map_tensors(part, change) for part in result]
        return type(result)(*changed) if hasattr(result, "_fields") else tuple(changed)
    return result


def _shape(result: Any) -> str:
    if isinstance(result, Tensor):
        return str(list(result.shape))
    if isinstance(result, tuple):
        names = getattr(result, "_fields", range(len(result)))
        return (
            "(" + ", ".join(f"{name} {_shape(part)}" for name, part in zip(names, result, strict=True)) + ")"
        )
    return type(result).__name__
