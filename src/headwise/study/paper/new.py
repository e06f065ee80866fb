"""A guide begun from a paper's page: its places, and a first lesson and quiz to write over."""

from __future__ import annotations

import json
import re
from pathlib import Path

from headwise.study.check.spelling import unknown_words
from headwise.study.content import Anchor
from headwise.study.content.anchors_file import written_anchors
from headwise.study.errors import GuideError
from headwise.study.paper.labels import label
from headwise.study.paper.page import Page

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

GUIDE = """\
id = {id}
title = {title}
language = "en-GB"
paper = {{ {arxiv}title = {paper}, authors = {authors}, year = {year}{html} }}
intro = "Write here, in a few sentences, what a learner will know after this guide."

# The teaching order: the ids of lessons, quizzes, cards, visuals and resources.
[[parts]]
title = "The first part"
activities = ["first-lesson", "first-quiz"]
"""

SOURCES = """\
# What each place of the paper says, in your own words; a quote of at most 25 words where one helps.
# Only places that the guide rests on stand here. Those that the paper has, beside the one below:
#
{places}

[{first}]
about = "Write here, in your own words, what this passage says."
"""

FACTS = """\
# The guide's numbers. Prose names them: {{fact:model.width}} with the unit, {{value:model.width}} without.
#
# ["model.width"]
# value = 512
# unit = ""
# sources = ["S3.p1"]
# how = "cited"                  # or "computed", with function = "..." and arguments = { ... }
"""

LESSON = """\
+++
id = "first-lesson"
type = "lesson"
title = "The first lesson"
minutes = 5
needs = []
goals = ["Say what a learner can do afterwards."]
summary = "One sentence for the list of all activities."
+++

:::{{explain}} #what-it-is-about sources={source} title="What it is about"
Write here what this passage teaches. Say one thing in each block, and name the passages that it rests on.
:::

:::{{check}} #first-check question="first-question"
:::
"""

QUIZ = """\
id = "first-quiz"
title = "The first quiz"
minutes = 2
needs = ["first-lesson"]
summary = "One sentence for the list of all activities."

[[questions]]
id = "first-question"
rev = 1
kind = "single"
prompt = "Ask here for something that can't be guessed."
sources = [{source}]
block = "first-lesson#what-it-is-about"
explain = "Say here why the right answer is right."

[[questions.options]]
text = "The right answer."
correct = true
why = "Say why."

[[questions.options]]
text = "An answer that somebody would give who has a certain thing wrong."
why = "Say what that thing is, and how it really is."
"""

WORDS = """\
# Words that the dictionary hasn't: one a line. With a capital it counts only so; else however it is written.
{words}"""


def new_guide(page: Page, folder: Path, *, year: int, arxiv: str = "", file: str = "") -> list[str]:
    """Write the beginnings of a guide, which passes its checks as it is. Of the paper go in: its title and
    authors, the ids of its places, what numbers they have, and how many formulas each holds.

    Args:
        folder: is made; its name becomes the guide's id.
        arxiv: the paper's number with version, where the page doesn't tell.
        file: the page's, for errors.

    Returns: the files written, within the folder.

    Raises:
        GuideError: the folder holds something, its name is no id, or the page has no title.
    """
    name = folder.resolve().name
    if not _ID.fullmatch(name):
        rule = "small letters and digits, with single hyphens between them"
        raise GuideError(f"the guide's id is its folder's name, and {name!r} is none: {rule}", str(folder))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise GuideError("this is there already and isn't an empty folder: name another", str(folder))
    if not page.title:
        raise GuideError("the page has no title (h1.ltx_title_document): was it saved whole?", file)
    files = skeleton(page, name, year=year, arxiv=arxiv or page.arxiv)
    for within, text in files.items():
        path = folder / within
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)


def anchors_of(page: Page) -> dict[str, Anchor]:
    """The places of a page, without its words and without hashes."""
    return {
        name: Anchor(
            id=name,
            kind=passage.kind,
            parent=passage.parent,
            formulas=passage.formulas,
            label=label(passage, page.passages),
        )
        for name, passage in page.passages.items()
    }


def skeleton(page: Page, name: str, *, year: int, arxiv: str = "") -> dict[str, str]:
    """The files of a new guide by name."""
    anchors = anchors_of(page)
    first = next((one.id for one in anchors.values() if one.kind == "paragraph"), next(iter(anchors)))
    places = "\n".join(f"#   {one.id}  ({one.label})" for one in anchors.values() if one.id != first)
    title = re.sub(r"([\\`*_\[\]$<])", r"\\\1", f"{page.title}: a guide")
    words = sorted(set(unknown_words(page.title)))
    return {
        "guide.toml": GUIDE.format(
            id=_toml(name),
            title=_toml(title),
            arxiv=f"arxiv = {_toml(arxiv)}, " if arxiv else "",
            paper=_toml(page.title),
            authors=_toml(", ".join(page.authors) or "unknown"),
            year=year,
            html=f", html = {_toml(f'https://arxiv.org/html/{arxiv}')}" if arxiv else "",
        ),
        "anchors.json": written_anchors(arxiv, anchors),
        "sources.toml": SOURCES.format(places=places, first=_toml(first)),
        "facts.toml": FACTS,
        "words.txt": WORDS.format(words="".join(f"{word}\n" for word in words)),
        "activities/10-first-lesson.md": LESSON.format(source=_toml(first)),
        "activities/12-first-quiz.quiz.toml": QUIZ.format(source=_toml(first)),
    }


def _toml(text: str) -> str:
    """A TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
