"""A page that needs nothing else: its style, scripts and numbers stand in it."""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import torch
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from torch import Tensor

from headwise._version import __version__

THOUSAND = 1000  # weights are shown to three decimals


def assemble(template: str, *, styles: Sequence[str], scripts: Sequence[str], **content: Any) -> str:
    """A template with its style and scripts, which the page's security policy names by their hashes."""
    environment = Environment(
        loader=PackageLoader("headwise.cli"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False, "ensure_ascii": False}
    style = "\n".join(_source(environment, name) for name in styles)
    script = "\n".join(_source(environment, name) for name in scripts)
    page = environment.get_template(template).render(
        version=__version__,
        # these two were written here, so they are no text to escape
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        **content,
    )
    return page + "\n"


def pack(weights: Tensor) -> str:
    """Weights as whole thousandths. The high bytes stand before the low ones, which compresses better."""
    return packed((weights.double() * THOUSAND).round().clamp(0, THOUSAND))


def packed(numbers: Tensor) -> str:
    """Whole numbers below 65,536."""
    whole = numbers.to(torch.int32).flatten()
    high, low = (whole >> 8).to(torch.uint8), (whole & 255).to(torch.uint8)
    raw = bytes(torch.cat([high, low]).tolist())  # not .numpy(): NumPy is no dependency
    return base64.b64encode(zlib.compress(raw, 9)).decode("ascii")


def png(pixels: Tensor) -> str:
    """An image, uint8 [1 or 3, height, width], as a data URI of a PNG."""
    channels, height, width = pixels.shape
    if channels not in (1, 3):
        raise ValueError(f"{channels} channels: a PNG of ours has 1 or 3")
    rows = torch.zeros(height, 1 + width * channels, dtype=torch.uint8)  # each after its filter: none
    rows[:, 1:] = pixels.permute(1, 2, 0).reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(rows.flatten().tolist()), 9)), (b"IEND", b""))
    whole = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
    return "data:image/png;base64," + base64.b64encode(whole).decode("ascii")


def _source(environment: Environment, name: str) -> str:
    loader = environment.loader
    if loader is None:
        raise RuntimeError("the environment has no loader")
    return loader.get_source(environment, name)[0].strip()


def _hash(source: str) -> str:
    """What a content security policy calls an inline element by: the hash of its exact text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode("ascii")
