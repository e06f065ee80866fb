"""Tensors in safetensors files: weights that share memory are written once, and nothing is ever unpickled."""

from __future__ import annotations

import json
from collections.abc import Mapping

from torch import Tensor, nn

from headwise.training.extras import need

WHAT = "reading and writing checkpoints"


def pack(tensors: Mapping[str, Tensor]) -> bytes:
    """A safetensors file of these tensors.

    Names that stand for one and the same memory (an embedding that is also the output projection) are kept in
    the file's metadata as other name -> written name, the convention of `safetensors.torch.load_model`.

    Raises:
        TypeError: an entry that isn't a tensor.
    """
    first: dict[object, str] = {}
    kept: dict[str, Tensor] = {}
    aliases: dict[str, str] = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}: checkpoints hold tensors only")
        key = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, tensor.device)
        if tensor.numel() and key in first:
            aliases[name] = first[key]
            continue
        first[key] = name
        kept[name] = tensor.detach().to("cpu").contiguous().clone()
    save = need("safetensors.torch", WHAT).save
    packed: bytes = save(kept, metadata={"format": "pt", **aliases})
    return packed


def unpack(content: bytes) -> dict[str, Tensor]:
    """The tensors of a safetensors file, those with several names under each.

    Raises:
        ValueError: it isn't one, or is damaged.
    """
    module = need("safetensors.torch", WHAT)
    try:
        tensors: dict[str, Tensor] = module.load(content)
        header = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + header]).get("__metadata__", {})
    except Exception as error:
        raise ValueError(f"no safetensors file, or a damaged one ({error})") from None
    for name, written in metadata.items():
        if written in tensors and name not in tensors:
            tensors[name] = tensors[written]
    return tensors


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], origin: str) -> None:
    """Put weights into a model, all of them.

    Raises:
        ValueError: names or shapes differ; the first difference is named.
    """
    own = model.state_dict()
    missing = [name for name in own if name not in tensors]
    unknown = [name for name in tensors if name not in own]
    if missing or unknown:
        words = [f"lacks {missing[0]} ({len(missing)} in all)"] if missing else []
        words += [f"has {unknown[0]}, which the model lacks ({len(unknown)} in all)"] if unknown else []
        raise ValueError(f"{origin} is of another model: it {' and '.join(words)}")
    for name, tensor in own.items():
        if tensor.shape != tensors[name].shape:
            raise ValueError(
                f"{origin} is of another model: {name} is {list(tensors[name].shape)} there and "
                f"{list(tensor.shape)} in the model"
            )
    model.load_state_dict(dict(tensors))
