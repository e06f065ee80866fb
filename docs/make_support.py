"""Write docs/support.md: which kernel takes which call, as the kernels themselves say.

    python docs/make_support.py

No cell is typed in. The first two tables ask `kernel.supports(problem)` for tiny calls; for CUDA the call
is only described (its tensors claim to be there), so that the table is the same on every machine. The third
table tries each thing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import headwise as hw
from headwise.attention import attention, problem
from headwise.kernels import KERNELS, Kernel, Problem
from headwise.kernels.choose import choose, reasons_against
from headwise.kernels.native_build import native
from headwise.masks import Mask

PAGE = Path(__file__).parent / "support.md"


@dataclass(frozen=True, eq=False, repr=False)
class EverySecond(Mask):
    """A mask of one's own that looks at positions alone."""

    def allow(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        return (q_pos - k_pos) % 2 == 0

    def tiles(self, frame: Any, q_block: int, k_block: int) -> Tensor:
        return torch.ones(-(-frame.q_len // q_block), -(-frame.k_len // k_block), dtype=torch.int8)


@dataclass(frozen=True, eq=False, repr=False)
class Chosen(EverySecond):
    """A mask of one's own that holds a tensor: bool [k_len]."""

    trailing = {"keys": 1}  # noqa: RUF012

    keys: Tensor

    def block(self, frame: Any, rows: Any, cols: Any) -> Tensor:
        return self.keys[cols]


@dataclass(frozen=True)
class Call:
    """A tiny call of attention: sizes, and the options besides."""

    label: str
    q: tuple[int, ...] = (2, 4, 5, 8)
    k: tuple[int, ...] = (2, 4, 7, 8)
    d_v: int = 8
    dtype: torch.dtype = torch.float32
    options: dict[str, Any] = field(default_factory=dict)

    def problem(self) -> Problem:
        given = torch.Generator().manual_seed(0)
        q, k, v = (
            torch.randn(shape, generator=given).to(self.dtype)
            for shape in (self.q, self.k, (*self.k[:-1], self.d_v))
        )
        return problem(q, k, v, **self.options).flatten()


IDS = torch.tensor([0, 0, 0, 0, 1, 1, 1])


def calls() -> Iterator[tuple[str, list[Call]]]:
    """Every row of the tables, by section."""
    yield "", [Call("no option")]
    masks: list[tuple[str, Mask]] = [
        ("`Causal()`", hw.Causal()),
        ("`Window(3, 0)`", hw.Window(3, 0)),
        ("`KeyLengths(tensor)`", hw.KeyLengths(torch.tensor([7, 3]))),
        ("`Documents(ids)`", hw.Documents(IDS)),
        ("`Documents(ids, query_ids)`", hw.Documents(IDS, IDS[:5])),
        ("`Prefix(3)`", hw.Prefix(3)),
        ("`Allow(tensor)`", hw.Allow(torch.ones(5, 7).tril().bool())),
        ("`ValidKeys()`", hw.ValidKeys()),
        ("`Causal() & KeyLengths(tensor)`", hw.Causal() & hw.KeyLengths(torch.tensor([7, 3]))),
        ("`Causal() \\| Prefix(3)`", hw.Causal() | hw.Prefix(3)),
        ("`~Window(1, 1)`", ~hw.Window(1, 1)),
        ("a class of your own, positions alone", EverySecond()),
        ("a class of your own that holds a tensor", Chosen(torch.ones(7).bool())),
    ]
    yield "Masks", [Call(label, options={"mask": mask}) for label, mask in masks]
    biases: list[tuple[str, Any]] = [
        ("a tensor", torch.linspace(-1, 1, 35).view(5, 7)),
        ("`ALiBi.for_heads(4)`", hw.ALiBi.for_heads(4)),
        ("`RelativeBuckets(...)`", hw.RelativeBuckets(torch.zeros(32, 4))),
        ("a sum of biases", hw.ALiBi.for_heads(4) + hw.ALiBi.for_heads(4, symmetric=True)),
    ]
    yield "Biases", [Call(label, options={"bias": bias}) for label, bias in biases]
    yield (
        "Other options",
        [
            Call("`scale=`", options={"scale": 0.5}),
            Call("`softcap=`", options={"softcap": 30.0}),
            Call("`sinks=`", options={"sinks": torch.zeros(4)}),
            Call("`dropout=`", options={"dropout": 0.1}),
            Call('`Causal()`, `align="start"`', options={"mask": hw.Causal(), "align": "start"}),
            Call(
                "`Causal()`, positions given",
                options={"mask": hw.Causal(), "k_positions": torch.tensor([4, 5, 6, 0, 1, 2, 3])},
            ),
            Call(
                "`Causal()`, positions by batch entry",
                options={
                    "mask": hw.Causal(),
                    "q_positions": torch.tensor([[2, 3, 4, 5, 6], [0, 1, 2, 3, 4]]),
                },
            ),
        ],
    )
    yield (
        "Sizes",
        [
            Call("d_v below d_k", d_v=3),
            Call("d_v above d_k", d_v=17),
            Call("grouped heads", k=(2, 2, 7, 8)),
            Call("grouped heads, `Causal()`", k=(2, 2, 7, 8), options={"mask": hw.Causal()}),
            Call("one query, `Causal()`", q=(2, 4, 1, 8), options={"mask": hw.Causal()}),
            Call("q_len above k_len, `Causal()`", q=(2, 4, 11, 8), options={"mask": hw.Causal()}),
            Call("no batch dimension", q=(4, 5, 8), k=(4, 7, 8)),
            Call("three batch dimensions", q=(2, 1, 3, 4, 5, 8), k=(2, 1, 3, 4, 7, 8)),
            Call("keys shared by the batch", k=(4, 7, 8)),
            Call("k_len 0", k=(2, 4, 0, 8)),
            Call("q_len 0", q=(2, 4, 0, 8)),
            Call("an empty batch", q=(0, 4, 5, 8), k=(0, 4, 7, 8)),
            Call("no heads", q=(2, 0, 5, 8), k=(2, 0, 7, 8)),
            Call("d_v 0", d_v=0),
            Call("d_k 0, `scale=1.0`", q=(2, 4, 5, 0), k=(2, 4, 7, 0), options={"scale": 1.0}),
        ],
    )
    dtypes = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    yield "Types", [Call(str(dtype).removeprefix("torch."), dtype=dtype) for dtype in dtypes]


class Claimed(Tensor):
    """A tensor without values that says it is on some device."""

    @staticmethod
    def of(tensor: Tensor, device: str) -> Tensor:
        claimed: Tensor = Tensor._make_wrapper_subclass(
            Claimed, tensor.shape, strides=tensor.stride(), dtype=tensor.dtype, device=torch.device(device)
        )
        return claimed

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{function}: a kernel looked at values to say whether it takes a call")


def described(given: Problem, device: str) -> Problem:
    """The call as it would be on another device."""
    whole = {field.name: getattr(given, field.name) for field in fields(given)}
    return Elsewhere(**whole | {name: Claimed.of(whole[name], device) for name in ("q", "k", "v")})


class Elsewhere(Problem):
    """A call whose claimed tensors stand for plain ones."""

    def mixed(self) -> None:
        return None


class Reasons:
    """Reasons, numbered as they come up."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def mark(self, reasons: tuple[str, ...]) -> str:
        """A cell: yes, or no with the numbers of its reasons."""
        if not reasons:
            return "yes"
        numbers = [self.numbers.setdefault(reason, len(self.numbers) + 1) for reason in reasons]
        return f"no <sup>{', '.join(map(str, numbers))}</sup>"

    def lines(self) -> Iterator[str]:
        for reason, number in self.numbers.items():
            yield f"{number}. {reason}"


def by_call(device: str) -> Iterator[str]:
    """A table: every call by every kernel."""
    reasons = Reasons()
    yield f"| | {' | '.join(f'`{kernel.name}`' for kernel in KERNELS)} | `auto` takes |"
    yield "|---" * (len(KERNELS) + 2) + "|"
    for title, rows in calls():
        if title:
            yield f"| **{title}** " + "| " * (len(KERNELS) + 1) + "|"
        for row in rows:
            given = row.problem()
            if device != "cpu":
                given = described(given, device)
            cells = [reasons.mark(reasons_against(kernel, given)) for kernel in KERNELS]
            yield f"| {row.label} | {' | '.join(cells)} | `{choose(given).kernel.name}` |"
    yield ""
    yield from reasons.lines()


# Things to try, each with q, k, v and the name of a kernel


def gradient(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> str:
    x = q.clone().requires_grad_()
    torch.autograd.grad(attention(x, k, v, **options).sum(), x)
    return "yes"


def second_derivative(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> str:
    x = q.clone().requires_grad_()

    def twice(strict: bool) -> None:
        out = attention(x, k, v, strict=strict, **options)
        (first,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
        torch.autograd.grad(first.square().sum(), x)

    twice(strict=False)
    try:
        twice(strict=True)
    except (RuntimeError, ValueError):
        return "yes, not under `strict`"
    return "yes"


def forward_mode(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> str:
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q, torch.ones_like(q))
        attention(dual, k, v, **options)
    return "yes"


def vmapped(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> str:
    torch.func.vmap(lambda q, k, v: attention(q, k, v, **options))(q, k, v)
    return "yes"


def observed(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> str:
    attention(q, k, v, observe=[hw.Entropy()], **options)
    return "yes"


def strictly(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> str:
    attention(q, k, v, strict=True, **options)
    return "yes"


def under_autocast(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> str:
    with torch.autocast("cpu", torch.bfloat16):
        attention(q, k, v, **options)
    return "yes"


def compiled(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> str:
    torch.compiler.reset()
    torch.compile(lambda q, k, v: attention(q, k, v, **options), fullgraph=True, backend="eager")(q, k, v)
    return "yes"


def exported(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> str:
    class Module(torch.nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return attention(q, k, v, **options)

    batch, q_len, k_len = (torch.export.Dim(name) for name in ("batch", "q_len", "k_len"))
    sizes = ({0: batch, 2: q_len}, {0: batch, 2: k_len}, {0: batch, 2: k_len})
    torch.export.export(Module(), (q, k, v), dynamic_shapes=sizes).module()(q[:1], k[:1], v[:1])
    return "yes"


ATTEMPTS: dict[str, Callable[..., str]] = {
    "gradients": gradient,
    "second derivatives": second_derivative,
    "forward-mode derivatives": forward_mode,
    "`torch.func.vmap` (and `grad`, `jvp`, ...)": vmapped,
    "`observe=`": observed,
    "`strict=True`": strictly,
    "autocast": under_autocast,
    "`torch.compile(fullgraph=True)`": compiled,
    "`torch.export`, any batch and lengths": exported,
}


def by_attempt() -> Iterator[str]:
    """A table: everything that can be tried, by every kernel that runs here."""
    given = Call("", options={"mask": hw.Causal()}).problem()
    here: list[Kernel] = [kernel for kernel in KERNELS if not kernel.supports(given)]
    yield f"| | {' | '.join(f'`{kernel.name}`' for kernel in here)} | `auto` |"
    yield "|---" * (len(here) + 2) + "|"
    for label, attempt in ATTEMPTS.items():
        cells = []
        for name in (*(kernel.name for kernel in here), "auto"):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    cells.append(attempt(given.q, given.k, given.v, mask=hw.Causal(), kernel=name))
            except (RuntimeError, TypeError, ValueError):
                cells.append("no")
        yield f"| {label} | {' | '.join(cells)} |"


@contextmanager
def unmeasured() -> Iterator[None]:
    """With an instruction set that no measured table knows: choices are then the same on every machine."""
    if native is None:
        yield
        return
    used = native.isa()
    native.use_isa("baseline")
    try:
        yield
    finally:
        native.use_isa(used)


def page() -> str:
    """The whole page."""
    with unmeasured():
        return _page()


def _page() -> str:
    lines = [
        "# Which kernel takes which call",
        "",
        "Written by `python docs/make_support.py`, which asks the kernels: no cell is typed in, and a test "
        "writes the page again and compares. For a call of your own, ask [`explain`](kernels.md#explain).",
        "",
        "Every call works under `auto`; the tables say on which kernel. Kernels stand in the order in which "
        "`auto` asks them. What `native` and `torch` both take is `torch`'s here, as on a processor that was "
        "never measured; on those that were, `native` takes [nearly all of it](kernels.md#native). Whether a "
        "mask is a range of keys decides only where its matrix isn't small (the calls here are tiny). "
        "`native` is there where headwise was installed with a C++ compiler.",
        "",
        "## On the CPU",
        "",
        *by_call("cpu"),
        "",
        "## On CUDA",
        "",
        "What the kernels say of a call that is described to them as being there. Nothing was computed on a "
        "GPU to write this page.",
        "",
        *by_call("cuda"),
        "",
        "## Derivatives, transforms, compiled code",
        "",
        "Each tried on the CPU, with `Causal()`.",
        "",
        *by_attempt(),
        "",
        "Other devices (MPS, XPU, ...) are not checked here.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
