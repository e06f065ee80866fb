"""Copying from the source: the mixture by hand, decoding, a task that needs it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import headwise as hw
from headwise.models import Transformer, TransformerConfig, count_parameters
from headwise.models.decoding import beam_search, greedy, sample
from headwise.models.pointer import Places, mixed
from headwise.training import token_loss

VOCAB, WIDTH, HEADS, INNER = 23, 12, 3, 17
LENGTHS = [7, 1, 5, 2]
SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "num_layers": 2,
    "d_model": WIDTH,
    "d_ff": INNER,
    "num_heads": HEADS,
    "copy": True,
}


def build(**changes: Any) -> Transformer:
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(**(SIZES | changes))).double().eval()
    for parameter in model.parameters():  # away from what freshly drawn weights have in common
        parameter.data += 0.3 * torch.randn_like(parameter)
    return model


def source() -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    return torch.randint(3, 11, (len(LENGTHS), max(LENGTHS))), torch.tensor(LENGTHS)


def by_hand(logits: Tensor, copying: Tensor, odds: Tensor, ids: Tensor) -> Tensor:
    """p_gen softmax(logits) + (1 - p_gen) sum of the weights of each token's places."""
    p_gen = torch.sigmoid(-odds)
    spread = nn.functional.one_hot(ids, logits.shape[-1]).to(copying)  # [n, S, V]
    return p_gen * logits.softmax(-1) + (1 - p_gen) * copying @ spread


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 3),
    length=st.integers(1, 13),
    words=st.integers(1, 11),
    lean=st.sampled_from([-50.0, -3.0, 0.0, 3.0, 50.0]),
)
def test_the_mixture_is_the_formula(seed: int, n: int, length: int, words: int, lean: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = 5 * torch.randn(n, 5, VOCAB, generator=generator, dtype=torch.float64)
    ids = torch.randint(words, (n, length), generator=generator)
    copying = torch.randn(n, 5, length, generator=generator, dtype=torch.float64)
    odds = lean + torch.randn(n, 5, 1, generator=generator, dtype=torch.float64)
    given = tuple(one.requires_grad_() for one in (logits, copying, odds))
    expected = by_hand(logits, copying.softmax(-1), odds, ids)
    found = mixed(logits, copying.softmax(-1), odds, Places.of(ids)).softmax(-1)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found.sum(-1), torch.ones_like(found[..., 0]))
    weights = torch.rand(expected.shape, generator=generator, dtype=torch.float64)
    for mine, theirs in zip(
        torch.autograd.grad((found * weights).sum(), given),
        torch.autograd.grad((expected * weights).sum(), given),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("size", [0.0, 1e4])
@pytest.mark.parametrize("odds", [-1e4, 1e4])
@pytest.mark.parametrize("weight", [1e-38, 1.0])
def test_float32_never_overflows(size: float, odds: float, weight: float) -> None:
    logits = torch.tensor([[[size, 0.0, -size, 1.0, 0.0]]], requires_grad=True)
    copying = torch.tensor([[[weight, 1 - weight, 0.0]]], requires_grad=True)
    lean = torch.tensor([[[odds]]], requires_grad=True)
    scores = mixed(logits, copying, lean, Places.of(torch.tensor([[2, 1, 0]])))
    for target in range(5):
        token_loss(scores, torch.tensor([[target]]), smoothing=0.1).loss_sum.backward(retain_graph=True)
    assert scores.isfinite().all()
    for one in (logits, lean):
        assert one.grad is not None
        assert one.grad.isfinite().all()


def test_the_model_by_hand() -> None:
    """The copy distribution is one head of ordinary attention; padding is never copied."""
    model = build()
    assert model.pointer is not None
    ids, lengths = source()
    target = torch.randint(3, VOCAB, (4, 5))
    with hw.observe(model.pointer, hw.Weights()) as seen:
        scores = model(ids, target, lengths)
    copying = seen["copy_attention"].weights[:, 0]
    assert [int(row.count_nonzero()) for row in copying[:, 0]] == LENGTHS
    memory = model.encode(ids, lengths)
    states = model.decoder_states(target, memory, lengths)
    head = model.pointer.copy_attention
    context = copying @ memory @ head.v_proj.weight.T @ head.out_proj.weight.T
    odds = -(states @ model.pointer.gate.weight.T + model.pointer.gate.bias + context)
    expected = by_hand(model.logits(states), copying, odds, ids)
    torch.testing.assert_close(scores.softmax(-1), expected)
    assert (expected - model.logits(states).softmax(-1)).abs().max() > 0.01


def test_without_copying_it_is_the_plain_model() -> None:
    """p_gen = 1: the same numbers; a model without a pointer has its parameters and no others."""
    model = build()
    plain = build(copy=False)
    missing = plain.load_state_dict(model.state_dict(), strict=False)
    assert not missing.missing_keys
    assert {name.partition(".")[0] for name in missing.unexpected_keys} == {"pointer"}
    assert model.pointer is not None
    model.pointer.gate.bias.data.fill_(torch.inf)
    ids, lengths = source()
    assert torch.equal(model(ids, ids, lengths), plain(ids, ids, lengths))


def test_sources_are_read_alone() -> None:
    """Neither padding nor the rest of the batch changes a score, and what comes later doesn't either."""
    model = build()
    ids, lengths = source()
    target = torch.randint(3, VOCAB, (4, 5))
    together = model(ids, target, lengths)
    for row, length in enumerate(LENGTHS):
        alone = model(ids[row : row + 1, :length], target[row : row + 1])
        torch.testing.assert_close(together[row : row + 1], alone)
    torch.testing.assert_close(model(ids, target[:, :3], lengths), together[:, :3])


VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "pre": {"norm": "pre"},
    "rotary": {"positions": "rotary", "num_decoder_layers": 1},
    "window": {"window": 2, "share_embeddings": False},
}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("padded", [True, False])
def test_cached_decoding_writes_the_same(name: str, padded: bool) -> None:
    model = build(**VARIANTS[name])
    ids, lengths = source()
    given = (ids, lengths) if padded else (ids,)
    for decode in (
        lambda stepper: [[one] for one in greedy(stepper, max_extra=5)],
        lambda stepper: beam_search(stepper, beam=3, max_extra=5),
        lambda stepper: [[one] for one in sample(stepper, max_extra=5, generator=seeded())],
    ):
        cached, anew = decode(model.stepper(*given)), decode(model.stepper(*given, cached=False))
        for one, other in zip(cached, anew, strict=True):
            assert [a.tokens for a in one] == [b.tokens for b in other]
            assert [a.log_probability for a in one] == pytest.approx([b.log_probability for b in other])
    for row, length in enumerate(LENGTHS if padded else []):
        alone = beam_search(model.stepper(ids[row : row + 1, :length]), beam=3, max_extra=5)[0]
        together = beam_search(model.stepper(ids, lengths), beam=3, max_extra=5)[row]
        assert [a.tokens for a in alone] == [b.tokens for b in together]


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(3)


