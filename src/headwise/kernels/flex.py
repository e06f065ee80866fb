"""torch's flex_attention: masks as compiled functions, for GPUs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from headwise.kernels.base import Kernel
from headwise.kernels.blocks import fold
from headwise.kernels.live import all_finite
from headwise.kernels.problem import Problem
from headwise.kernels.tiled import Tiled
from headwise.masks import Allow, Documents, KeyLengths, Mask, Prefix
from headwise.masks.base import And, Not, Or, Tile
from headwise.masks.frame import Frame

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
_BLOCK = 128  # flex_attention's own tile


class Flex(Kernel):
    name = "flex"
    linear_memory = True

    def supports(self, problem: Problem) -> tuple[str, ...]:
        reasons = list(untranslatable(problem))
        if problem.q.device.type != "cuda":
            reasons.append(
                f"on {problem.q.device.type!r}, flex_attention has no compiled backward pass and no "
                "log-sum-exp (uncompiled, it holds the whole weight matrix)"
            )
        return tuple(reasons)

    def solve(self, problem: Problem) -> tuple[Tensor, Tensor]:
        if not all_finite(problem.q, problem.k, problem.v):
            return Tiled().solve(problem)  # flex multiplies what is masked by 0, and 0 x NaN is NaN
        return flex_solve(problem, _compiled_flex())


def untranslatable(problem: Problem) -> tuple[str, ...]:
    """What of the problem can't be said to flex_attention."""
    reasons = []
    if problem.dropout:
        reasons.append(f"dropout={problem.dropout}: flex_attention has none")
    if any(x.numel() == 0 for x in (problem.q, problem.k, problem.v)):
        reasons.append("a tensor is empty")
    if problem.q.dtype == torch.float64:
        reasons.append("float64: its kernels are for float32 and below")
    if problem.bias is not None:
        reasons.append("a bias: its gradient would be gathered in no fixed order")
    if problem.mask is not None:
        try:
            mask_function(problem.mask, problem.frame)
        except NotImplementedError as error:
            reasons.append(str(error))
    return tuple(reasons)


def flex_solve(problem: Problem, flex: Callable[..., Any]) -> tuple[Tensor, Tensor]:
    """(out, lse) by `flex`, which has the signature of flex_attention."""
    cap = problem.softcap

    def capped(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return score if cap is None else cap * torch.tanh(score / cap)

    from torch.nn.attention.flex_attention import AuxRequest

    out, aux = flex(
        problem.q,
        problem.k,
        problem.v,
        score_mod=None if cap is None else capped,
        block_mask=None if problem.mask is None else block_mask(problem.mask, problem.frame),
        scale=problem.scale,
        enable_gqa=problem.groups > 1,
        return_aux=AuxRequest(lse=True),
    )
    lse = aux.lse
    if problem.sinks is not None:
        total = torch.logaddexp(lse, problem.sinks.to(lse.dtype).view(-1, 1))
        share = torch.where(lse == float("-inf"), 0, (lse - total).exp())
        out = out * share.unsqueeze(-1).to(out.dtype)
        lse = total
    return out, lse


def block_mask(mask: Mask, frame: Frame) -> Any:
    """The mask as flex_attention's BlockMask, from tiles: the matrix is never built."""
    from torch.nn.attention.flex_attention import BlockMask

    sizes = (-(-frame.q_len // _BLOCK), -(-frame.k_len // _BLOCK))
    tiles = fold(mask.tiles(frame, _BLOCK, _BLOCK)).expand(frame.batch[0], frame.heads, *sizes)
    return BlockMask.from_kv_blocks(
        *_listed(tiles == Tile.PARTIAL),
        *_listed(tiles == Tile.FULL),
        BLOCK_SIZE=_BLOCK,
        mask_mod=mask_function(mask, frame),
        seq_lengths=(frame.q_len, frame.k_len),
    )


def _listed(chosen: Tensor) -> tuple[Tensor, Tensor]:
    """How many tiles of each row are chosen, and their numbers, chosen ones first."""
    order = chosen.to(torch.int32).argsort(dim=-1, descending=True, stable=True)
    return chosen.sum(-1, dtype=torch.int32), order.to(torch.int32)


def mask_function(mask: Mask, frame: Frame) -> MaskMod:
    """The mask as a function of the numbers of entry, head, query and key.

    Raises:
        NotImplementedError: a mask that holds tensors and isn't one of ours.
    """
    if isinstance(mask, And | Or):
        left, right = mask_function(mask.left, frame), mask_function(mask.right, frame)
        both = isinstance(mask, And)
        return lambda b, h, i, j: (
            left(b, h, i, j) & right(b, h, i, j) if both else left(b, h, i, j) | right(b, h, i, j)
        )
    if isinstance(mask, Not):
        inner = mask_function(mask.mask, frame)
        return lambda b, h, i, j: ~inner(b, h, i, j)
    q_pos, k_pos = _by_entry(frame.q_pos, 1), _by_entry(frame.k_pos, 1)
    if not mask.trailing:
        return lambda b, h, i, j: mask.allow(q_pos(b, i), k_pos(b, j))
    if isinstance(mask, KeyLengths | Prefix):
        if isinstance(mask.lengths, int):
            length = mask.lengths
            return lambda b, h, i, j: k_pos(b, j) < length
        lengths = _by_entry(torch.as_tensor(mask.lengths), 0)
        return lambda b, h, i, j: k_pos(b, j) < lengths(b)
    if isinstance(mask, Allow):
        whole = mask.dense(frame) if mask.tensor.ndim < 4 else mask.tensor
        sizes = whole.shape
        return lambda b, h, i, j: whole[
            b if sizes[0] > 1 else 0,
            h if sizes[1] > 1 else 0,
            i if sizes[2] > 1 else 0,
            j if sizes[3] > 1 else 0,
        ]
    if isinstance(mask, Documents) and mask.query_ids is None:
        ids = _by_entry(mask.ids, 1)

        def same(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            mine, other = ids(b, q_pos(b, i).clamp(min=0)), ids(b, k_pos(b, j).clamp(min=0))
            return (mine == other) & (mine >= 0) & (q_pos(b, i) >= 0) & (k_pos(b, j) >= 0)

        return same
    raise NotImplementedError(f"the mask {mask.describe()} has no translation for flex_attention")


def _by_entry(tensor: Tensor, trailing: int) -> Callable[..., Tensor]:
    """tensor[b, *rest] where it has a batch dimension, tensor[*rest] where not."""
    if tensor.ndim > trailing and tensor.shape[0] != 1:
        return lambda b, *rest: tensor[(b, *rest)]
    flat = tensor.reshape(tensor.shape[tensor.ndim - trailing :])
    return lambda b, *rest: flat[rest] if rest else flat


@cache
def _compiled_flex() -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention)
