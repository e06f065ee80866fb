"""The decoder, and the whole Transformer, against torch's with the same weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headwise.cache import GrowingCache, RingCache, StaticCache
from headwise.interop.torch import from_torch
from headwise.masks import Allow, KeyLengths, Window, all_of
from headwise.models import Decoder, DecoderLayer, Encoder, EncoderLayer
from headwise.multihead import MultiHeadAttention
from headwise.positions import RelativeBias, Rotary

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # torch's own, of its model

BATCH, SOURCE, TARGET, WIDTH, HEADS, INNER = 3, 7, 5, 12, 3, 17
LENGTHS = torch.tensor([7, 2, 5])


def torchs(norm: str) -> nn.Transformer:
    torch.manual_seed(0)
    model = nn.Transformer(
        WIDTH,
        HEADS,
        num_encoder_layers=2,
        num_decoder_layers=2,
        dim_feedforward=INNER,
        dropout=0.0,
        batch_first=True,
        norm_first=norm == "pre",
        dtype=torch.float64,
    )
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def load(ours: nn.Module, theirs: nn.Module, names: dict[str, str]) -> None:
    for mine, other in names.items():
        ours.get_submodule(mine).load_state_dict(theirs.get_submodule(other).state_dict())


def ours_of(theirs: nn.Transformer, norm: Any) -> tuple[Encoder, Decoder]:
    """headwise's stacks with torch's weights. torch's end with a LayerNorm in either kind of norm."""
    options: dict[str, Any] = {"norm": norm, "dropout": 0.0}
    common = {"feed_forward.inner": "linear1", "feed_forward.outer": "linear2"}
    encoder_layers, decoder_layers = [], []
    for layer in theirs.encoder.layers:
        mine = EncoderLayer(WIDTH, d_ff=INNER, self_attention=from_torch(layer.self_attn), **options)
        load(
            mine.double(),
            layer,
            {**common, "self_attention_norm": "norm1", "feed_forward_norm": "norm2"},
        )
        encoder_layers.append(mine)
    for layer in theirs.decoder.layers:
        one = DecoderLayer(
            WIDTH,
            d_ff=INNER,
            self_attention=from_torch(layer.self_attn),
            cross_attention=from_torch(layer.multihead_attn),
            **options,
        )
        names = {
            "self_attention_norm": "norm1",
            "cross_attention_norm": "norm2",
            "feed_forward_norm": "norm3",
        }
        load(one.double(), layer, {**common, **names})
        decoder_layers.append(one)
    return (
        Encoder(encoder_layers, final_norm=theirs.encoder.norm),
        Decoder(decoder_layers, final_norm=theirs.decoder.norm),
    )


def inputs() -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    return (
        torch.randn(BATCH, SOURCE, WIDTH, dtype=torch.float64),
        torch.randn(BATCH, TARGET, WIDTH, dtype=torch.float64),
    )


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_equals_torchs_transformer(norm: str, training: bool, padded: bool, masked: bool) -> None:
    theirs = torchs(norm).train(training)
    encoder, decoder = (stack.train(training) for stack in ours_of(theirs, norm))
    source, target = inputs()
    hidden = torch.arange(SOURCE) >= LENGTHS[:, None] if padded else None  # torch: True is hidden
    # in the encoder: two positions back and ahead; in the decoder: no position sees the one before it
    near = (torch.arange(SOURCE)[:, None] - torch.arange(SOURCE)).abs() <= 2 if masked else None
    before = torch.arange(TARGET)[:, None] - torch.arange(TARGET) == 1
    seen = (torch.ones(TARGET, TARGET).tril() > 0) & ~(before if masked else torch.zeros_like(before))
    expected = theirs(
        source,
        target,
        src_mask=None if near is None else ~near,
        tgt_mask=~seen,
        src_key_padding_mask=hidden,
        memory_key_padding_mask=hidden,
    )
    mask = all_of(KeyLengths(LENGTHS) if padded else None, Window(2, 2) if masked else None)
    memory = encoder(source, mask=mask)
    out = decoder(
        target,
        memory,
        memory_lengths=LENGTHS if padded else None,
        mask=Allow(~before) if masked else None,
    )
    if padded and masked:  # a padding query far from the real ones sees nothing: torch says NaN, headwise 0
        expected, out = expected[[0, 2]], out[[0, 2]]
    torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-11)


