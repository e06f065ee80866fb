"""Calls of the compiled kernel: what it is handed, in the order in which csrc/reader.hpp reads it.

Only addresses and strides cross over, so everything here that makes a tensor also keeps it until the call
is done.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from headwise.kernels.addresses import address, as_stored
from headwise.kernels.native_build import native
from headwise.kernels.native_masks import HIGHEST, LOWEST, Parts, dense_step, numbers, translate
from headwise.kernels.pair import Grads
from headwise.kernels.problem import Problem
from headwise.positions.added import AddedScores

TYPES = {torch.float32: 0, torch.bfloat16: 1}
NOT_FINITE = 0 if native is None else int(native.NOT_FINITE)
_PATIENT = 4e9  # operations below which a call is over before anybody could wish to interrupt it
_NO_MORE = numbers(Parts())[8:]  # of a mask that is a band and an end
_threads = 0


def forward(
    problem: Problem, rows: tuple[int, ...] | None = None, told: Told | None = None
) -> tuple[Tensor, Tensor, bool]:
    """(out, lse, whether all of it is finite) of a flat problem.

    Args:
        rows: what to observe besides, as csrc/reader.hpp reads it.
        told: the problem as the kernel is told it, where that has been made.
    """
    frame = problem.frame
    (batch,), heads, q_len = frame.batch, frame.heads, frame.q_len
    # Heads lie between rows, as a layer's output projection reads them.
    out = problem.v.new_empty(batch, q_len, heads, problem.d_v).transpose(1, 2)
    lse = room(problem.q, batch, heads, q_len)
    told = told or Told(problem)
    finite = _run(lambda: native.forward(told.numbers, (*places(out), address(lse)), rows, told.patient))
    return out, lse, finite


def forward_plain(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    ahead: int | None,
    lengths: Tensor | None = None,
    k_len: int | None = None,
) -> Tensor | None:
    """What `forward` gives of a call without options; None where something isn't finite.

    Args:
        ahead: of a causal mask: how many keys stand before the first query's own. None: no such mask.
        lengths: how many keys there are, int64 [1 or batch], side by side. None: all.
        k_len: only the first so many of k and v are meant. None: all.
    """
    q, k, v = dense_last(q), dense_last(k), dense_last(v)
    batch, heads, q_len, d_k = q.shape
    _, kv_heads, all_keys, d_v = v.shape
    k_len = all_keys if k_len is None else k_len
    out = v.new_empty((batch, q_len, heads, d_v)).transpose(1, 2)
    lse = q.new_empty((batch, heads, q_len), dtype=torch.float32)
    mask: tuple[int, ...] | None = None
    if ahead is not None or lengths is not None:
        end = (0, 0) if lengths is None else (address(lengths), dense_step(lengths, 0))
        mask = (LOWEST, HIGHEST if ahead is None else ahead, 0, 0, 0, 0, *end, *_NO_MORE)
    sizes = (TYPES[q.dtype], batch, heads, kv_heads, q_len, k_len, d_k, d_v)
    told = (*sizes, scale, 0.0, *places(q), *places(k), *places(v), 0, mask, None, 0.0, 0, 0)
    patient = 2.0 * batch * heads * q_len * k_len * (d_k + d_v) < _PATIENT
    written = (*places(out), address(lse))
    return out if _run(lambda: native.forward(told, written, None, patient)) else None


def backward(
    problem: Problem, out: Tensor, lse: Tensor, d_out: Tensor, d_lse: Tensor | None
) -> tuple[Grads, bool]:
    """(gradients, whether they can be relied on: what they are made of is finite, and overflows nowhere)."""
    told = Told(problem)
    out, lse, d_out = dense_last(out), whole(lse), dense_last(d_out)
    d_lse = None if d_lse is None else whole(d_lse)
    d_q, d_k, d_v = (room_beside(x) for x in (told.q, told.k, told.v))
    d_sinks = None if problem.sinks is None else room(problem.q, problem.frame.heads).zero_()
    d_bias = None
    if problem.bias is not None and not problem.bias_fixed:
        d_bias = _room_for_bias(problem)
    grads = (
        *places(d_q),
        *places(d_k),
        *places(d_v),
        0 if d_sinks is None else address(d_sinks),
        *((0, 0, 0, 0) if d_bias is None else (address(d_bias), *(dense_step(d_bias, n) for n in range(3)))),
    )
    given = (*places(out), address(lse), *places(d_out), 0 if d_lse is None else address(d_lse))

    def call() -> int:
        if d_bias is not None:
            d_bias.zero_()  # it is added to
        status: int = native.backward(told.numbers, given, grads, told.patient)
        return status

    finite = _run(call)
    of_bias: tuple[Tensor, ...] = ()
    if d_bias is not None and isinstance(problem.bias, AddedScores):
        tensor = problem.bias.tensor
        if tensor.ndim == 0 or tensor.shape[-1] == 1:
            d_bias = d_bias.sum(-1, keepdim=True)
        of_bias = (d_bias.reshape(tensor.shape),)
    sinks = None if d_sinks is None or problem.sinks is None else d_sinks.to(problem.sinks.dtype)
    return Grads(d_q, d_k, d_v, sinks, of_bias), finite


def measure_keys(
    problem: Problem,
    told: Told,
    reference: Tensor,
    share: Tensor,
    *,
    mass: bool,
    cells: tuple[int, int] | None,
) -> tuple[Tensor | None, Tensor | None]:
    """(what each key receives [B, H, k_len], the sum of weights in each cell [B, H, *cells]) of a flat
    problem of which `forward` gave `reference` and `share`, as csrc/attention.hpp defines them; None for what
    isn't asked for."""
    frame = problem.frame
    heads = (frame.batch[0], frame.heads)
    received = room(problem.q, *heads, frame.k_len) if mass else None
    picture = None if cells is None else room(problem.q, *heads, *cells)
    wanted = (
        address(reference),
        address(share),
        0 if received is None else address(received),
        0 if picture is None else address(picture),
        *(cells or (0, 0)),
    )
    _run(lambda: native.measure(told.numbers, wanted, told.patient))
    return received, picture


