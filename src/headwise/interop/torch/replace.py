"""Put headwise's attention into a model that was built with torch's."""

from __future__ import annotations

import warnings

from torch import nn

from headwise.interop.torch.drop_in import MultiheadAttention, complete


def replace_torch_attention(model: nn.Module) -> list[str]:
    """Turn every `torch.nn.MultiheadAttention` inside `model` (or `model` itself) into headwise's drop-in.

    In place: modules, parameters, hooks, sharing, device, dtype and train/eval mode stay what they are,
    so an optimiser or a state dict made before goes on working. The fused inference kernels of
    nn.TransformerEncoderLayer and nn.TransformerEncoder, which never call the attention module, are not
    taken any more, so the replaced modules are what runs in every mode.

    Returns:
        The replaced modules' names as in `model.named_modules()` ("" is the model itself), each module
        once. Calling again returns [].

    Warns:
        Where a subclass of `torch.nn.MultiheadAttention` is left alone: what it does is its own.
    """
    names, left = [], []
    for name, module in model.named_modules():
        if type(module) is nn.MultiheadAttention:
            module.__class__ = MultiheadAttention
            complete(module)
            names.append(name)
        elif isinstance(module, nn.MultiheadAttention) and not isinstance(module, MultiheadAttention):
            left.append(f"{name or 'the model itself'} ({type(module).__name__})")
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder) and any(
            isinstance(part, MultiheadAttention) for part in module.layers.modules()
        ):
            # decided when the encoder was made; nested tensors would set padding to 0 in eval mode only
            module.use_nested_tensor = False
    if left:
        warnings.warn(f"left alone, being subclasses with ways of their own: {', '.join(left)}", stacklevel=2)
    return names
