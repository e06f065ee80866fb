"""Every option beside torch's own way to get the same: time, and memory on top of the inputs.

torch's way is the best one that eager torch has without a compiler: F.scaled_dot_product_attention, with
the mask or bias as a matrix where it knows no other form, or the formula in plain operations where it lacks
the option. Matrices are made before the clock starts, as for many layers; their memory counts.

Claims: less than 100 MiB forward, and no slower than torch. (A backward pass adds the gradients of q, k and
v, 24 MiB at 4096 and 72 with a batch of three, and sums in float32 where they are added up.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

import headwise as hw
from benchmarks.common import Case, Way, forward_and_backward
from benchmarks.program import NOISE, Program, Result, main
from benchmarks.table import Claim

HEADS, WIDTH = 8, 64
LENGTHS = {"quick": 64, "short": 2048, "full": 4096}
LIMIT = 100  # MiB


@dataclass(frozen=True)
class Inputs:
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor

    @property
    def length(self) -> int:
        return self.q.shape[-2]

    def sdpa(self, mask: torch.Tensor | None = None, **options: Any) -> torch.Tensor:
        return F.scaled_dot_product_attention(self.q, self.k, self.v, attn_mask=mask, **options)

    def ours(self, **options: Any) -> torch.Tensor:
        out = hw.attention(self.q, self.k, self.v, **options)
        if not isinstance(out, torch.Tensor):
            raise TypeError("attention returned observations that nobody asked for")
        return out


Run = Callable[[Any], torch.Tensor]
Made = Callable[[], Any]


@dataclass(frozen=True)
class Option:
    """How both sides compute one option. Each pair is (prepare or None, run)."""

    inputs: Inputs
    ours: tuple[Made | None, Run]
    torchs: tuple[Made | None, Run]


def inputs(
    length: int, *, kv_heads: int = HEADS, d_v: int = WIDTH, lead: tuple[int, ...] = (1,), grad: bool = False
) -> Inputs:
    torch.manual_seed(11)
    sizes = (HEADS, WIDTH), (kv_heads, WIDTH), (kv_heads, d_v)
    q, k, v = (torch.randn(*lead, heads, length, d, requires_grad=grad) for heads, d in sizes)
    return Inputs(q, k, v)


def dropout(length: int, grad: bool) -> Option:
    x = inputs(length, grad=grad)
    return Option(x, (None, lambda _: x.ours(dropout=0.1)), (None, lambda _: x.sdpa(dropout_p=0.1)))


def wide_values(length: int, grad: bool) -> Option:
    x = inputs(length, d_v=2 * WIDTH, grad=grad)
    return Option(x, (None, lambda _: x.ours()), (None, lambda _: x.sdpa()))


def five_dimensions(length: int, grad: bool) -> Option:
    x = inputs(length, lead=(1, 1), grad=grad)
    return Option(x, (None, lambda _: x.ours()), (None, lambda _: x.sdpa()))


def grouped(length: int, grad: bool) -> Option:
    x = inputs(length, kv_heads=2, grad=grad)
    return Option(x, (None, lambda _: x.ours()), (None, lambda _: x.sdpa(enable_gqa=True)))


def grouped_masked(length: int, grad: bool) -> Option:
    x, allow = inputs(length, kv_heads=2, grad=grad), torch.rand(length, length) > 0.3
    return Option(
        x,
        (lambda: hw.Allow(allow), lambda mask: x.ours(mask=mask)),
        (None, lambda _: x.sdpa(allow, enable_gqa=True)),
    )


def dense_mask(length: int, grad: bool) -> Option:
    x, allow = inputs(length, grad=grad), torch.rand(length, length) > 0.3
    return Option(
        x, (lambda: hw.Allow(allow), lambda mask: x.ours(mask=mask)), (None, lambda _: x.sdpa(allow))
    )


def causal_documents(length: int, grad: bool) -> Option:
    x, ids = inputs(length, grad=grad), torch.arange(length) // max(1, length // 6)
    return Option(
        x,
        (lambda: hw.Causal() & hw.Documents(ids), lambda mask: x.ours(mask=mask)),
        (lambda: (ids[:, None] == ids).tril(), x.sdpa),
    )


def window(length: int, grad: bool) -> Option:
    x, before = inputs(length, grad=grad), length // 8 - 1

    def band() -> torch.Tensor:
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        return causal.triu_(-before)

    return Option(x, (lambda: hw.Window(before, 0), lambda mask: x.ours(mask=mask)), (band, x.sdpa))


def real_lengths(length: int) -> torch.Tensor:
    return torch.tensor([length, length * 3 // 4, length // 2])


def key_lengths(length: int, grad: bool) -> Option:
    real = real_lengths(length)
    x = inputs(length, lead=(3,), grad=grad)
    return Option(
        x,
        (lambda: hw.KeyLengths(real), lambda mask: x.ours(mask=mask)),
        (lambda: (torch.arange(length) < real[:, None])[:, None, None], x.sdpa),
    )


def causal_lengths(length: int, grad: bool) -> Option:
    real = real_lengths(length)
    x = inputs(length, lead=(3,), grad=grad)

    def matrix() -> torch.Tensor:
        allow = torch.ones(length, length, dtype=torch.bool).tril()
        return (allow & (torch.arange(length) < real[:, None])[:, None])[:, None]

    return Option(
        x, (lambda: hw.Causal() & hw.KeyLengths(real), lambda mask: x.ours(mask=mask)), (matrix, x.sdpa)
    )


def bias(length: int, grad: bool) -> Option:
    x, added = inputs(length, grad=grad), torch.randn(HEADS, length, length)
    return Option(x, (None, lambda _: x.ours(bias=added)), (None, lambda _: x.sdpa(added)))


def alibi(length: int, grad: bool) -> Option:
    x, slopes = inputs(length, grad=grad), hw.ALiBi.for_heads(HEADS).slopes

    def matrix() -> torch.Tensor:
        place = torch.arange(length)
        scores = slopes[:, None, None] * (place - place[:, None])
        return scores.masked_fill_(place > place[:, None], float("-inf"))

    return Option(
        x,
        (lambda: (hw.ALiBi(slopes), hw.Causal()), lambda made: x.ours(bias=made[0], mask=made[1])),
        (matrix, x.sdpa),
    )


def softcap(length: int, grad: bool) -> Option:
    x, cap = inputs(length, grad=grad), 30.0

    def formula(_: Any) -> torch.Tensor:
        scores = torch.matmul(x.q, x.k.mT) * WIDTH**-0.5
        scores = cap * torch.tanh(scores / cap)
        return torch.softmax(scores, -1) @ x.v

    return Option(x, (None, lambda _: x.ours(softcap=cap)), (None, formula))


def sinks(length: int, grad: bool) -> Option:
    x, logits = inputs(length, grad=grad), torch.randn(HEADS)

    def formula(_: Any) -> torch.Tensor:
        scores = torch.matmul(x.q, x.k.mT) * WIDTH**-0.5
        column = logits.view(-1, 1, 1).expand(*scores.shape[:-1], 1)
        return torch.softmax(torch.cat((scores, column), -1), -1)[..., :-1] @ x.v

    return Option(x, (None, lambda _: x.ours(sinks=logits)), (None, formula))


OPTIONS: dict[str, Callable[[int, bool], Option]] = {
    "dropout 0.1": dropout,
    "d_v = 2 d_k": wide_values,
    "5 dimensions": five_dimensions,
    "2 kv heads": grouped,
    "2 kv heads, any mask": grouped_masked,
    "any mask": dense_mask,
    "causal & documents": causal_documents,
    "window, 1/8": window,
    "key lengths": key_lengths,
    "causal & key lengths": causal_lengths,
    "bias": bias,
    "ALiBi, causal": alibi,
    "softcap": softcap,
    "sinks": sinks,
}


def ways(make: Callable[[int, bool], Option], length: int, *, backward: bool) -> list[Way]:
    option = make(length, backward)
    sources = (option.inputs.q, option.inputs.k, option.inputs.v)
    found = []
    for name, (prepare, run) in (("headwise", option.ours), ("torch", option.torchs)):
        found.append(Way(name, forward_and_backward(run, sources) if backward else run, prepare))
    return found


def cases(size: str) -> list[Case]:
    length = LENGTHS[size]
    modes = (False,) if size == "short" else (False, True)
    return [_case(name, make, length, backward) for backward in modes for name, make in OPTIONS.items()]


def _case(name: str, make: Callable[[int, bool], Option], length: int, backward: bool) -> Case:
    label = (name, "forward + backward" if backward else "forward", str(length))
    return Case(label, lambda: ways(make, length, backward=backward), weigh=True)


def claims(results: Sequence[Result]) -> list[Claim]:
    weighed = [r for r in results if r.mib and r.label[1] == "forward"]
    heavy = tuple(
        f"{r.label[0]} {r.label[1]} ({r.mib['headwise']:.0f})" for r in weighed if r.mib["headwise"] >= LIMIT
    )
    slow = tuple(
        f"{r.label[0]} {r.label[1]} ({r.ratios['torch']:.2f})" for r in results if r.ratios["torch"] > NOISE
    )
    return [
        Claim(f"less than {LIMIT} MiB forward", len(weighed), heavy),
        Claim("no slower than torch", len(results), slow),
    ]


PROGRAM = Program(
    "options",
    f"options, {HEADS} heads of {WIDTH}, float32",
    ("option", "pass", "length"),
    cases,
    peers=("torch",),
    claims=claims,
)

if __name__ == "__main__":
    raise SystemExit(main(PROGRAM))