def check_rows(told: Told, lse: Tensor, rows: int) -> float:
    """How far so many rows of exp(score - lse), from the first of all heads to the last, are from 1, at most:
    their scores are made once more, one by one, in float64."""
    lse = whole(lse.float())
    found: list[float] = []

    def call() -> int:
        status, error = native.check_rows(told.numbers, (address(lse), rows), told.patient)
        found[:] = [error]
        return int(status)

    _run(call)
    return found[0]


class Told:
    """A problem as the kernel is told it, and the tensors behind the addresses."""

    def __init__(self, problem: Problem) -> None:
        frame = problem.frame
        self.q, self.k, self.v = q, k, v = tuple(dense_last(x) for x in (problem.q, problem.k, problem.v))
        self.mask: Parts | None = translate(problem.mask, frame)
        self.bias = None
        if isinstance(problem.bias, AddedScores):
            self.bias = folded_bias(problem.bias)
        self.sinks = None if problem.sinks is None else whole(problem.sinks.detach().float())
        shape = (frame.batch[0], frame.heads, k.shape[1], frame.q_len, frame.k_len, q.shape[3], v.shape[3])
        self.numbers = (
            TYPES[q.dtype],
            *shape,
            problem.scale,
            problem.softcap or 0.0,
            *places(q),
            *places(k),
            *places(v),
            0 if self.sinks is None else address(self.sinks),
            None if self.mask is None else numbers(self.mask),
            None if self.bias is None else _bias_numbers(self.bias),
            problem.dropout,
            0 if problem.seed is None else int(problem.seed),
            problem.batch_start,
        )
        work = 2.0 * shape[0] * shape[1] * shape[3] * shape[4] * (shape[5] + shape[6])
        self.patient = work < _PATIENT


def room(like: Tensor, *shape: int) -> Tensor:
    """float32 of these sizes, not yet filled, where `like` is."""
    return like.new_empty(shape, dtype=torch.float32)


def dense_last(x: Tensor) -> Tensor:
    """The kernel reads the last dimension as if it had stride 1."""
    x = as_stored(x)
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def whole(x: Tensor) -> Tensor:
    """The kernel reads it as one run of numbers."""
    return as_stored(x).contiguous()


def room_beside(x: Tensor) -> Tensor:
    """Room for the gradient of x, in x's own order where that is one: every number a place of its own (x may
    be expanded or overlap itself), and those of the last dimension side by side."""
    made = torch.empty_like(x)
    if made.stride(-1) == 1 or made.shape[-1] == 1:
        return made
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def places(x: Tensor) -> tuple[int, int, int, int]:
    """The address of [B, H, n, d], and its strides."""
    batch, head, row, _ = x.stride()
    return address(x), batch, head, row


def folded_bias(bias: AddedScores) -> Tensor:
    """The numbers of a bias, [B or 1, H or 1, q_len or 1, k_len or 1], in a type that the kernel reads."""
    tensor = as_stored(bias.tensor.detach())
    tensor = tensor.reshape((1,) * (4 - tensor.ndim) + tensor.shape)
    return tensor if tensor.dtype in TYPES else tensor.float()


def _bias_numbers(bias: Tensor) -> tuple[int, ...]:
    return (address(bias), TYPES[bias.dtype], *(dense_step(bias, n) for n in range(4)))


def _room_for_bias(problem: Problem) -> Tensor:
    """Where the kernel adds up a bias's gradient: float32, with every column, not yet filled."""
    if not isinstance(problem.bias, AddedScores):
        raise TypeError(f"{type(problem.bias).__name__} is no tensor of numbers")
    shape = folded_bias(problem.bias).shape
    return room(problem.q, *shape[:3], problem.frame.k_len)


def follow_torchs_threads() -> None:
    """Let the kernel use as many threads as torch does."""
    global _threads
    wanted = torch.get_num_threads()
    if wanted != _threads:
        native.set_threads(wanted)
        _threads = wanted


def _run(call: Callable[[], int]) -> bool:
    """Make a call until it isn't interrupted; whether its numbers can be relied on: forward, whether all that
    it wrote is finite; backward, whether all that it read is, and small enough."""
    follow_torchs_threads()
    status = call()
    while status == native.INTERRUPTED:  # by a signal whose handler, which has run by now, raised nothing
        status = call()
    if status == native.NO_MEMORY:
        raise MemoryError("the kernel 'native' got no memory to work in")
    return status != NOT_FINITE
