"""The encoder against torch's, and its own promises."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from headwise.interop.torch import from_torch
from headwise.masks import Causal, KeyLengths, Mask
from headwise.models import Encoder, EncoderLayer, FeedForward
from headwise.multihead import MultiHeadAttention

BATCH, LENGTH, WIDTH, HEADS, INNER = 2, 7, 12, 3, 17


def like(theirs: nn.TransformerEncoderLayer, *, norm: str, activation: str) -> EncoderLayer:
    """headwise's layer with the weights of torch's."""
    layer = EncoderLayer(
        WIDTH,
        d_ff=INNER,
        self_attention=from_torch(theirs.self_attn),
        norm=norm,  # type: ignore[arg-type]
        activation=activation,  # type: ignore[arg-type]
        dropout=0.0,
    ).double()
    parts = [
        (layer.feed_forward.inner, theirs.linear1),
        (layer.feed_forward.outer, theirs.linear2),
        (layer.self_attention_norm, theirs.norm1),
        (layer.feed_forward_norm, theirs.norm2),
    ]
    for ours, other in parts:
        ours.load_state_dict(other.state_dict())  # type: ignore[union-attr]
    return layer


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("causal", [False, True])
def test_equals_torch(norm: str, activation: str, causal: bool) -> None:
    torch.manual_seed(0)
    theirs = [
        nn.TransformerEncoderLayer(
            WIDTH,
            HEADS,
            INNER,
            dropout=0.0,
            activation=activation,
            batch_first=True,
            norm_first=norm == "pre",
            dtype=torch.float64,
        )
        for _ in range(2)
    ]
    for layer in theirs:
        for parameter in layer.parameters():
            nn.init.normal_(parameter, std=0.3)
    final = nn.LayerNorm(WIDTH, dtype=torch.float64) if norm == "pre" else None
    ours = Encoder([like(layer, norm=norm, activation=activation) for layer in theirs], final_norm=final)
    x = torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.float64)
    expected = x
    hidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1) if causal else None
    for layer in theirs:
        expected = layer(expected, src_mask=hidden)
    expected = expected if final is None else final(expected)
    out = ours(x, mask=Causal() if causal else None)
    torch.testing.assert_close(out, expected, rtol=1e-10, atol=1e-12)


def test_the_papers_base_model_has_the_papers_parameters() -> None:
    """Per layer: 4 d_model^2 in attention (no biases), 2 d_model d_ff + d_ff + d_model in the
    feed-forward network, 2 x 2 d_model in LayerNorms."""
    with torch.device("meta"):
        encoder = Encoder.build(6, 512, 8, 2048)
    layer = 4 * 512**2 + 2 * 512 * 2048 + 2048 + 512 + 4 * 512
    assert sum(p.numel() for p in encoder.parameters()) == 6 * layer
    assert encoder.final_norm is None


def test_pre_norm_ends_with_a_norm_and_attention_is_found_by_name() -> None:
    encoder = Encoder.build(4, WIDTH, HEADS, norm="pre")
    out = encoder(torch.randn(BATCH, LENGTH, WIDTH))
    torch.testing.assert_close(out.mean(-1), torch.zeros(BATCH, LENGTH), rtol=0, atol=1e-5)
    assert isinstance(encoder.get_submodule("layers.3.self_attention"), MultiHeadAttention)
    assert encoder.layers[0].feed_forward.inner.out_features == 4 * WIDTH


def test_layers_have_parameters_of_their_own() -> None:
    """torch's stack starts with copies of one layer (its documentation warns of it); this one doesn't."""
    encoder = Encoder.build(2, WIDTH, HEADS)
    first, second = (layer.self_attention.q_proj.weight for layer in encoder.layers)
    assert not torch.equal(first, second)


def test_padding_changes_no_real_token() -> None:
    encoder = Encoder.build(3, WIDTH, HEADS, INNER).double().eval()
    x = torch.randn(BATCH, LENGTH, WIDTH, dtype=torch.float64)
    lengths = torch.tensor([3, 7])
    out = encoder(x, mask=KeyLengths(lengths))
    for one, text, length in zip(out, x, lengths.tolist(), strict=True):
        alone = encoder(text[None, :length])[0]
        torch.testing.assert_close(one[:length], alone, rtol=1e-10, atol=1e-12)


def test_same_numbers_in_train_and_eval_without_dropout_and_others_with_it() -> None:
    x = torch.randn(BATCH, LENGTH, WIDTH)
    still = Encoder.build(2, WIDTH, HEADS, dropout=0.0)
    assert torch.equal(still.train()(x), still.eval()(x))
    dropping = Encoder.build(2, WIDTH, HEADS, dropout=0.5)
    assert not torch.equal(dropping.train()(x), dropping.eval()(x))
    attention_only = Encoder.build(2, WIDTH, HEADS, dropout=0.0, attention_dropout=0.5)
    assert not torch.equal(attention_only.train()(x), attention_only.eval()(x))


def test_injected_parts_are_used() -> None:
    class Halve(nn.Module):
        def forward(self, x: Tensor, *, mask: Mask | None = None) -> Tensor:
            return x / 2

    layer = EncoderLayer(WIDTH, self_attention=Halve(), feed_forward=nn.Identity(), norm="pre", dropout=0.0)
    x = torch.randn(BATCH, LENGTH, WIDTH)
    middle = x + layer.self_attention_norm(x) / 2
    torch.testing.assert_close(layer(x), middle + layer.feed_forward_norm(middle))


def test_feed_forward_by_hand() -> None:
    network = FeedForward(2, 3)
    with torch.no_grad():
        network.inner.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
        network.inner.bias.copy_(torch.tensor([0.0, 0.0, -1.0]))
        network.outer.weight.copy_(torch.tensor([[1.0, 2.0, 4.0], [0.0, 0.0, 8.0]]))
        network.outer.bias.copy_(torch.tensor([0.5, 0.25]))
    # inner (3, -2, 0) -> relu (3, 0, 0) -> 3 x column 1 + bias
    assert network(torch.tensor([3.0, -2.0])).tolist() == [3.5, 0.25]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "middle"}, "norm must be"),
        ({"activation": "swish"}, "activation must be one of"),
        ({"dropout": 1.0}, "dropout=1.0: .* 0 <= dropout < 1"),
        ({"num_heads": None}, "num_heads, or a self_attention"),
        ({"d_ff": 0}, "at least 1"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EncoderLayer(**({"d_model": WIDTH, "num_heads": HEADS} | options))  # type: ignore[arg-type]


def test_an_encoder_has_layers() -> None:
    with pytest.raises(ValueError, match="at least one layer"):
        Encoder([])