class Wrapped(nn.Module):
    """An attention of which nothing is known."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = hw.MultiHeadAttention(WIDTH, 2)

    def forward(self, *args: Any, **options: Any) -> Any:
        return self.inner(*args, **options)


def test_a_memory_that_hypotheses_do_not_share() -> None:
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(**SIZES), attention=lambda use: Wrapped()).double().eval()
    assert not model.caches().shared
    ids, lengths = source()
    cached = beam_search(model.stepper(ids, lengths), beam=3, max_extra=4)
    anew = beam_search(model.stepper(ids, lengths, cached=False), beam=3, max_extra=4)
    assert [[one.tokens for one in row] for row in cached] == [[one.tokens for one in row] for row in anew]


def test_inputs_without_tokens_and_batches_without_inputs() -> None:
    model = build()
    ids, _ = source()
    assert greedy(model.stepper(ids[:0])) == beam_search(model.stepper(ids[:0])) == []
    empty = greedy(model.stepper(ids[:, :0]), max_extra=3)
    hidden = greedy(model.stepper(ids, torch.zeros(len(LENGTHS), dtype=torch.int64)), max_extra=3)
    assert [one.tokens for one in empty] == [one.tokens for one in hidden]


def test_in_bfloat16_it_sums_to_one_and_gradients_are_close() -> None:
    model = build().float().train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    ids, lengths = source()
    grads = []
    for enabled in (False, True):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            scores = model(ids, ids, lengths)
            assert scores.dtype == torch.float32
            token_loss(scores, ids, smoothing=0.1).loss_sum.backward()
        assert all(one.grad is not None for one in model.parameters())  # several processes count on it
        grads.append(torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None]))
    assert torch.cosine_similarity(*grads, dim=0) > 0.98


def test_compiled_and_exported() -> None:
    model = build().float()
    ids, lengths = source()
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(ids, ids, lengths), model(ids, ids, lengths))
    exported = torch.export.export(model, (ids, ids[:, :3], lengths))
    other, ends, target = torch.randint(3, 11, (4, 7)), torch.tensor([7, 2, 3, 7]), torch.ones(4, 3).long()
    torch.testing.assert_close(
        exported.module()(other, target, ends), model(other, target, ends), rtol=1e-4, atol=1e-5
    )


def test_exported_with_free_sizes() -> None:
    model = build().float()
    ids, lengths = source()
    dim = torch.export.Dim
    batch, read, written = (
        dim("batch", min=2, max=64),
        dim("read", min=2, max=99),
        dim("written", min=2, max=99),
    )
    exported = torch.export.export(
        model,
        (ids, ids[:, :3].contiguous(), lengths),  # strides of a view would be constants
        dynamic_shapes=({0: batch, 1: read}, {0: batch, 1: written}, {0: batch}),
    )
    for entries, wide, tall in ((4, 7, 5), (2, 31, 13)):
        other, target = torch.randint(3, 11, (entries, wide)), torch.randint(3, 11, (entries, tall))
        ends = torch.randint(1, wide + 1, (entries,))
        torch.testing.assert_close(
            exported.module()(other, target, ends), model(other, target, ends), rtol=1e-4, atol=1e-5
        )


def test_configurations_and_counts() -> None:
    config = TransformerConfig(**SIZES)
    assert TransformerConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    older = {name: value for name, value in config.to_dict().items() if name != "copy"}
    assert not TransformerConfig.from_dict(older).copy
    with pytest.raises(TypeError, match="copy must be True or False, got 'yes'"):
        TransformerConfig(**(SIZES | {"copy": "yes"}))
    counts, plain = count_parameters(build()), count_parameters(build(copy=False))
    assert counts["copying"].parameters == 2 * WIDTH * WIDTH + WIDTH + 1 + WIDTH + 1
    assert [one for one in counts.parts if one.name != "copying"] == list(plain.parts)


def test_a_source_is_asked_for() -> None:
    model = build()
    ids, lengths = source()
    with pytest.raises(ValueError, match=r"this model copies .*source="):
        model.decode(ids, model.encode(ids, lengths), lengths)


def test_it_copies_tokens_that_training_never_held() -> None:
    """Reverse a string: half of the vocabulary occurs in the test alone, where only places can tell."""
    letters, steps, length = 200, 200, 5

    def strings(seed: int, low: int, high: int) -> Tensor:
        return torch.randint(low, high, (64, length), generator=torch.Generator().manual_seed(seed))

    def right(copy: bool) -> float:
        torch.manual_seed(0)
        sizes: dict[str, Any] = {"num_layers": 1, "d_model": 32, "d_ff": 64, "num_heads": 4, "dropout": 0.0}
        model = Transformer(TransformerConfig(vocab_size=3 + letters, copy=copy, norm="pre", **sizes))
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        for step in range(steps):
            ids = strings(step, 3, 3 + letters // 2)
            after = ids.flip(1)
            before = torch.cat((torch.ones(64, 1, dtype=torch.int64), after[:, :-1]), 1)
            loss = token_loss(model(ids, before), after).loss_sum / after.numel()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
        test = strings(-1, 3 + letters // 2, 3 + letters)
        written = greedy(model.eval().stepper(test), max_length=length)
        found = torch.tensor([(one.tokens + [0] * length)[:length] for one in written])
        return float((found == test.flip(1)).double().mean())

    plain, pointing = right(copy=False), right(copy=True)
    assert plain < 0.05
    assert pointing > 0.3
