"""Every statistic from the whole weight matrix, in float64: what the observers are compared with."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from headwise.kernels.problem import Problem
from headwise.masks import Causal, Frame, KeyLengths, Mask, Window
from headwise.positions import AddedScores


def problem(
    batch: tuple[int, ...] = (2,),
    heads: int = 6,
    kv_heads: int = 2,
    q_len: int = 197,
    k_len: int = 197,
    d_k: int = 5,
    d_v: int = 3,
    *,
    mask: Mask | None = None,
    dtype: torch.dtype = torch.float64,
    bias: bool = False,
    sinks: bool = False,
    softcap: float | None = None,
    scale: float = 0.7,
    align: str = "end",
    seed: int = 11,
) -> Problem:
    """A random problem; score differences of a few units, so that no head is uniform."""
    g = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)

    return Problem(
        q=normal(*batch, heads, q_len, d_k),
        k=normal(*batch, kv_heads, k_len, d_k),
        v=normal(*batch, kv_heads, k_len, d_v),
        frame=Frame.of(batch, heads, q_len, k_len, align=align),
        scale=scale,
        mask=mask,
        bias=AddedScores(normal(*batch[-1:], heads, q_len, k_len)) if bias else None,
        softcap=softcap,
        sinks=normal(heads) if sinks else None,
    )


def some_lengths(batch: tuple[int, ...], k_len: int) -> Tensor:
    """Different lengths for each batch entry; the first is 0, so that its queries are dead."""
    count = torch.Size(batch).numel()
    return torch.linspace(0, k_len, count).long().reshape(batch)


CASES = {
    "bidirectional": lambda: problem(),
    "causal": lambda: problem(mask=Causal()),
    "window": lambda: problem(mask=Causal() & Window(before=19, after=0)),
    "two-sided window": lambda: problem(mask=Window(before=7, after=11)),
    "key lengths, one of them 0": lambda: problem((3,), mask=KeyLengths(some_lengths((3,), 197))),
    "more queries than keys": lambda: problem(q_len=137, k_len=71, mask=Causal()),
    "fewer queries than keys": lambda: problem(q_len=13, k_len=131, mask=Causal()),
    "aligned at the start": lambda: problem(q_len=71, k_len=131, mask=Causal(), align="start"),
    "sinks": lambda: problem(sinks=True, mask=Causal()),
    "softcap": lambda: problem(softcap=1.5, mask=Causal()),
    "bias": lambda: problem(bias=True, mask=Causal()),
    "no batch": lambda: problem((), mask=Causal()),
    "two batch dimensions": lambda: problem(
        (2, 3), q_len=67, k_len=89, mask=KeyLengths(some_lengths((2, 3), 89))
    ),
    "three batch dimensions, bias, sinks": lambda: problem(
        (2, 1, 3), q_len=23, k_len=67, bias=True, sinks=True, softcap=3.0
    ),
    "one head": lambda: problem(heads=1, kv_heads=1, mask=Causal()),
    "as many keys' heads": lambda: problem(heads=3, kv_heads=3),
    "dead rows and sinks": lambda: problem(q_len=71, k_len=37, mask=Causal(), sinks=True),
    "one key": lambda: problem(q_len=7, k_len=1),
}


def scores(p: Problem) -> Tensor:
    """[*batch, heads, q_len, k_len] in float64, -inf where masked."""
    q, k = p.q.double(), p.k.double().repeat_interleave(p.groups, dim=-3)
    s = torch.einsum("...id,...jd->...ij", q, k) * p.scale
    if p.softcap is not None:
        s = p.softcap * torch.tanh(s / p.softcap)
    if p.bias is not None:
        (added,) = p.bias.tensors()
        s = s + added.double()
    return s if p.mask is None else s.masked_fill(~p.mask.dense(p.frame), float("-inf"))


def weights(p: Problem) -> Tensor:
    """[*batch, heads, q_len, k_len] in float64: exp(s) / (sum of exp(s) + exp(sink)), row by row."""
    s = scores(p)
    total = s.exp().sum(-1, keepdim=True)
    if p.sinks is not None:
        total = total + p.sinks.double().exp().reshape(-1, 1, 1)
    return torch.where(total > 0, s.exp() / total, 0.0)


def lse(p: Problem) -> Tensor:
    total = scores(p).exp().sum(-1)
    if p.sinks is not None:
        total = total + p.sinks.double().exp().reshape(-1, 1)
    return total.log()


def offsets(p: Problem) -> Tensor:
    """k_pos - q_pos, [q_len, k_len]"""
    return (p.frame.k_pos[None, :] - p.frame.q_pos[:, None]).double()


def cells(length: int, count: int) -> Tensor:
    """One-hot [length, min(count, length)]: an even split into runs, by torch.tensor_split's rule or
    any other that is even: sizes are checked by the caller."""
    count = min(count, length)
    return torch.nn.functional.one_hot(torch.arange(length) * count // max(length, 1), max(count, 1)).double()


def as_float32(p: Problem) -> Problem:
    """The same problem with the same values, rounded to float32."""
    bias = p.bias if p.bias is None else p.bias.with_tensors(*(t.float() for t in p.bias.tensors()))
    sinks = None if p.sinks is None else p.sinks.float()
    return replace(p, q=p.q.float(), k=p.k.float(), v=p.v.float(), bias=bias, sinks=sinks)
