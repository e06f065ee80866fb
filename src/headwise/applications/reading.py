"""A question and its text as a `SpanReader` reads them, and the answer that its scores choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headwise.applications.questions import WORD, normalized
from headwise.applications.tokens import Tokens, pad
from headwise.training.batches import token_batches

QUESTION, TEXT, ASKED = range(3)
"""Kinds of tokens: of the question, of the text, and of words of the text that the question has too."""
MOST_SPANS = 50


@dataclass(frozen=True)
class Read:
    """A question as the model reads it.

    Attributes:
        ids: [BOS] question [EOS] text [EOS]
        begins: where the text's tokens begin in `ids`; they end before the last one
        places: of the text's tokens, in the text
        asked: which of the text's tokens belong to a word that the question has too
        spans: of right answers, as positions of their first and last token in `ids`
    """

    ids: list[int]
    begins: int
    places: list[tuple[int, int]]
    asked: list[bool]
    spans: list[tuple[int, int]]


def read(question: str, context: str, spans: Sequence[tuple[int, int]], tokens: Tokens, longest: int) -> Read:
    """Ids of a question and its text, cut to `longest`; spans that are cut off are dropped."""
    first, _ = tokens.encode_with_places(question)
    first = first[: max(longest // 2 - 2, 1)]
    ids, places = tokens.encode_with_places(context)
    room = max(longest - len(first) - 3, 1)
    ids, places = ids[:room], places[:room]
    begins = len(first) + 2
    found = []
    for start, stop in spans:
        inside = [number for number, (left, right) in enumerate(places) if left < stop and right > start]
        if inside and places[inside[-1]][1] >= stop:
            found.append((begins + inside[0], begins + inside[-1]))
    whole = [tokens.bos_id, *first, tokens.eos_id, *ids, tokens.eos_id]
    return Read(whole, begins, places, _asked(question, context, places), found)


def _asked(question: str, context: str, places: Sequence[tuple[int, int]]) -> list[bool]:
    words = {word.lower() for word in WORD.findall(question)}
    same = bytearray(len(context))
    for match in WORD.finditer(context):
        if match[0].lower() in words:
            same[match.start() : match.end()] = b"\1" * len(match[0])
    # A token's last character: its first may be the blank before the word.
    return [right > left and bool(same[right - 1]) for left, right in places]


def collate(rows: Sequence[Read], kinds: int) -> dict[str, Tensor]:
    """A batch: ids, lengths, segments, the tokens that an answer may hold, and those where right ones begin
    and end.

    Args:
        kinds: of tokens that the model tells apart: 2, question and text; 3, also words that both have
    """
    ids, lengths = pad([row.ids for row in rows])
    segments = torch.full_like(ids, QUESTION)
    allowed, starts, ends = (torch.zeros(ids.shape, dtype=torch.bool) for _ in range(3))
    for number, row in enumerate(rows):
        segments[number, row.begins : len(row.ids)] = TEXT
        if kinds > ASKED:
            inside = segments[number, row.begins : len(row.ids) - 1]
            inside[torch.tensor(row.asked, dtype=torch.bool)] = ASKED
        allowed[number, row.begins : len(row.ids) - 1] = True
        for first, last in row.spans:
            starts[number, first] = ends[number, last] = True
    found = {"ids": ids, "lengths": lengths, "segments": segments, "allowed": allowed}
    return {**found, "starts": starts, "ends": ends}


def scores(model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Start and end scores of each token, in float32."""
    start, end = model(batch["ids"], batch["lengths"], segments=batch["segments"], allowed=batch["allowed"])
    return start.float(), end.float()


def chosen_spans(
    start: Tensor, end: Tensor, rows: Sequence[Read], contexts: Sequence[str], *, longest_answer: int
) -> list[tuple[int, int]]:
    """Where in each text the answer stands: first character, and the one after the last.

    A text may say its answer at several places. So p(first) p(last) of the `MOST_SPANS` likeliest spans is
    added up over those that say the same (Kadlec et al. 2016, *Text Understanding with the Attention Sum
    Reader Network*); of the answer that gets most, the likeliest place is chosen.

    Shapes: start and end scores [batch, length].
    """
    length = start.shape[1]
    reach = min(longest_answer, length)
    log_p_end = nn.functional.pad(end.log_softmax(-1), (0, reach - 1), value=-torch.inf).unfold(1, reach, 1)
    p = (start.log_softmax(-1)[..., None] + log_p_end).exp().flatten(1)  # [batch, length * reach]
    likeliest, flat = p.topk(min(MOST_SPANS, p.shape[1]))
    found = []
    for row, context, shares, spans in zip(rows, contexts, likeliest.tolist(), flat.tolist(), strict=True):
        sums: dict[str, float] = {}
        firsts: dict[str, tuple[int, int]] = {}
        for share, span in zip(shares, spans, strict=True):
            first, further = divmod(span, reach)
            if not 0 <= first - row.begins <= first + further - row.begins < len(row.places):
                continue  # p is 0: no span of the text
            left = row.places[first - row.begins][0]
            right = row.places[first + further - row.begins][1]
            said = normalized(context[left:right]) or context[left:right]
            sums[said] = sums.get(said, 0.0) + share
            firsts.setdefault(said, (left, right))
        found.append(firsts[max(sums, key=sums.__getitem__)])
    return found


@torch.no_grad()
def answer(
    model: nn.Module,
    rows: Sequence[Read],
    contexts: Sequence[str],
    *,
    kinds: int,
    cells: int,
    longest_answer: int,
) -> list[str]:
    """The answer to each question, from its text."""
    device = next(model.parameters()).device
    written = [""] * len(rows)
    lengths = [len(row.ids) for row in rows]
    for numbers in token_batches(lengths, max(cells, *lengths, 1), shuffle=False):
        some = [rows[one] for one in numbers]
        batch = {name: one.to(device) for name, one in collate(some, kinds).items()}
        texts = [contexts[one] for one in numbers]
        spans = chosen_spans(*scores(model, batch), some, texts, longest_answer=longest_answer)
        for number, text, (left, right) in zip(numbers, texts, spans, strict=True):
            written[number] = text[left:right].strip()
    return written
