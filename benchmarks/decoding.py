"""Writing texts: greedy and beam 4 with all keys and values kept, beside the same without, and Marian.

Marian is Hugging Face's translation model, of the same size and with random weights, in its own `generate`
with its own cache. The end of a text is kept from coming in all of them, so that each writes as many tokens.

Claim: at least as fast per token (up to 2 %, which is noise).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from benchmarks.common import Case, Way
from benchmarks.program import Program, Result, main, no_slower
from benchmarks.table import Claim
from headwise.models import Transformer, TransformerConfig
from headwise.models.decoding import Stepper, beam_search, greedy

LAYERS, VOCABULARY, PAD, BOS, EOS = 3, 8000, 0, 1, 2
SIZES = {"quick": (16,), "short": (128, 256), "full": (128, 256, 512)}
INPUTS = {"quick": (2,), "short": (1, 16), "full": (1, 16, 64)}
WRITTEN = {"quick": (3,), "short": (24,), "full": (24, 96)}
UNCACHED = 24  # longest texts that are also written without a cache


@dataclass
class NeverEnds:
    """A stepper whose texts don't end before the limit."""

    inner: Any

    def __post_init__(self) -> None:
        self.first: Tensor = self.inner.first
        self.eos_id: int = self.inner.eos_id
        self.keep = self.inner.keep

    def limits(self, max_extra: int) -> Tensor:
        return torch.full_like(self.first, max_extra)

    def step(self, tokens: Tensor) -> Tensor:
        found: Tensor = self.inner.step(tokens)
        found[:, self.eos_id] = -torch.inf
        return found


def sources(inputs: int, length: int) -> tuple[Tensor, Tensor]:
    """Texts of unequal lengths, from half of `length` on; a single one is whole."""
    lengths = torch.randint(-(-length // 2), length + 1, (inputs,))
    lengths[0] = length
    ids = torch.randint(3, VOCABULARY, (inputs, length))
    return ids.masked_fill(torch.arange(length) >= lengths[:, None], PAD), lengths


def marian(d_model: int, heads: int) -> Any:
    """Hugging Face's model of the same size; None where transformers isn't installed."""
    try:
        from transformers import MarianConfig, MarianMTModel
    except ImportError:
        return None
    config = MarianConfig(
        vocab_size=VOCABULARY,
        decoder_vocab_size=VOCABULARY,
        d_model=d_model,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=4 * d_model,
        decoder_ffn_dim=4 * d_model,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    model: Any = MarianMTModel(config)
    return model.eval()


def ways(d_model: int, beam: int, inputs: int, written: int) -> list[Way]:
    torch.manual_seed(29)
    heads = max(2, d_model // 64 if d_model > 256 else d_model // 32)
    config = TransformerConfig(
        vocab_size=VOCABULARY,
        num_layers=LAYERS,
        d_model=d_model,
        d_ff=4 * d_model,
        num_heads=heads,
        attention_bias=True,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
    )
    model = Transformer(config).eval()
    ids, lengths = sources(inputs, written)

    def ours(cached: bool) -> list[list[int]]:
        stepper: Stepper = NeverEnds(model.stepper(ids, lengths, cached=cached))
        if beam == 1:
            return [one.tokens for one in greedy(stepper, max_extra=written)]
        return [found[0].tokens for found in beam_search(stepper, beam=beam, max_extra=written)]

    found = [Way("headwise", lambda _: ours(True))]
    if written <= UNCACHED:
        found.append(Way("uncached", lambda _: ours(False)))
    theirs, mask = marian(d_model, heads), (torch.arange(written) < lengths[:, None]).long()
    if theirs is not None:

        def generate(_: Any) -> Any:
            return theirs.generate(
                input_ids=ids,
                attention_mask=mask,
                num_beams=beam,
                do_sample=False,
                min_new_tokens=written,
                max_new_tokens=written,
                length_penalty=0.6,
            )

        found.append(Way("Marian", torch.no_grad()(generate)))
    return found


def cases(size: str) -> list[Case]:
    return [
        _case(d_model, beam, inputs, written)
        for beam in (1, 4)
        for d_model in SIZES[size]
        for inputs in INPUTS[size]
        for written in WRITTEN[size]
    ]


def _case(d_model: int, beam: int, inputs: int, written: int) -> Case:
    label = (f"beam {beam}" if beam > 1 else "greedy", str(d_model), str(inputs), str(written))
    return Case(label, lambda: ways(d_model, beam, inputs, written), amount=inputs * written)


def claims(results: Sequence[Result]) -> list[Claim]:
    return [no_slower("at least as fast per token", results)]


PROGRAM = Program(
    "decoding",
    f"writing, {LAYERS}+{LAYERS} layers, {VOCABULARY} tokens of vocabulary, float32",
    ("search", "d_model", "inputs", "tokens each"),
    cases,
    peers=("uncached", "Marian"),
    claims=claims,
    unit="ms per token",
    notes=(() if find_spec("transformers") else ("transformers isn't installed: no Marian column",)),
)

if __name__ == "__main__":
    raise SystemExit(main(PROGRAM))
