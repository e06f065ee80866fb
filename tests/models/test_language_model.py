"""The decoder-only model: causality, caches, prompts of unequal length."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import headwise as hw
from headwise.models import LanguageModel, LanguageModelConfig
from headwise.models.decoding import beam_search, greedy, sample

VOCAB = 19
PROMPTS, LENGTHS = torch.randint(3, VOCAB, (4, 7), generator=torch.Generator().manual_seed(0)), [7, 2, 1, 5]
VARIANTS: dict[str, dict[str, Any]] = {
    "sinusoidal": {},
    "rotary": {"positions": "rotary", "num_kv_heads": 1},
    "learned": {"positions": "learned", "max_length": 30},
    "window": {"positions": "rotary", "window": 3},
    "post": {"norm": "post"},
}


def build(**changes: Any) -> LanguageModel:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"num_layers": 2, "d_model": 12, "d_ff": 17, "num_heads": 3}
    model = LanguageModel(LanguageModelConfig(vocab_size=VOCAB, **(sizes | changes))).double().eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    model.embeddings.tokens.weight.data[model.config.eos_id] *= 0.5  # few texts end at once
    return model.requires_grad_(False)


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_token_sees_a_later_one(variant: str) -> None:
    model = build(**VARIANTS[variant])
    changed = PROMPTS.clone()
    changed[:, 4:] = 3
    before, after = model(PROMPTS), model(changed)
    torch.testing.assert_close(before[:, :4], after[:, :4], rtol=0, atol=0)
    assert not torch.allclose(before[:, 4:], after[:, 4:])


@pytest.mark.parametrize("variant", VARIANTS)
def test_continuations_equal_those_of_whole_calls(variant: str) -> None:
    """Prompts of unequal length in one batch, against one call of the model for every token of each."""
    model = build(**VARIANTS[variant])
    lengths = torch.tensor(LENGTHS)
    found = greedy(model.stepper(PROMPTS, lengths), max_extra=6)
    beams = beam_search(model.stepper(PROMPTS, lengths), beam=3, max_extra=6)
    assert any(one.tokens for one in found)
    for row, length in enumerate(LENGTHS):
        ids = PROMPTS[row, :length].tolist()
        for token in [*found[row].tokens, *([model.config.eos_id] if found[row].finished else [])]:
            scores = model(torch.tensor([ids]))[0, -1]
            scores[[model.config.pad_id, model.config.bos_id]] = -torch.inf
            assert token == int(scores.argmax())
            ids.append(token)
        (alone,) = beam_search(model.stepper(PROMPTS[row : row + 1, :length]), beam=3, max_extra=6)
        assert [one.tokens for one in alone] == [one.tokens for one in beams[row]]


def test_packed_texts_do_not_meet() -> None:
    model = build(positions="rotary")
    documents = torch.tensor([[0, 0, 0, 1, 1, 1, 1]])
    out = model(PROMPTS[:1], mask=hw.Documents(documents))
    alone = model(PROMPTS[:1, 3:])  # turned positions are relative, so the second text is as if alone
    torch.testing.assert_close(out[:, 3:], alone, rtol=1e-9, atol=1e-11)


def test_samples_and_limits() -> None:
    model = build(positions="learned", max_length=9)
    lengths = torch.tensor(LENGTHS)
    drawn = sample(
        model.stepper(PROMPTS, lengths), generator=torch.Generator().manual_seed(1), temperature=3.0
    )
    for one, length in zip(drawn, LENGTHS, strict=True):
        # a token needs a position once another follows it
        assert len(one.tokens) + one.finished <= 9 + 1 - length


def test_prompts_that_do_not_fit() -> None:
    model = build()
    with pytest.raises(ValueError, match="bos_id alone"):
        model.stepper(PROMPTS[:, :0])
    with pytest.raises(ValueError, match="bos_id alone"):
        model.stepper(PROMPTS, torch.tensor([3, 0, 1, 1]))
    with pytest.raises(ValueError, match="lengths go up to 9"):
        model.stepper(PROMPTS, torch.tensor([3, 9, 1, 1]))
    with pytest.raises(ValueError, match="prompts must lie in"):
        model.stepper(PROMPTS + VOCAB)
    with pytest.raises(ValueError, match=r"model.eval\(\)"):
        model.train().stepper(PROMPTS)
