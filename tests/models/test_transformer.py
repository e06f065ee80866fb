"""The paper's Transformer: its formula, its configurations, its decoding."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import headwise as hw
from headwise.models import TABLE_3, Transformer, TransformerConfig, attention_from
from headwise.models.decoding import beam_search, greedy, sample
from headwise.models.table3 import find_row

VOCAB, WIDTH, HEADS, INNER = 23, 12, 3, 17
LENGTHS = [7, 1, 5, 2]
SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "num_layers": 2,
    "d_model": WIDTH,
    "d_ff": INNER,
    "num_heads": HEADS,
    "max_length": 40,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "pre": {"norm": "pre"},
    "learned": {"positions": "learned"},
    "rotary": {"positions": "rotary"},
    "none": {"positions": "none", "share_embeddings": False},
    "grouped": {"num_heads": 6, "num_kv_heads": 2, "d_k": 5, "d_v": 7},
    "window": {"window": 2, "norm": "pre"},
    "window, rotary": {"window": 3, "positions": "rotary", "num_decoder_layers": 1},
}


def build(**changes: Any) -> Transformer:
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(**(SIZES | changes))).double().eval()
    for parameter in model.parameters():  # away from what freshly drawn weights have in common
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def source() -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    return torch.randint(3, VOCAB, (len(LENGTHS), max(LENGTHS))), torch.tensor(LENGTHS)


def test_the_formula_by_hand() -> None:
    """One layer, one head, no dropout: section 3 of the paper in plain operations."""
    model = build(num_layers=1, num_heads=1, share_embeddings=True)
    ids, target = torch.tensor([[3, 11, 5]]), torch.tensor([[1, 7]])
    table = model.output.weight

    def attend(layer: nn.Module, x: Tensor, memory: Tensor, causal: bool) -> Tensor:
        q, k, v = layer.q_proj(x), layer.k_proj(memory), layer.v_proj(memory)  # type: ignore[operator]
        scores = q @ k.transpose(1, 2) / math.sqrt(WIDTH)
        if causal:
            scores = scores.masked_fill(torch.ones(scores.shape[1:]).triu(1) > 0, -torch.inf)
        return layer.out_proj(scores.softmax(-1) @ v)  # type: ignore[operator,no-any-return]

    def embed(tokens: Tensor) -> Tensor:
        positions = hw.sinusoidal(tokens.shape[1], WIDTH, dtype=torch.float64)
        return table[tokens] * math.sqrt(WIDTH) + positions

    (first,), (second,) = model.encoder.layers, model.decoder.layers
    x = embed(ids)
    x = first.self_attention_norm(x + attend(first.self_attention, x, x, False))
    memory = first.feed_forward_norm(x + first.feed_forward(x))
    y = embed(target)
    y = second.self_attention_norm(y + attend(second.self_attention, y, y, True))
    y = second.cross_attention_norm(y + attend(second.cross_attention, y, memory, False))
    y = second.feed_forward_norm(y + second.feed_forward(y))
    torch.testing.assert_close(model(ids, target), y @ table.T, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_target_sees_a_later_one_and_padding_changes_nothing(variant: str) -> None:
    model = build(**VARIANTS[variant])
    ids, lengths = source()
    target = torch.randint(3, VOCAB, (len(LENGTHS), 6))
    out = model(ids, target, lengths)
    later, spoilt = target.clone(), ids.clone()
    later[:, 4:] = (later[:, 4:] + 1) % VOCAB
    for row, length in enumerate(LENGTHS):
        spoilt[row, length:] = 9
    torch.testing.assert_close(model(ids, later, lengths)[:, :4], out[:, :4], rtol=0, atol=0)
    torch.testing.assert_close(model(spoilt, target, lengths), out, rtol=0, atol=0)
    for row, length in enumerate(LENGTHS):
        alone = model(ids[row : row + 1, :length], target[row : row + 1])
        torch.testing.assert_close(alone[0], out[row], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_cached_decoding_equals_uncached_and_batches_equal_one_by_one(variant: str) -> None:
    model = build(**VARIANTS[variant])
    ids, lengths = source()
    cached = greedy(model.stepper(ids, lengths), max_extra=9)
    plain = greedy(model.stepper(ids, lengths, cached=False), max_extra=9)
    beams = beam_search(model.stepper(ids, lengths), beam=3, max_extra=9)
    plain_beams = beam_search(model.stepper(ids, lengths, cached=False), beam=3, max_extra=9)
    one_beam = beam_search(model.stepper(ids, lengths), beam=1, max_extra=9)
    for row, length in enumerate(LENGTHS):
        alone = ids[row : row + 1, :length]
        (single,) = greedy(model.stepper(alone), max_extra=9)
        (single_beam,) = beam_search(model.stepper(alone), beam=3, max_extra=9)
        assert cached[row].tokens == plain[row].tokens == single.tokens == one_beam[row][0].tokens
        assert cached[row].log_probability == pytest.approx(single.log_probability, abs=1e-9)
        assert len(single.tokens) <= length + 9
        expected = [one.tokens for one in beams[row]]
        assert expected == [one.tokens for one in plain_beams[row]] == [one.tokens for one in single_beam]
        for one in beams[row]:
            assert one.log_probability == pytest.approx(probability_of(model, alone, one), abs=1e-9)
    # the seed was chosen so that outputs are neither all empty nor all of one length
    assert len({len(one.tokens) for one in cached}) > 1


@torch.no_grad()
def probability_of(model: Transformer, ids: Tensor, one: Any) -> float:
    """Of an output, from one call of the whole model over it."""
    config = model.config
    target = torch.tensor([[config.bos_id, *one.tokens]])
    logits = model(ids, target)
    logits[..., [config.pad_id, config.bos_id]] = -torch.inf  # these follow nothing
    wanted = torch.tensor([*one.tokens, *([config.eos_id] if one.finished else [])])
    log_p = logits[0].log_softmax(-1)[: len(wanted)]
    return float(log_p.gather(1, wanted[:, None]).sum())


def test_samples_are_of_the_model() -> None:
    model = build()
    ids, lengths = source()
    drawn = sample(
        model.stepper(ids, lengths), generator=torch.Generator().manual_seed(0), top_p=0.9, max_extra=5
    )
    for row, one in enumerate(drawn):
        alone = ids[row : row + 1, : LENGTHS[row]]
        assert one.log_probability == pytest.approx(probability_of(model, alone, one), abs=1e-9)


def test_nothing_to_read() -> None:
    """No inputs; inputs of no tokens, whose memory holds nothing: both decode."""
    model = build()
    ids, _ = source()
    assert greedy(model.stepper(ids[:0])) == beam_search(model.stepper(ids[:0])) == []
    empty = greedy(model.stepper(ids[:, :0]), max_extra=3)
    hidden = greedy(model.stepper(ids, torch.zeros(len(LENGTHS), dtype=torch.int64)), max_extra=3)
    assert [one.tokens for one in empty] == [one.tokens for one in hidden]
    assert all(len(one.tokens) <= 3 for one in empty)


@pytest.mark.parametrize("how", ["autocast", "converted"])
def test_in_16_bits(how: str) -> None:
    """Scores are summed in float32 or better; caches hold what the layers give."""
    model = build().float()
    ids, lengths = source()
    plain = model(ids, ids, lengths)
    if how == "converted":
        model = model.to(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16, enabled=how == "autocast"):
        assert (model(ids, ids, lengths) - plain).abs().mean() < 0.2
        one = greedy(model.stepper(ids, lengths), max_extra=4)
        assert [h.tokens for h in one] == [
            h[0].tokens for h in beam_search(model.stepper(ids, lengths), beam=1, max_extra=4)
        ]


def test_it_is_compiled_in_one_graph() -> None:
    model = build()
    ids, lengths = source()
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(ids, ids, lengths), model(ids, ids, lengths))


def test_learned_positions_end_the_output() -> None:
    model = build(positions="learned", max_length=8)
    model.output.weight.data[model.config.eos_id] = 0.0
    model.decoder.layers[-1].feed_forward_norm.bias.data += 3 * model.output.weight[5].sign()
    ids, lengths = source()
    outputs = greedy(model.stepper(ids, lengths))
    assert [len(one.tokens) for one in outputs] == [8] * 4


def test_embeddings_are_shared_as_in_the_paper() -> None:
    model = build()
    names = [name for name, _ in model.named_parameters() if "tokens" in name or "output" in name]
    assert names == ["source_embeddings.tokens.weight"]
    assert model.output is model.source_embeddings.tokens is model.target_embeddings.tokens
    apart = build(share_embeddings=False)
    assert (
        len({id(apart.output), id(apart.source_embeddings.tokens), id(apart.target_embeddings.tokens)}) == 3
    )


def test_initial_sizes() -> None:
    """Scaled embeddings and first logits have variance 1; projections are Xavier-uniform, biases 0."""
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocab_size=499, num_layers=1, d_model=64, d_ff=96, num_heads=4))
    model.requires_grad_(False)
    embedded = model.source_embeddings.tokens(torch.arange(499))
    assert float(embedded.var()) == pytest.approx(1, abs=0.05)
    x = nn.functional.layer_norm(torch.randn(200, 64), (64,))
    assert float(model.logits(x).var()) == pytest.approx(1, abs=0.05)
    network = model.encoder.layers[0].feed_forward
    bound = math.sqrt(6 / (64 + 96))
    assert 0.98 * bound < float(network.inner.weight.abs().max()) <= bound
    assert not network.inner.bias.any()


def test_the_base_model_is_the_default() -> None:
    assert find_row("base").config(37) == TransformerConfig(vocab_size=37)
    config = TransformerConfig(vocab_size=37)
    assert (config.num_layers, config.d_model, config.d_ff, config.num_heads) == (6, 512, 2048, 8)
    with torch.device("meta"):
        model = Transformer.base(37)
        assert (model.encoder.layers[0].self_attention.d_k, len(model.decoder.layers)) == (64, 6)
        big = Transformer.big(37, num_layers=1)
    assert (big.config.d_model, big.config.dropout, len(big.encoder.layers)) == (1024, 0.3, 1)


@pytest.mark.parametrize("row", TABLE_3, ids=lambda row: row.name)
def test_rows_of_table_3_by_name(row: Any) -> None:
    """In each row the heads' widths are what the table says, or d_model / h."""
    with torch.device("meta"):
        model = Transformer.table3(row.name.upper().replace(" ", ""), 37)
    attention = model.decoder.layers[0].cross_attention
    config = model.config
    assert attention.d_k == (config.d_k or config.d_model // config.num_heads)
    assert attention.d_v == (config.d_v or config.d_model // config.num_heads)
    name, _, value = row.name.partition("=")
    if value:
        field = {"A h": "num_heads", "C N": "num_layers"}.get(name, name[2:])
        assert getattr(config, field) == float(value)
    changed = {
        field.name
        for field in dataclasses.fields(config)
        if getattr(config, field.name) != getattr(TransformerConfig(vocab_size=37), field.name)
    }
    assert changed == set(row.changes)


def test_an_unknown_row_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match=r'no row \'F\'.*"base", "A h=1".*"big"'):
        Transformer.table3("F", 37)


def test_an_injected_attention_is_used_everywhere() -> None:
    """Grouped, turned, capped, with sinks; another one across."""
    uses: list[str] = []

    def make(use: str) -> nn.Module:
        uses.append(use)
        if use == "cross":
            return hw.MultiHeadAttention(WIDTH, 4, num_kv_heads=1)
        options: dict[str, Any] = {"rotary": hw.Rotary(6), "softcap": 9.0, "sinks": True}
        return hw.MultiHeadAttention(WIDTH, 4, num_kv_heads=2, d_k=6, **options)

    torch.manual_seed(0)
    config = TransformerConfig(**(SIZES | {"positions": "none"}))
    model = Transformer(config, attention=make).double().eval()
    assert uses == ["encoder"] * 2 + ["decoder", "cross"] * 2
    assert model.decoder.layers[1].cross_attention.num_kv_heads == 1
    ids, lengths = source()
    one = greedy(model.stepper(ids, lengths), max_extra=4)
    other = greedy(model.stepper(ids, lengths, cached=False), max_extra=4)
    assert [a.tokens for a in one] == [a.tokens for a in other]
    assert isinstance(attention_from(config)("cross"), hw.MultiHeadAttention)


def test_heads_are_found_by_the_recorder() -> None:
    model = build()
    ids, lengths = source()
    with hw.observe(model, hw.Entropy()) as seen:
        model(ids, ids, lengths)
    assert set(seen) == {
        f"{stack}.layers.{layer}.{use}"
        for stack, use in [
            ("encoder", "self_attention"),
            ("decoder", "self_attention"),
            ("decoder", "cross_attention"),
        ]
        for layer in range(2)
    }


def test_configurations_go_through_json() -> None:
    config = TransformerConfig(**(SIZES | VARIANTS["grouped"]), label_smoothing=0.2)
    assert TransformerConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    with pytest.raises(ValueError, match="no 'num_head': did you mean 'num_heads'"):
        TransformerConfig.from_dict({"vocab_size": 5, "num_head": 3})
    with pytest.raises(ValueError, match="no 'zzz': it has activation"):
        TransformerConfig.from_dict({"vocab_size": 5, "zzz": 3})
    with pytest.raises(ValueError, match="needs vocab_size"):
        TransformerConfig.from_dict({})


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"num_layers": 0}, ValueError, "num_layers must be at least 1, got 0"),
        ({"d_model": 5.0}, TypeError, "d_model must be a whole number, got 5.0"),
        ({"num_heads": True}, TypeError, "num_heads must be a whole number"),
        ({"window": -1}, ValueError, "window must be at least 0"),
        ({"norm": "middle"}, ValueError, "norm must be one of post, pre"),
        ({"activation": "swish"}, ValueError, "activation must be one of gelu, relu"),
        ({"positions": "learnt"}, ValueError, "positions must be one of sinusoidal, learned"),
        ({"dropout": 1.0}, ValueError, "0 <= dropout < 1"),
        ({"attention_dropout": 1.5}, ValueError, "0 <= attention_dropout < 1, got 1.5"),
        ({"dropout": "0.1"}, TypeError, "dropout must be a number, 0 <= dropout < 1, got '0.1'"),
        ({"label_smoothing": -0.1}, ValueError, "label_smoothing"),
        ({"eos_id": 23}, ValueError, r"eos_id=23: must be tokens of the vocabulary, 0 \.\. 22"),
        ({"num_decoder_layers": 0}, ValueError, "num_decoder_layers must be at least 1"),
    ],
)
def test_configurations_that_make_no_sense(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        TransformerConfig(**(SIZES | changes))


def test_mistakes_in_calls() -> None:
    model = build(positions="learned", max_length=8)
    ids, lengths = source()
    with pytest.raises(TypeError, match="source must be integers"):
        model(ids.float(), ids)
    with pytest.raises(TypeError, match=r"source must be integers .* got list"):
        model([[3, 4]], ids)
    with pytest.raises(ValueError, match=r"target must lie in 0 \.\. 22"):
        model(ids, ids + 30)
    with pytest.raises(ValueError, match=r"source must be \[batch, length\]"):
        model(ids[0], ids)
    with pytest.raises(ValueError, match="9 tokens are more than the 8 positions"):
        model(torch.ones(1, 9, dtype=torch.int64), torch.ones(1, 2, dtype=torch.int64))
    with pytest.raises(ValueError, match="source_lengths must have one number for each of the 4"):
        model(ids, ids, lengths[:2])
    with pytest.raises(ValueError, match="each source has one target"):
        model(ids, ids[:2])
    with pytest.raises(ValueError, match=r"call model.eval\(\)"):
        model.train().stepper(ids)
    with pytest.raises(ValueError, match="lengths go from 0 to the number of keys"):
        model.eval().encode(ids, lengths + 3)


def test_the_encoder_is_exported_with_free_sizes() -> None:
    class Encode(nn.Module):
        def __init__(self, model: Transformer) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
            return self.model.encode(ids, lengths)

    model = build().float()
    batch, length = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("length", min=2, max=512)
    ids, lengths = source()
    exported = torch.export.export(
        Encode(model),
        (ids, lengths),
        dynamic_shapes={"ids": {0: batch, 1: length}, "lengths": {0: batch}},
    )
    longer, ends = torch.randint(3, VOCAB, (2, 19)), torch.tensor([19, 11])
    torch.testing.assert_close(
        exported.module()(longer, ends), model.encode(longer, ends), rtol=1e-4, atol=1e-5
    )
