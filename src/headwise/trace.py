"""What happens to the shapes: one row for each step of attention, taken from a real run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from headwise.kernels.problem import Problem
from headwise.multihead import MultiHeadAttention

Shape = tuple[int, ...]
SOFTMAX_FLOPS = 5  # per score: compare for the maximum, subtract, exponential, add up, divide
NOTE = "(bytes in brackets: what it would take; linear-memory kernels never hold it, and totals leave it out)"


@dataclass(frozen=True)
class Step:
    """One step of attention.

    Attributes:
        name: what happens.
        formula: how, in the paper's letters.
        shape: of the result.
        parameters: how many numbers are learned in it.
        flops: by the formulas of `trace`.
        bytes: size of the result.
        held: False for scores, mask and weights, which kernels of linear memory never hold; `bytes` is
            then what they would take.
    """

    name: str
    formula: str
    shape: Shape
    parameters: int = 0
    flops: int = 0
    bytes: int = 0
    held: bool = True


@dataclass(frozen=True)
class Section:
    """The steps of one call of one attention module. `name` is its path in the model ("" for the model)."""

    name: str
    steps: tuple[Step, ...]

    @property
    def total(self) -> Step:
        """Parameters, FLOPs and bytes (of what is held, views too) of all steps; the output's shape."""
        return Step(
            "total",
            "",
            self.steps[-1].shape,
            sum(step.parameters for step in self.steps),
            sum(step.flops for step in self.steps),
            sum(step.bytes for step in self.steps if step.held),
        )


