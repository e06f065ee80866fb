"""torch.nn.MultiheadAttention's face on headwise's attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from headwise.attention import problem, solve
from headwise.interop.torch.arguments import ShapeError, check_shapes, mask_and_bias
from headwise.interop.torch.nested import from_padded, to_padded
from headwise.interop.torch.storage import keep_off_fused_kernels, packed_bias, packed_weight, projections
from headwise.kernels.measure import measure
from headwise.kernels.problem import Problem
from headwise.observers import Weights

_PROJECTIONS = ("q_proj_weight", "k_proj_weight", "v_proj_weight")


class MultiheadAttention(nn.MultiheadAttention):
    """A drop-in for `torch.nn.MultiheadAttention`: same constructor, initialisation, parameter names,
    masks (True = ignore), defaults and return values, computed by `headwise.attention`.

        head_i = softmax(Q_i K_i^T / sqrt(d) + masks) V_i,   d = embed_dim / num_heads
        out = Concat(head_1, ..., head_h) W_out^T + b_out

    What differs, on purpose:
    - A query that may attend to nothing gives weights 0 and output b_out, and gradients 0; torch gives
      NaN or not, by mode (pytorch#41508).
    - There is one path. train() and eval(), grad or no grad, need_weights or not: the same numbers
      (dropout aside). torch's fused inference kernels are never taken (see `keep_off_fused_kernels`).
    - is_causal=True really hides the future, in every mode, besides what attn_mask hides
      (pytorch#99282). As in torch it needs attn_mask.
    - Weights are the probabilities before dropout (pytorch#42929).
    - out_proj is called as a module, so hooks and adapters on it work.
    - Integer masks are refused, as in torch; float masks of only 0 and 1 are added, as in torch, with
      a warning.

    The list `attention_hooks` holds functions called with (problem, log-sum-exp) after each computation,
    as in headwise's layer, so `headwise.observe` sees every head of it.

    It is a subclass, so `isinstance(m, torch.nn.MultiheadAttention)` holds and code that looks for one
    finds it.

    Shapes, batch_first=False (torch's default): query [q_len, batch, embed_dim], key [k_len, batch,
    kdim], value [k_len, batch, vdim]; batch_first=True: batch first; unbatched: no batch dimension.

    Raises:
        ShapeError (an AssertionError, as torch's, and a ValueError): shapes or mask types that don't fit.
        RuntimeError: as torch, an attn_mask of the wrong size, or is_causal without attn_mask.
    """

    attention_hooks: list[Callable[[Problem, Tensor], object]]

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            embed_dim,
            num_heads,
            dropout,
            bias,
            add_bias_kv,
            add_zero_attn,
            kdim,
            vdim,
            batch_first,
            device,
            dtype,
        )
        complete(self)

    def __getattr__(self, name: str) -> Any:
        found: Any = super().__getattr__(name)
        if found is None and name in _PROJECTIONS:
            return None if packed_weight(self) is None else projections(self)[_PROJECTIONS.index(name)]
        return found

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        complete(self)

    def _reset_parameters(self) -> None:
        # torch's own looks at _qkv_same_embed_dim for the storage; here the storage is asked itself
        self._qkv_same_embed_dim = self._parameters.get("in_proj_weight") is not None
        try:
            super()._reset_parameters()
        finally:
            keep_off_fused_kernels(self)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns (output, weights), the weights None unless need_weights: the mean over heads
        [batch, q_len, k_len], or each head's [batch, num_heads, q_len, k_len]."""
        batched = check_shapes(query, key, value, key_padding_mask, attn_mask, self.num_heads)
        if query.is_nested or key.is_nested or value.is_nested:
            return self._forward_nested(
                query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
            )
        self._check_sizes(query, key, value, batched)
        if not batched and key_padding_mask is not None:
            key_padding_mask = key_padding_mask[None]

        q, k, v = (self._split(x, batched) for x in self._project(query, key, value))
        batch, _, q_len, _ = q.shape
        k_len = k.shape[-2]
        k, v, extra_keys = self._with_extra_keys(k, v)
        seen = mask_and_bias(
            key_padding_mask=key_padding_mask,
            attn_mask=attn_mask,
            is_causal=is_causal,
            batch=batch,
            num_heads=self.num_heads,
            q_len=q_len,
            k_len=k_len,
            extra_keys=extra_keys,
        )
        k_positions = None
        if is_causal and extra_keys:
            # at position 0, where the first query stands, extra keys are in nobody's future
            at = torch.arange(k_len + extra_keys, device=k.device)
            k_positions = at.masked_fill(at >= k_len, 0)
        call = problem(
            q,
            k,
            v,
            mask=seen.mask,
            bias=seen.bias,
            dropout=self.dropout if self.training else 0.0,
            align="start",  # torch's causal masks: query i sees keys 0 .. i
            k_positions=k_positions,
        )
        heads, lse = solve(call)  # [batch, heads, q_len, head_dim]
        for hook in tuple(self.attention_hooks):  # another thread may take its own away
            hook(call, lse)
        out = self.out_proj(self._join(heads, batched))
        if not need_weights:
            return out, None
        weights: Tensor = measure(call, [Weights()], lse=lse).weights.to(q.dtype)
        if average_attn_weights:
            weights = weights.mean(dim=1)  # [batch, q_len, keys]
        return out, weights if batched else weights.squeeze(0)

    def _check_sizes(self, query: Tensor, key: Tensor, value: Tensor, batched: bool) -> None:
        for name, x, width in (
            ("query", query, self.embed_dim),
            ("key", key, self.kdim),
            ("value", value, self.vdim),
        ):
            if x.shape[-1] != width:
                raise ShapeError(
                    f"was expecting embedding dimension of {width} for {name}, but got {x.shape[-1]}"
                )
        if key.shape[:-1] != value.shape[:-1]:
            raise ShapeError(
                f"key's sequence and batch dims {tuple(key.shape[:-1])} do not match value's "
                f"{tuple(value.shape[:-1])}"
            )
        dim = 0 if self.batch_first else 1
        if batched and query.shape[dim] != key.shape[dim]:
            raise ShapeError(
                f"query has batch size {query.shape[dim]} and key {key.shape[dim]}: they must be equal "
                f"(batch_first={self.batch_first}, query {tuple(query.shape)}, key {tuple(key.shape)})"
            )

    def _project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
        packed, bias = packed_weight(self), packed_bias(self)
        if packed is not None and query is key and key is value:
            return linear(query, packed, _like(bias, packed)).chunk(3, dim=-1)
        biases = (None, None, None) if bias is None else bias.chunk(3)
        parts = zip((query, key, value), projections(self), biases, strict=True)
        return tuple(linear(x, weight, _like(part, weight)) for x, weight, part in parts)

    def _split(self, x: Tensor, batched: bool) -> Tensor:
        """To [batch, num_heads, length, head_dim], without a copy."""
        x = x.unflatten(-1, (self.num_heads, self.head_dim))
        if not batched:
            return x.transpose(0, 1)[None]
        return x.transpose(1, 2) if self.batch_first else x.permute(1, 2, 0, 3)

    def _join(self, heads: Tensor, batched: bool) -> Tensor:
        """From [batch, num_heads, q_len, head_dim] to the layout of the query."""
        if not batched:
            return heads[0].transpose(0, 1).flatten(-2)
        return (heads.transpose(1, 2) if self.batch_first else heads.permute(2, 0, 1, 3)).flatten(-2)

    def _with_extra_keys(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, int]:
        """Append the learned key and value (add_bias_kv) and the zero ones (add_zero_attn)."""
        extra = 0
        if (self.bias_k is None) != (self.bias_v is None):
            raise ShapeError("bias_k and bias_v go together, but only one of them is set")
        if self.bias_k is not None and self.bias_v is not None:
            split = (1, self.num_heads, 1, self.head_dim)
            k, v = (
                torch.cat([x, b.view(split).to(x.dtype).expand(x.shape[0], -1, -1, -1)], dim=-2)
                for x, b in ((k, self.bias_k), (v, self.bias_v))
            )
            extra += 1
        if self.add_zero_attn:
            k, v = (nn.functional.pad(x, (0, 0, 0, 1)) for x in (k, v))
            extra += 1
        return k, v, extra

    def _forward_nested(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None,
        need_weights: bool,
        attn_mask: Tensor | None,
        average_attn_weights: bool,
        is_causal: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """Nested tensors: padded, computed with a key padding mask, and nested again. Weights come padded."""
        if not (query.is_nested and key.is_nested and value.is_nested):
            raise ShapeError("query, key and value must be nested tensors together, or none of them")
        if key_padding_mask is not None or attn_mask is not None or is_causal:
            raise ShapeError("a nested tensor carries its lengths: masks are not supported beside it")
        if not self.batch_first:
            raise ShapeError("a nested tensor has its batch first: construct with batch_first=True")
        padded: dict[int, tuple[Tensor, Tensor]] = {}  # so that one tensor given thrice stays one
        for x in (query, key, value):
            if id(x) not in padded:
                padded[id(x)] = to_padded(x)
        (q, q_real), (k, k_real), (v, _) = (padded[id(x)] for x in (query, key, value))
        out, weights = self.forward(
            q, k, v, ~k_real, need_weights=need_weights, average_attn_weights=average_attn_weights
        )
        if weights is not None:
            rows = q_real if average_attn_weights else q_real[:, None]
            weights = weights.masked_fill(~rows[..., None], 0)
        return from_padded(out, like=query), weights


def complete(module: nn.MultiheadAttention) -> None:
    """Give a torch.nn.MultiheadAttention what the drop-in has besides."""
    keep_off_fused_kernels(module)
    module.__dict__.setdefault("attention_hooks", [])


def _like(bias: Tensor | None, weight: Tensor) -> Tensor | None:
    return bias if bias is None or bias.dtype == weight.dtype else bias.to(weight.dtype)
