"""One attention call, checked and complete: what every kernel is handed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from headwise.kernels.addresses import PLAIN
from headwise.masks.base import Mask
from headwise.masks.frame import Frame
from headwise.positions.base import Bias

_PLAIN = frozenset(PLAIN)
_NO_WAY_OF_ITS_OWN = Tensor.__torch_dispatch__


@dataclass(frozen=True, eq=False)
class Problem:
    """Attention(q, k, v) with every option.

    Scores of query i and key j, and what becomes of them:

        s_ij = scale * q_i . k_j
        s_ij = softcap * tanh(s_ij / softcap)          if softcap
        s_ij = s_ij + bias_ij                          if bias
        s_ij = -inf                                    where mask does not allow
        lse_i = log(sum_j exp(s_ij) + exp(sink_h))     (the sink's term only if sinks)
        P_ij = exp(s_ij - lse_i)                       0 in a row that may attend to nothing
        out_i = sum_j dropout(P)_ij v_j

    Shapes: q [*batch, heads, q_len, d_k]; k [*batch, kv_heads, k_len, d_k];
    v [*batch, kv_heads, k_len, d_v]; sinks [heads]; seed int64 [] (only with dropout > 0).
    """

    q: Tensor
    k: Tensor
    v: Tensor
    frame: Frame
    scale: float
    mask: Mask | None = None
    bias: Bias | None = None
    softcap: float | None = None
    sinks: Tensor | None = None
    dropout: float = 0.0
    seed: Tensor | None = None
    strict: bool = False  # refuse every path whose memory grows with q_len x k_len
    bias_fixed: bool = False  # a backward pass that nobody wants the bias's gradient of
    batch_start: int = 0  # the first batch entry's number in the whole call

    @property
    def kv_heads(self) -> int:
        return self.k.shape[-3]

    @property
    def groups(self) -> int:
        """Query heads that share one key/value head."""
        return self.q.shape[-3] // self.k.shape[-3] if self.k.shape[-3] else 1

    @property
    def d_v(self) -> int:
        return self.v.shape[-1]

    @property
    def holds_values(self) -> bool:
        """Whether the tensors hold numbers, and not just shapes (meta and fake tensors). One that doesn't is
        enough: what is computed with it has none either."""
        return not (self.q.is_meta or any(issubclass(kind, FakeTensor) for kind in self._kinds() - _PLAIN))

    @property
    def score_dtype(self) -> torch.dtype:
        """What scores, softmax and log-sum-exp are computed in; see the function of this name."""
        return score_dtype(self.q.dtype)

    def flatten(self) -> Problem:
        """The same problem with all batch dimensions as one; views wherever strides allow."""
        if len(self.frame.batch) == 1:
            return self
        return self.select(slice(None))

    def select(self, index: slice) -> Problem:
        """The problem of some batch entries: all batch dimensions become one, of which `index` is kept."""
        batch = self.frame.batch
        count = prod(batch)
        first, _, _ = index.indices(count)
        return replace(
            self,
            q=self.q.reshape(count, *self.q.shape[-3:])[index],
            k=self.k.reshape(count, *self.k.shape[-3:])[index],
            v=self.v.reshape(count, *self.v.shape[-3:])[index],
            frame=self.frame.select(index),
            mask=None if self.mask is None else self.mask.select(batch, index),
            bias=None if self.bias is None else self.bias.select(batch, index),
            batch_start=self.batch_start + first,
        )

    def by_batch(self) -> bool:
        """Whether batch entries may differ in who attends to whom."""
        return self.mask is not None and (self.frame.by_batch or self.mask.by_batch())

    def mixed(self) -> str | None:
        """What is mixed, where a subclass that computes in its own way stands beside other tensors; None
        where all are of one kind. Who writes into tensors can't serve both: results have another class."""
        kinds = self._kinds()
        if kinds <= _PLAIN or all(kind.__torch_dispatch__ is _NO_WAY_OF_ITS_OWN for kind in kinds):
            return None
        names = {"Tensor" if kind in _PLAIN else kind.__name__ for kind in kinds}
        return None if len(names) == 1 else " beside ".join(sorted(names))

    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor that was given, those of masks included."""
        known: tuple[Tensor, ...] | None = self.__dict__.get("_tensors")  # every kernel asks
        if known is None:
            found = [*self.differentiable(), *self.frame.given()]
            if self.seed is not None:
                found.append(self.seed)
            if self.mask is not None:
                _collect(self.mask, found)
            self.__dict__["_tensors"] = known = tuple(found)
        return known

    def _kinds(self) -> frozenset[type[Tensor]]:
        known: frozenset[type[Tensor]] | None = self.__dict__.get("_kinds_known")
        if known is None:
            self.__dict__["_kinds_known"] = known = frozenset(type(x) for x in self.tensors())
        return known

    def differentiable(self) -> tuple[Tensor, ...]:
        """Every tensor that a gradient may flow to."""
        extra = () if self.bias is None else self.bias.tensors()
        sinks = () if self.sinks is None else (self.sinks,)
        return (self.q, self.k, self.v, *sinks, *extra)

    def with_differentiable(self, tensors: tuple[Tensor, ...], *, has_sinks: bool) -> Problem:
        """The same problem over other tensors, in the order of `differentiable()`."""
        q, k, v, *rest = tensors
        sinks = rest.pop(0) if has_sinks else None
        bias = None if self.bias is None else self.bias.with_tensors(*rest)
        return replace(self, q=q, k=k, v=v, sinks=sinks, bias=bias)


def _collect(mask: Mask, into: list[Tensor]) -> None:
    """Append the tensors of a mask, and of the masks in it."""
    for value in vars(mask).values():
        for one in value if isinstance(value, tuple | list) else (value,):
            if isinstance(one, Mask):
                _collect(one, into)
            elif isinstance(one, Tensor):
                into.append(one)


def score_dtype(inputs: torch.dtype) -> torch.dtype:
    """Scores, softmax and log-sum-exp are at least float32, whatever the inputs are."""
    return torch.float64 if inputs == torch.float64 else torch.float32
