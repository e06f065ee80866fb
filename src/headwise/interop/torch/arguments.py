"""torch.nn.MultiheadAttention's arguments, checked and in headwise's terms.

torch's masks say True = ignore; a float mask is added to the scores, and its -inf entries ignore.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.masks import Allow, Causal, Mask, all_of
from headwise.masks.fits import readable
from headwise.positions import AddedScores


class ShapeError(AssertionError, ValueError):
    """A wrong shape. torch raises AssertionError for it and headwise ValueError: this is both."""


@dataclass(frozen=True, eq=False)
class MaskAndBias:
    """Who may attend, and what is added to the scores."""

    mask: Mask | None
    bias: AddedScores | None


def check_shapes(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Raise ShapeError unless the ranks agree. Returns whether the input has a batch dimension."""
    rank = query.dim()
    if rank not in (2, 3):
        raise ShapeError(
            f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor"
        )
    kind = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    if key.dim() != rank or value.dim() != rank:
        raise ShapeError(
            f"For {kind} `query`, expected `key` and `value` to be {rank}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != rank - 1:
        raise ShapeError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise ShapeError(
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
            f"{attn_mask.dim()}-D tensor instead"
        )
    if rank == 2 and attn_mask is not None and attn_mask.dim() == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        if attn_mask.shape != expected:
            raise ShapeError(f"Expected `attn_mask` shape to be {expected} but got {tuple(attn_mask.shape)}")
    return rank == 3


def mask_and_bias(
    *,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    is_causal: bool,
    batch: int,
    num_heads: int,
    q_len: int,
    k_len: int,
    extra_keys: int,
) -> MaskAndBias:
    """Both masks and the causal flag as one Mask and one bias.

    Boolean masks become `Allow(~mask)`; float masks become a bias, in which -inf means `ignore`, so
    that a row of -inf is a row that may attend to nothing, like a row of True. The last `extra_keys`
    keys (add_bias_kv, add_zero_attn) are hidden from nobody.

    Shapes: key_padding_mask [batch, k_len]; attn_mask [q_len, k_len] or [batch * num_heads, q_len, k_len].

    Raises:
        ShapeError, RuntimeError: where torch raises AssertionError, RuntimeError.
    """
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint: torch.nn.MultiheadAttention asks for both. "
            "Give attn_mask=torch.nn.Transformer.generate_square_subsequent_mask(length), or use "
            "headwise.MultiHeadAttention with mask=Causal()"
        )
    masks: list[Mask] = []
    biases: list[Tensor] = []
    if attn_mask is not None:
        _take(_per_head(attn_mask, batch, num_heads, q_len, k_len), "attn_mask", extra_keys, masks, biases)
    if is_causal:
        masks.append(Causal())
    if key_padding_mask is not None:
        if key_padding_mask.shape != (batch, k_len):
            raise ShapeError(
                f"Expected key_padding_mask to be [batch, keys] = {(batch, k_len)}, got "
                f"{tuple(key_padding_mask.shape)}"
            )
        _take(key_padding_mask[:, None, None, :], "key_padding_mask", extra_keys, masks, biases)
    if not biases:
        return MaskAndBias(all_of(*masks), None)
    # 0 and 1 were warned of above, and are added as torch adds them
    return MaskAndBias(all_of(*masks), AddedScores(sum(biases[1:], start=biases[0]), check_values=False))


def _take(given: Tensor, name: str, extra_keys: int, masks: list[Mask], biases: list[Tensor]) -> None:
    """Sort a mask [*, *, q_len or 1, k_len] into who may attend and what is added."""
    if given.dtype == torch.bool:
        masks.append(Allow(~_pad(given, extra_keys, value=False)))
        return
    if not torch.is_floating_point(given):
        raise ShapeError(f"only bool and floating types of {name} are supported, got {given.dtype}")
    given = _pad(given, extra_keys, value=0)
    ignored = given == float("-inf")
    # On an accelerator a look would wait for the device. What is computed is the same either way.
    look = given.device.type == "cpu" and readable(given)
    if look:
        _warn_of_zeros_and_ones(given.detach(), name)
    # As a mask too, so that what stands behind -inf can't leak, and blocks of it are skipped
    if not look or bool(ignored.any()):
        masks.append(Allow(~ignored))
    # A boolean mask written in numbers (nn.TransformerEncoder does it to every mask) has nothing to add
    if not look or given.requires_grad or not bool((ignored | (given == 0)).all()):
        biases.append(given)


def _per_head(attn_mask: Tensor, batch: int, num_heads: int, q_len: int, k_len: int) -> Tensor:
    if attn_mask.dim() == 2:
        if attn_mask.shape != (q_len, k_len):
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {tuple(attn_mask.shape)}, but should be {(q_len, k_len)}."
            )
        return attn_mask[None, None]
    expected = (batch * num_heads, q_len, k_len)
    if attn_mask.shape != expected:
        raise RuntimeError(
            f"The shape of the 3D attn_mask is {tuple(attn_mask.shape)}, but should be {expected}."
        )
    return attn_mask.view(batch, num_heads, q_len, k_len)


def _pad(mask: Tensor, extra_keys: int, *, value: float) -> Tensor:
    return torch.nn.functional.pad(mask, (0, extra_keys), value=value) if extra_keys else mask


def _warn_of_zeros_and_ones(mask: Tensor, name: str) -> None:
    """A float mask of 0 and 1 was most likely meant as boolean (pytorch#170400). torch adds it to the
    scores, so this does too, and says so."""
    if bool((mask == 1).any()) and bool(((mask == 0) | (mask == 1)).all()):
        warnings.warn(
            f"{name} is a float mask of only 0 and 1: as in torch it is added to the scores and hides "
            "nothing. Give a boolean mask, True = ignore, if hiding was meant",
            stacklevel=4,
        )
