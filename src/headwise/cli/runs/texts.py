"""Translations, summaries and answers, with the heads that made them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from headwise.applications.question_answering import Answerer
from headwise.applications.reading import chosen_spans, collate, read, scores
from headwise.applications.summarization import Summarizer
from headwise.applications.tokens import Tokens
from headwise.applications.translation import Translator
from headwise.applications.writing import encode_sources, write
from headwise.cli.errors import UserError
from headwise.cli.runs.copied import copied_shares
from headwise.cli.runs.view import Answered, Axis, Part, Written
from headwise.cli.runs.watching import Watch, watch

LIKELIEST = 5
BLANK = "␣"  # a token that is nothing but blanks
ENCODER = "every token of the input looks at all of them"
DECODER = "every token of the output looks at itself and those before it"
COPY = "where in the input (column) a token of the output (row) would be copied from"
CROSS = "before a token of the output is written (row), the tokens of the input (columns) are looked at"


def translation(trained: Translator, text: str, *, beam: int) -> tuple[Written, list[Part], list[str]]:
    """A text, its translation, and all heads of encoder and decoder on the two."""
    flat = " ".join(text.split())
    notes = ["The lines of the text were joined to one."] if "\n" in text.strip() else []
    sources = encode_sources([flat], trained.tokens)
    found = write(trained.model, sources, beam=beam)[0][0]
    output, copied, parts = _written(trained, sources[0], found.tokens)
    return Written(flat, output, found.log_probability, found.finished, beam, copied), parts, notes


def summary(trained: Summarizer, text: str, *, beam: int) -> tuple[Written, list[Part], list[str]]:
    """A text, its summary, and all heads of encoder and decoder on the two."""
    flat = " ".join(text.split())
    settings = trained.settings
    whole = len(encode_sources([flat], trained.tokens)[0])
    sources = encode_sources([flat], trained.tokens, cut=settings.longest)
    found = write(trained.model, sources, beam=beam, max_length=settings.longest_summary)[0][0]
    output, copied, parts = _written(trained, sources[0], found.tokens)
    notes = []
    if whole > settings.longest:
        notes.append(f"The text has {whole} tokens, and the run reads the first {settings.longest}.")
    return Written(flat, output, found.log_probability, found.finished, beam, copied), parts, notes


def _written(
    trained: Translator | Summarizer, source: Sequence[int], written: Sequence[int]
) -> tuple[str, tuple[float, ...], list[Part]]:
    """What was written, the share that copying has in each of its tokens, and the heads."""
    tokens = trained.tokens
    before, after = [tokens.bos_id, *written], [*written, tokens.eos_id]
    input_axis = text_axis("input", source, tokens)
    read_axis, write_axis = text_axis("output", before, tokens), text_axis("output", after, tokens)
    copying = [
        Watch("copy", "Copying", COPY, name, write_axis, input_axis)
        for name, _ in trained.model.named_modules()
        if name.endswith("copy_attention")
    ]
    watches = [
        Watch(
            "cross",
            "Cross-attention",
            CROSS,
            "*decoder.layers.*.cross_attention",
            write_axis,
            input_axis,
        ),
        *copying,
        Watch(
            "encoder",
            "Encoder self-attention",
            ENCODER,
            "*encoder.layers.*.self_attention",
            input_axis,
            input_axis,
            torch.tensor(source),
        ),
        Watch(
            "decoder",
            "Decoder self-attention",
            DECODER,
            "*decoder.layers.*.self_attention",
            read_axis,
            read_axis,
            torch.tensor(before),
        ),
    ]
    ids = torch.tensor([list(source)])
    lengths = torch.tensor([len(source)])
    with copied_shares(trained.model) as shares:
        parts, _ = watch(trained.model, watches, lambda: trained.model(ids, torch.tensor([before]), lengths))
    copied = tuple(shares[0][0].tolist()) if shares else ()
    return tokens.decode([list(written)])[0], copied, parts


def text_axis(name: str, ids: Sequence[int], tokens: Tokens) -> Axis:
    """Tokens as they are read; special ones are those of the tokenizer, not what spells like them."""
    special = {tokens.pad_id, tokens.bos_id, tokens.eos_id}
    labels = (piece.strip() or BLANK for piece in tokens.pieces(ids))
    return Axis(name, "text", tuple(labels), tuple(one in special for one in ids))


def answer(trained: Answerer, question: str, text: str) -> tuple[Answered, list[Part], list[str]]:
    """A question, its answer in a text, and all heads of the encoder on the two."""
    for name, one in (("question", question), ("text", text)):
        if not one.strip():
            raise UserError(f"the {name} is empty: give at least one word")
    longest = trained.settings.longest
    row = read(question, text, (), trained.tokens, longest)
    batch = collate([row], trained.settings.model.segments)
    axis = text_axis("question and text", row.ids, trained.tokens)
    watches = [
        Watch(
            "encoder",
            "Encoder self-attention",
            "every token of question and text looks at all of them",
            "*encoder.layers.*.self_attention",
            axis,
            axis,
            batch["ids"][0],
        )
    ]

    def run() -> tuple[Tensor, Tensor]:
        return scores(trained.model, batch)

    parts, (start, end) = watch(trained.model, watches, run)
    [(left, right)] = chosen_spans(start, end, [row], [text], longest_answer=trained.settings.longest_answer)
    inside = text[left:right]
    left += len(inside) - len(inside.lstrip())
    right -= len(inside) - len(inside.rstrip())
    notes = []
    whole = len(read(question, text, (), trained.tokens, 10**9).ids)
    if whole > len(row.ids):
        notes.append(
            f"Question and text have {whole} tokens, and the run reads {longest}: the end is left out."
        )
    result = Answered(
        question, text, text[left:right], (left, right), _likeliest(start[0]), _likeliest(end[0])
    )
    return result, parts, notes


def _likeliest(scores: Tensor) -> tuple[tuple[int, float], ...]:
    shares = scores.softmax(-1)
    values, places = shares.topk(min(LIKELIEST, int((scores > -torch.inf).sum())))
    return tuple(zip(places.tolist(), values.tolist(), strict=True))
