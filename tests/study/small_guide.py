"""A small guide with one of everything, written into a folder."""
# ruff: noqa: E501 - the first line of a block is one line

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from headwise.study.authoring.formulas import Wanted
from headwise.study.content import Guide, load_guide
from headwise.study.maths import FILE, Formula, written_formulas
from headwise.study.render.texts import all_texts

GUIDE = """
id = "small"
title = "A small guide"

intro = "It has *one* of everything."

[[parts]]
title = "First"
activities = ["first", "first-mask", "first-quiz"]

[[parts]]
title = "Second"
activities = ["second", "deck", "more"]

[paper]
arxiv = "1706.03762v7"
title = "A Paper"
authors = "Somebody"
year = 2017
html = "https://arxiv.org/html/1706.03762v7"
"""

ANCHORS = {
    "S3": ("section", None, "section 3"),
    "S3.p1": ("paragraph", "S3", "3, paragraph 1"),
    "S3.SS2.SSS2.p1": ("paragraph", "S3", "3.2.2, paragraph 1"),
    "S3.E1": ("equation", "S3", "equation 1"),
    "bib": ("section", None, "references"),
}

SOURCES = """
["S3.p1"]
about = "What the frame is, with $n$ in it."

["S3.SS2.SSS2.p1"]
about = "Heads in parallel."
quote = "a few words of it"

["S3.E1"]
about = "The formula."
"""

FACTS = """
["model.width"]
value = 512
sources = ["S3.p1"]

["model.parameters"]
value = 1048576
unit = "parameters"
how = "computed"
function = "attention_parameters"
arguments = { d_model = 512, num_heads = 8 }
sources = ["S3.p1"]
"""

FIRST = """+++
id = "first"
type = "lesson"
title = "First steps"
minutes = 7
goals = ["Say what $d_k$ is."]
summary = "What comes first."
+++

:::{explain} #wide sources="S3.p1" title="As wide as $d_k$"
The width is {{fact:model.width}}, and it has {{fact:model.parameters}}. See [the join](activity:second#join),
[a passage](source:S3.E1), and [the function](symbol:headwise.attention).

$$ d_k = {{value:model.width}} / h $$ (equation: width, words="d k is the width over h.")

| Head | Share |
|---|--:|
| 1 | 64 |
:::

:::{detail} #ours sources="S3.p1 S3.SS2.SSS2.p1" symbol="headwise.MultiHeadAttention" quote="S3.SS2.SSS2.p1" title="Four linears"
The library has four.
:::

:::{later} #after sources=none reason="it came later" link="https://example.org/paper" link-title="A paper"
Others went on.
:::

:::{simplified} #simple sources="S3.p1"
We leave out much.
:::

:::{trap} #wrong sources="S3.p1" title="Dividing twice"
Some divide twice.
:::

:::{loose} #loose sources="S3.p1" title="Two numbers"
The paper gives two.
:::

:::{code} #run sources="S3.p1" title="Run it"
```python
width = 8
print("width", width, "<b>")
```
:::

:::{visual} #see-mask visual="first-mask" sources="S3.p1" title="See it"
Look at this.
:::

:::{check} #asked question="how-wide" sources="S3.p1"
:::

::::{exercise} #try sources="S3.p1" title="Try it"
Double it.

:::{solution}
```python
print(2 * width)
```
:::
::::

:::{summary} #short sources="S3.p1" title="In short"
That was it.
:::
"""

SECOND = """+++
id = "second"
type = "lesson"
title = "Second steps"
minutes = 5
needs = ["first"]
summary = "What comes second."
+++

:::{explain} #join sources="S3.SS2.SSS2.p1" title="Joining"
Heads are joined, where $\\sqrt{d_k + d_v} = \\sqrt{64 + 64}$ numbers meet.
:::
"""

