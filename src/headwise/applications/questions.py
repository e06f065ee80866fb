"""Questions whose answer stands in a text: SQuAD's format, and clozes."""

from __future__ import annotations

import hashlib
import json
import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.applications.errors import DataError
from headwise.applications.records import load_records, read_records
from headwise.applications.text_files import ALIASES, read_lines, split_of

BLANK = "@placeholder"
CLOZE = ("context", "question", "answer")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
WORD = re.compile(r"\w[\w+.-]*\w|\w")
FUNCTION_WORDS = frozenset(
    """
    the and for with from that this are can not its your you all any other into than via over such using
    used use based which when more also only has have was were will does per out off under between them
    they their there these those been being both each either neither must may might should would could
    about after before during some then what where who whose while without
    """.split()  # noqa: SIM905 - a hundred quotes would hide them
)
"""Of English: no question asks for them."""


@dataclass(frozen=True)
class Question:
    """A question, the text that it is asked of, and right answers.

    Attributes:
        answers: as they stand in the text; several where people answered differently
        starts: where in the text (in characters) right answers begin: of each answer, or of every place where
            a cloze's word stands
    """

    question: str
    context: str
    answers: tuple[str, ...]
    starts: tuple[tuple[int, int], ...]  # of spans: first character, and the one after the last
    group: str


def load_questions(paths: Sequence[Path], split: str) -> list[Question]:
    """The questions of a split.

    A folder has a file for each split: train.json in SQuAD's format, or train.tsv / train.jsonl with the
    columns context, question, answer (and perhaps group). One file is split by its groups (articles, in
    SQuAD), so that questions of one group are never in two splits.

    Raises:
        DataError: it isn't there, can't be read, or an answer doesn't stand in its text.
    """
    if len(paths) != 1:
        raise DataError(f"{len(paths)} paths of data: give one folder or one file")
    path = paths[0]
    if path.is_dir():
        for alias in ALIASES.get(split, (split,)):
            for name in (f"{alias}.json", f"{alias}.json.gz"):
                if (path / name).is_file():
                    return read_squad(path / name)
        return _clozes(load_records(paths, split, CLOZE, group="group"), path)
    name = path.name.removesuffix(".gz")
    if split not in ALIASES:
        raise DataError(f"one file has the splits {', '.join(ALIASES)}, not {split!r}")
    every = read_squad(path) if name.endswith(".json") else _clozes(read_records(path, CLOZE), path)
    chosen = [one for one in every if split_of(one.group) == split]
    if not chosen:
        raise DataError(f"{path} has {len(every)} questions, too few to set any apart for {split}: give more")
    return chosen


def read_squad(path: Path) -> list[Question]:
    """SQuAD 1.1's format (Rajpurkar et al. 2016); questions that 2.0 marks as impossible are left out.

    Raises:
        DataError: another format; an answer that doesn't stand where it is said to.
    """
    try:
        raw = json.loads("\n".join(read_lines(path, blanks="\r")))
        articles = raw["data"]
        found = [
            _asked(question, paragraph["context"], str(article.get("title") or number), path)
            for number, article in enumerate(articles)
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
            if not question.get("is_impossible") and question["answers"]
        ]
    except DataError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{path} isn't in SQuAD's format: data, paragraphs, qas, answers") from None
    if not found:
        raise DataError(f"{path} has no question with an answer")
    return found


def _asked(raw: Any, context: str, group: str, path: Path) -> Question:
    spans = []
    for answer in raw["answers"]:
        text, start = answer["text"], answer["answer_start"]
        if context[start : start + len(text)] != text or not text:
            raise DataError(
                f"{path}, question {raw.get('id', raw['question'])!r}: the answer {text[:40]!r} doesn't "
                f"stand at answer_start {start}"
            )
        spans.append((start, start + len(text)))
    texts = tuple(dict.fromkeys(answer["text"] for answer in raw["answers"]))
    return Question(raw["question"], context, texts, tuple(dict.fromkeys(spans)), group)


def _clozes(rows: Sequence[dict[str, str]], path: Path) -> list[Question]:
    found = []
    for number, row in enumerate(rows, 1):
        context, answer = row["context"], row["answer"]
        spans = _places(context, answer)
        if not spans:
            raise DataError(f"{path}, row {number}: the answer {answer[:40]!r} doesn't stand in its context")
        found.append(cloze(row["question"], context, spans, row.get("group") or context))
    return found


def cloze(question: str, context: str, spans: Sequence[tuple[int, int]], group: str) -> Question:
    """A question whose answer is right wherever it stands in the text."""
    answers = tuple(dict.fromkeys(context[start:stop] for start, stop in spans))
    return Question(question, context, answers, tuple(spans), group)


def masked(sentence: str, word: str) -> str:
    """The sentence with a word (in small letters) masked wherever it stands."""
    return WORD.sub(lambda match: BLANK if match[0].lower() == word else match[0], sentence)


def whole_words(context: str, word: str) -> list[tuple[int, int]]:
    """Where a word stands in a text, in any case: first character, and the one after the last."""
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    return [match.span() for match in pattern.finditer(context)]


def _places(context: str, answer: str) -> list[tuple[int, int]]:
    """Where the answer stands as whole words, in any case; else anywhere."""
    anywhere = re.compile(re.escape(answer), re.IGNORECASE)
    return whole_words(context, answer) or [match.span() for match in anywhere.finditer(context)]


def normalized(answer: str) -> str:
    """As SQuAD compares answers: without case, punctuation, articles and extra blanks."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact(answer: str, right: Sequence[str]) -> float:
    """1 where the answer is a right one, else 0."""
    return float(any(normalized(answer) == normalized(one) for one in right))


def overlap(answer: str, right: Sequence[str]) -> float:
    """F1 of the words that the answer shares with the nearest right one."""
    return max(_f1(normalized(answer).split(), normalized(one).split()) for one in right)


def _f1(one: Sequence[str], other: Sequence[str]) -> float:
    if not one or not other:
        return float(one == other)
    same = sum((Counter(one) & Counter(other)).values())
    return 2 * same / (len(one) + len(other))


def most_frequent(question: Question) -> str:
    """The baseline: the word that occurs most often in the text, is 4 letters or longer, isn't one of
    English's function words, and isn't in the question; the first of them."""
    asked = {word.lower() for word in WORD.findall(question.question)}
    words: list[str] = [word for word in WORD.findall(question.context) if word.lower() not in asked]
    telling = (
        [word for word in words if len(word) >= 4 and word.lower() not in FUNCTION_WORDS] or words or [""]
    )
    counts = Counter(word.lower() for word in telling)
    return max(telling, key=lambda word: counts[word.lower()])


def digest(questions: Sequence[Question]) -> str:
    """Tells other questions apart."""
    found = hashlib.sha256()
    for one in questions:
        found.update(json.dumps([one.question, one.context, one.answers, one.starts]).encode())
    return found.hexdigest()