@dataclass(frozen=True)
class Trace:
    """A table of steps: a section for each call of an attention module, in the order of the run.

    Print it, read `rows`, ask for a step by its name (`found["weights"].shape`), or write `to_dict()`
    as JSON.
    """

    sections: tuple[Section, ...]

    @property
    def rows(self) -> tuple[Step, ...]:
        """The steps of all sections, one after another."""
        return tuple(step for section in self.sections for step in section.steps)

    def __getitem__(self, name: str) -> Step:
        """The first step of this name.

        Raises:
            KeyError: there is none; the message lists the names.
        """
        for step in self.rows:
            if step.name == name:
                return step
        names = ", ".join(dict.fromkeys(step.name for step in self.rows))
        raise KeyError(f"there is no step {name!r}; there are: {names}")

    def to_dict(self) -> dict[str, Any]:
        """Numbers, strings and lists alone."""
        return {
            "sections": [
                {
                    "name": section.name,
                    "steps": [{**asdict(step), "shape": list(step.shape)} for step in section.steps],
                    "total": {
                        name: getattr(section.total, name) for name in ("parameters", "flops", "bytes")
                    },
                }
                for section in self.sections
            ]
        }

    def __str__(self) -> str:
        head = ("step", "formula", "shape", "parameters", "FLOPs", "bytes")
        lines: list[tuple[str, ...] | str] = []
        for section in self.sections:
            if section.name or len(self.sections) > 1:
                lines += ["", section.name or "(the model itself)"]
            lines += [head, *map(_cells, section.steps), _cells(section.total)]
        cells = [line for line in lines if isinstance(line, tuple)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
        text = [line if isinstance(line, str) else _aligned(line, widths) for line in lines]
        return "\n".join([*text, NOTE]).lstrip("\n")


def trace(module: nn.Module, *inputs: Any, **kwargs: Any) -> Trace:
    """Run `module(*inputs, **kwargs)` once, without gradients, and tell what each step of every
    `MultiHeadAttention` in it made.

    Shapes are those of the tensors that the run made, taken by hooks. The weights are told of, not built.
    FLOPs:

        a projection, [m, n] x [n, k]:     2 m n k   (its bias not counted)
        scores:                            2 d_k     for each pair of query and key, of each head
        softmax:                           5         for each such pair
        heads' outputs:                    2 d_v     for each such pair

    All pairs count, also masked ones (as torch.utils.flop_counter does), since how many a kernel skips
    is its own affair; the mask's row says how many are visible. Norms, rotations, biases, gates'
    products and masks count as 0: a few operations per number.

    A cache among the arguments moves on, as in any call.

    Raises:
        ValueError: no MultiHeadAttention in the module, or none that ran.
    """
    layers = {id(m): (name, m) for name, m in module.named_modules() if isinstance(m, MultiHeadAttention)}
    if not layers:
        raise ValueError(
            f"{type(module).__name__} holds no headwise.MultiHeadAttention, so there is nothing to trace; "
            f"bring its attention over first (headwise.interop.torch.from_torch)."
        )
    sections: list[Section] = []
    with _watching(list(layers.values()), sections), torch.no_grad():
        module(*inputs, **kwargs)
    if not sections:
        raise ValueError("No MultiHeadAttention ran in this call, so there is nothing to trace.")
    return Trace(tuple(sections))


@contextmanager
def _watching(layers: list[tuple[str, MultiHeadAttention]], sections: list[Section]) -> Iterator[None]:
    calls = [_Call(name, layer, sections) for name, layer in layers]
    try:
        for call in calls:
            call.watch()
        yield
    finally:
        for call in calls:
            call.leave()


@dataclass
class _Call:
    """Collects what one module makes, and writes a section whenever it has finished a call."""

    name: str
    layer: MultiHeadAttention
    sections: list[Section]
    inputs: dict[str, Tensor] = field(default_factory=dict)
    products: dict[str, tuple[Shape, Tensor]] = field(default_factory=dict)  # module: input shape, output
    problem: Problem | None = None
    handles: list[Any] = field(default_factory=list)

    def watch(self) -> None:
        layer = self.layer
        self.handles.append(layer.register_forward_pre_hook(self._start, with_kwargs=True))
        for name in ("q_proj", "k_proj", "v_proj", "gate_proj", "out_proj"):
            part = getattr(layer, name)
            if part is not None:
                self.handles.append(part.register_forward_hook(self._keep(name)))
        layer.attention_hooks.append(self._attention)
        self.handles.append(layer.register_forward_hook(self._finish))

    def leave(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.layer.attention_hooks[:] = [h for h in self.layer.attention_hooks if h != self._attention]

    def _start(self, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        named = dict(zip(("x", "memory"), args, strict=False)) | kwargs
        wanted = ("x", "memory", "values")
        self.inputs = {name: named[name] for name in wanted if isinstance(named.get(name), Tensor)}
        self.products, self.problem = {}, None

    def _keep(self, name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
            self.products[name] = (tuple(args[0].shape), output)

        return hook

    def _attention(self, problem: Problem, lse: Tensor) -> None:
        self.problem = problem

    def _finish(self, layer: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if self.problem is not None:
            self.sections.append(Section(self.name, tuple(self._steps(self.problem))))
        self.inputs, self.products, self.problem = {}, {}, None

    def _steps(self, problem: Problem) -> Iterator[Step]:
        layer, frame = self.layer, problem.frame
        for name, tensor in self.inputs.items():
            yield Step("input" if name == "x" else name, name, tuple(tensor.shape), bytes=_bytes(tensor))

        source = "memory" if "memory" in self.inputs else "x"
        yield from self._product("query projection", "Q = x W_q", "q_proj")
        yield from self._product("key projection", f"K = {source} W_k", "k_proj")
        values = "values" if "values" in self.inputs else source
        yield from self._product("value projection", f"V = {values} W_v", "v_proj")

        parts = (("queries", problem.q, layer.q_norm), ("keys", problem.k, layer.k_norm))
        for name, tensor, norm in (*parts, ("values", problem.v, None)):
            how = [f"{tensor.shape[-3]} heads of {tensor.shape[-1]}"]
            how += ["normalised"] if norm is not None else []
            how += ["turned by position"] if layer.rotary is not None and name != "values" else []
            yield Step(
                f"{name} per head",
                ", ".join(how),
                tuple(tensor.shape),
                parameters=_parameters(norm),
                bytes=_bytes(tensor),
            )

        shape = (*frame.batch, frame.heads, frame.q_len, frame.k_len)
        pairs = prod(shape)
        wide = pairs * problem.score_dtype.itemsize
        d_k, d_v = problem.q.shape[-1], problem.v.shape[-1]
        scale = "Q K^T / sqrt(d_k)" if problem.scale == d_k**-0.5 else f"{problem.scale:g} Q K^T"
        scores = (
            scale if problem.softcap is None else f"{problem.softcap:g} tanh({scale} / {problem.softcap:g})"
        )
        yield Step("scores", f"S = {scores}", shape, flops=2 * d_k * pairs, bytes=wide, held=False)
        if problem.bias is not None:
            own = layer.score_bias if isinstance(layer.score_bias, nn.Module) else None
            what = f"S + {type(problem.bias).__name__}"
            yield Step("score bias", what, shape, parameters=_parameters(own), bytes=wide, held=False)
        if problem.mask is not None:
            seen = f"{int(problem.mask.count(frame).sum()):,} of {pairs:,} pairs visible"
            yield Step("mask", f"{problem.mask.describe()}: {seen}", shape, bytes=pairs, held=False)
        sinks = 0 if layer.sinks is None else layer.sinks.numel()
        softmax = "P = softmax(S)" if layer.sinks is None else "P = softmax(S, sink)"
        flops = SOFTMAX_FLOPS * pairs
        yield Step("weights", softmax, shape, parameters=sinks, flops=flops, bytes=wide, held=False)

        heads = (*shape[:-1], d_v)
        size = prod(heads) * problem.v.element_size()
        yield Step("heads' outputs", "head_i = P_i V_i", heads, flops=2 * d_v * pairs, bytes=size)
        yield from self._product("gate", "sigmoid(x W_g + b_g) head_i", "gate_proj")
        joined = self.products["out_proj"][0]
        size = prod(joined) * problem.v.element_size()
        yield Step("concatenation", "Concat(head_1, ..., head_h)", joined, bytes=size)
        yield from self._product("output projection", "Concat(...) W_o", "out_proj")

    def _product(self, name: str, formula: str, module: str) -> Iterator[Step]:
        """The step of one projection; none where it didn't run (keys of a memory that were kept)."""
        if module not in self.products:
            return
        given, made = self.products[module]
        part = getattr(self.layer, module)
        formula = formula if getattr(part, "bias", None) is None or "+ b" in formula else f"{formula} + b"
        flops = 2 * prod(given) * made.shape[-1]  # 2 m n k, where given is [m, n] and made [m, k]
        yield Step(name, formula, tuple(made.shape), _parameters(part), flops, _bytes(made))


def _parameters(part: nn.Module | None) -> int:
    return 0 if part is None else sum(parameter.numel() for parameter in part.parameters())


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _cells(step: Step) -> tuple[str, ...]:
    size = f"{step.bytes:,}" if step.held else f"({step.bytes:,})"
    return (step.name, step.formula, str(step.shape), f"{step.parameters:,}", f"{step.flops:,}", size)


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    left = [cell.ljust(width) for cell, width in zip(cells[:3], widths[:3], strict=True)]
    right = [cell.rjust(width) for cell, width in zip(cells[3:], widths[3:], strict=True)]
    return "  ".join([*left, *right]).rstrip()