QUIZ = """
id = "first-quiz"
title = "First questions"
minutes = 3
needs = ["first"]
summary = "Six kinds of questions."

[[questions]]
id = "how-wide"
kind = "single"
prompt = "How wide is $d_k$?"
sources = ["S3.p1"]
explain = "It is the SECRETEXPLAIN."
block = "first#wide"
options = [
    { text = "64", correct = true, why = "SECRETRIGHT" },
    { text = "512", why = "SECRETWRONG" },
]

[[questions]]
id = "which-hold"
kind = "multiple"
prompt = "Which hold?"
sources = ["S3.p1"]
explain = "SECRETBOTH"
options = [
    { text = "This", correct = true, why = "SECRETA" },
    { text = "That", correct = true, why = "SECRETB" },
    { text = "Neither", why = "SECRETC" },
]

[[questions]]
id = "how-many"
kind = "numeric"
prompt = "How many heads?"
sources = ["S3.p1"]
answer = 86753
unit = "heads"
explain = "SECRETNUMBER"

[[questions]]
id = "what-name"
kind = "text"
prompt = "Which function?"
sources = ["S3.p1"]
accept = ["SECRETWORD"]
explain = "SECRETTEXT"

[[questions]]
id = "what-order"
kind = "order"
prompt = "In which order?"
sources = ["S3.p1"]
explain = "SECRETORDER"
items = [{ text = "project" }, { text = "attend" }, { text = "join" }]

[[questions]]
id = "what-shape"
kind = "shape"
prompt = "Which shape?"
sources = ["S3.p1"]
code = "x = torch.zeros(2, 7, 13)"
ask = "x.transpose(1, 2).shape"
explain = "SECRETSHAPE"
"""

DECK = """
id = "deck"
title = "A deck"
minutes = 2
summary = "Two cards."

[[cards]]
id = "card-one"
front = "What is $d_k$?"
back = "The width of a head."
why = "It is divided by."
sources = ["S3.p1"]
block = "first#wide"

[[cards]]
id = "card-two"
kind = "cloze"
text = "Scores are divided by [[$\\\\sqrt{d_k}$]]."
sources = ["S3.E1"]
block = "second#join"
"""

VISUAL = """
id = "first-mask"
title = "A mask"
minutes = 3
summary = "Who sees whom."
sources = ["S3.p1"]
data = "mask"
module = "mask"
words = "A table of who sees whom."

[[inputs]]
name = "queries"
label = "Queries"
kind = "range"
min = 1
max = 16
step = 1
value = 10

[[inputs]]
name = "causal"
label = "Causal"
kind = "toggle"
value = true
"""

MORE = """
id = "more"
title = "More to read"
minutes = 1
summary = "What to read."

[[resources]]
id = "the-paper"
title = "A paper"
url = "https://example.org/read"
kind = "paper"
authors = "A. Writer"
year = 2018
why = "It goes on."
when = "second"
"""


def write_guide(folder: Path, **changes: str) -> Path:
    """The folder of the guide, with other texts in place of some: first=..., guide=..."""
    texts = {
        "guide": ("guide.toml", GUIDE),
        "sources": ("sources.toml", SOURCES),
        "facts": ("facts.toml", FACTS),
        "first": ("activities/10-first.md", FIRST),
        "visual": ("activities/12-first-mask.visual.toml", VISUAL),
        "quiz": ("activities/14-first.quiz.toml", QUIZ),
        "second": ("activities/20-second.md", SECOND),
        "deck": ("activities/30-deck.cards.toml", DECK),
        "more": ("activities/40-more.resources.toml", MORE),
    }
    (folder / "activities").mkdir(parents=True, exist_ok=True)
    for name, (file, text) in texts.items():
        (folder / file).write_text(changes.get(name, text), encoding="utf-8")
    anchors = {
        name: {"kind": kind, "parent": parent, "formulas": 0, "label": label, "sha256": None}
        for name, (kind, parent, label) in ANCHORS.items()
    }
    (folder / "anchors.json").write_text(json.dumps({"paper": "1706.03762v7", "anchors": anchors}))
    return folder


def store_formulas(folder: Path) -> None:
    """Store markup for every formula of the guide: the TeX itself in <mi>, which is enough for tests."""
    guide, wanted = load_guide(folder), Wanted()
    for text in all_texts(guide):
        text.to_html(guide, maths=wanted)
    made = {}
    for key, (tex, display, _, _) in wanted.found.items():
        mode = ' display="block" class="tml-display"' if display else ""
        made[key] = Formula(
            tex=tex, display=display, sha256=key, mathml=f"<math{mode}><mi>{escape(tex)}</mi></math>"
        )
    (folder / FILE).write_text(written_formulas("0", made), encoding="utf-8")


def small_guide(folder: Path, **changes: str) -> Guide:
    """The guide in a folder of its own, with formulas."""
    write_guide(folder, **changes)
    store_formulas(folder)
    return load_guide(folder)