def test_gradients_equal_torchs() -> None:
    theirs = torchs("post")
    encoder, decoder = ours_of(theirs, "post")
    source, target = inputs()
    mine, other = source.clone().requires_grad_(), source.clone().requires_grad_()
    hidden = torch.arange(SOURCE) >= LENGTHS[:, None]
    causal = torch.ones(TARGET, TARGET, dtype=torch.bool).triu(1)
    theirs(
        other, target, tgt_mask=causal, src_key_padding_mask=hidden, memory_key_padding_mask=hidden
    ).sin().sum().backward()
    memory = encoder(mine, mask=KeyLengths(LENGTHS))
    decoder(target, memory, memory_lengths=LENGTHS).sin().sum().backward()
    torch.testing.assert_close(mine.grad, other.grad, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(
        decoder.layers[0].cross_attention.k_proj.weight.grad,
        from_torch_grad(theirs, WIDTH),
        rtol=1e-9,
        atol=1e-11,
    )


def from_torch_grad(theirs: nn.Transformer, width: int) -> Tensor:
    """Rows of the fused projection's gradient that belong to the keys."""
    grad: Tensor = theirs.decoder.layers[0].multihead_attn.in_proj_weight.grad
    return grad[width : 2 * width]


def small(norm: Any = "post", **options: Any) -> Decoder:
    torch.manual_seed(2)
    return Decoder.build(2, WIDTH, HEADS, INNER, norm=norm, dropout=0.0, **options).double()


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_no_position_sees_a_later_one(norm: str) -> None:
    decoder = small(norm)
    memory, target = inputs()
    changed = target.clone()
    changed[:, 3:] = torch.randn_like(changed[:, 3:])
    before, after = decoder(target, memory), decoder(changed, memory)
    torch.testing.assert_close(before[:, :3], after[:, :3], rtol=0, atol=0)
    assert not torch.allclose(before[:, 3:], after[:, 3:])


def test_padding_of_the_memory_is_not_seen() -> None:
    decoder = small()
    memory, target = inputs()
    spoilt = memory.clone()
    spoilt[1, 2:] = torch.nan
    out = decoder(target, spoilt, memory_lengths=LENGTHS)
    torch.testing.assert_close(out[1], decoder(target[1:2], memory[1:2, :2])[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("chunks", [[1] * TARGET, [2, 3], [5], [1, 4]])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_steps_equal_the_whole(chunks: list[int], norm: str) -> None:
    decoder = small(norm)
    memory, target = inputs()
    expected = decoder(target, memory, memory_lengths=LENGTHS)

    def static() -> StaticCache:
        return StaticCache(BATCH, HEADS, TARGET, WIDTH // HEADS, dtype=torch.float64)

    for make in (GrowingCache, static):
        caches = decoder.caches(make)
        parts, start = [], 0
        with torch.no_grad():
            for size in chunks:
                first = start == 0  # the memory and its lengths are needed once
                parts.append(
                    decoder(
                        target[:, start : start + size],
                        memory if first else None,
                        memory_lengths=LENGTHS if first else None,
                        caches=caches,
                    )
                )
                start += size
        torch.testing.assert_close(torch.cat(parts, 1), expected, rtol=1e-10, atol=1e-12)


def with_places(kind: str) -> Decoder:
    """A decoder whose cross-attention knows where queries and keys stand."""
    torch.manual_seed(3)
    options: dict[str, dict[str, Any]] = {
        "rotary": {"rotary": Rotary(WIDTH // HEADS)},
        "buckets": {"score_bias": RelativeBias(HEADS, buckets=8, max_distance=16)},
    }
    layers = [
        DecoderLayer(
            WIDTH,
            HEADS,
            INNER,
            cross_attention=MultiHeadAttention(WIDTH, HEADS, **options.get(kind, {})),
            dropout=0.0,
        )
        for _ in range(2)
    ]
    for layer in layers:
        for parameter in layer.cross_attention.parameters():
            nn.init.normal_(parameter, std=0.5)
    return Decoder(layers).double()


@pytest.mark.parametrize("chunks", [[1] * TARGET, [2, 3]])
@pytest.mark.parametrize("kind", ["rotary", "buckets", "window"])
def test_places_across_are_counted_from_the_start(kind: str, chunks: list[int]) -> None:
    """A token stands where it stands, in training, in a prefix, and in a step of its own."""
    decoder = with_places(kind)
    memory, target = inputs()
    mask = Window(1, 1) if kind == "window" else None
    expected = decoder(target, memory, memory_lengths=LENGTHS, memory_mask=mask)
    prefix = decoder(target[:, :2], memory, memory_lengths=LENGTHS, memory_mask=mask)
    torch.testing.assert_close(prefix, expected[:, :2], rtol=1e-10, atol=1e-12)
    caches, parts, start = decoder.caches(), [], 0
    with torch.no_grad():
        for size in chunks:
            given = (memory, LENGTHS) if start == 0 else (None, None)
            part = target[:, start : start + size]
            parts.append(decoder(part, given[0], memory_lengths=given[1], memory_mask=mask, caches=caches))
            start += size
    torch.testing.assert_close(torch.cat(parts, 1), expected, rtol=1e-10, atol=1e-12)


def test_windows_with_a_ring_equal_the_whole() -> None:
    decoder = small(cross=False)
    _, target = inputs()
    expected = decoder(target, mask=Window(2, 0))
    caches = decoder.caches(lambda: RingCache(2))
    parts = [decoder(target[:, i : i + 1], caches=caches) for i in range(TARGET)]
    torch.testing.assert_close(torch.cat(parts, 1), expected, rtol=1e-10, atol=1e-12)


def test_hypotheses_of_one_input_read_its_memory() -> None:
    """Two rows for each of three inputs, one copy of the memories; then the second input leaves."""
    decoder = small()
    memory, _ = inputs()
    steps = torch.randn(2 * BATCH, 4, WIDTH, dtype=torch.float64)
    twice = torch.arange(BATCH).repeat_interleave(2)
    expected = decoder(steps, memory[twice], memory_lengths=LENGTHS[twice])
    caches = decoder.caches()
    first = decoder(steps[:, :2], memory, memory_lengths=LENGTHS, caches=caches)
    torch.testing.assert_close(first, expected[:, :2], rtol=1e-10, atol=1e-12)
    assert caches.memory[0].view()[0].shape[0] == BATCH
    rows, inputs_left = torch.tensor([1, 0, 5, 5]), torch.tensor([0, 2])
    caches.select(rows, inputs_left)
    second = decoder(steps[rows][:, 2:], caches=caches)
    torch.testing.assert_close(second, expected[rows][:, 2:], rtol=1e-10, atol=1e-12)


def test_attention_of_another_kind_gets_a_memory_for_each_row() -> None:
    class Plain(nn.Module):
        """Cross-attention that isn't known to be free of positions."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = MultiHeadAttention(WIDTH, HEADS)

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return self.inner(*args, **kwargs)

    layer = DecoderLayer(WIDTH, HEADS, INNER, cross_attention=Plain(), dropout=0.0)
    decoder = Decoder([layer]).double()
    memory, target = inputs()
    expected = decoder(target, memory, memory_lengths=LENGTHS)
    caches = decoder.caches()
    assert not caches.shared
    decoder(target[:, :2], memory, memory_lengths=LENGTHS, caches=caches)
    rows = torch.tensor([2, 2, 0, 0])
    caches.select(rows, torch.tensor([2, 0]))
    out = decoder(target[rows][:, 2:], caches=caches)
    torch.testing.assert_close(out, expected[rows][:, 2:], rtol=1e-10, atol=1e-12)


def test_the_three_uses_of_attention_by_name() -> None:
    decoder = Decoder.build(6, 512, 8, 2048)
    assert isinstance(decoder.get_submodule("layers.5.self_attention"), MultiHeadAttention)
    assert isinstance(decoder.get_submodule("layers.5.cross_attention"), MultiHeadAttention)
    block, network, norm = 4 * 512**2, 2 * 512 * 2048 + 2048 + 512, 2 * 512
    assert sum(p.numel() for p in decoder.parameters()) == 6 * (2 * block + network + 3 * norm)
    assert not any(name.endswith("proj.bias") for name in decoder.state_dict())


def test_mistakes() -> None:
    memory, target = inputs()
    with pytest.raises(ValueError, match="there is none: give the encoder's output"):
        small()(target)
    with pytest.raises(ValueError, match="at least one layer"):
        Decoder([])
    with pytest.raises(ValueError, match="give num_heads"):
        DecoderLayer(WIDTH)
    with pytest.raises(ValueError, match="cross=False"):
        DecoderLayer(WIDTH, HEADS, cross=False, cross_attention=nn.Identity())
    with pytest.raises(ValueError, match="norm must be"):
        DecoderLayer(WIDTH, HEADS, norm="both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="batch dimensions"):
        small()(target, memory[:2])
