"""A small guide without a fault, which tests break in one place at a time."""

from __future__ import annotations

import json
import re
from pathlib import Path

from headwise.study.maths import Formula, digest, written_formulas

GUIDE = """\
id = "lamps"
title = "Lamps and attention"
intro = "How a lamp attends to ships."

[paper]
arxiv = "1234.56789v2"
title = "On Lamps"
authors = "A. Keeper"
year = 2021
html = "https://arxiv.org/html/1234.56789v2"

[[parts]]
title = "Lamps"
activities = [
  "light",
  "rates",
  "light-quiz",
]
[[parts]]
title = "Keep it"
activities = ["light-cards", "reading"]
"""

ANCHORS = {
    "S1": {"kind": "section", "parent": None, "label": "section 1"},
    "S1.p1": {"kind": "paragraph", "parent": "S1", "formulas": 2, "label": "1, paragraph 1"},
    "S1.p2": {"kind": "paragraph", "parent": "S1", "label": "1, paragraph 2"},
    "S1.p3": {"kind": "paragraph", "parent": "S1", "label": "1, paragraph 3"},
    "S1.E1": {"kind": "equation", "parent": "S1.p2", "label": "equation 1"},
}

SOURCES = """\
["S1.p1"]
about = "A lamp turns towards the ship that it hears."
quote = "a lamp that hears"
["S1.p2"]
about = "How far it turns."
["S1.E1"]
about = "The angle of the lamp."
"""

FACTS = """\
["lamp.width"]
value = 512
sources = ["S1.p1"]
how = "cited"

["lamp.parameters"]
value = 1048576
unit = "parameters"
sources = ["S1.p2"]
how = "computed"
function = "attention_parameters"
arguments = { d_model = 512, num_heads = 8 }

["lamp.rate"]
value = 0.000699
sources = ["S1.p2"]
how = "computed"
function = "learning_rate"
arguments = { step = 4000, d_model = 512, warmup = 4000 }
digits = 3
show = "6.99 × 10⁻⁴"

["lamp.speed"]
value = 37
unit = "ms"
how = "measured"
command = "python -m benchmarks.forward"
reason = "Measured by this library."
"""

LESSON = """\
+++
id = "light"
title = "How a lamp turns"
minutes = 9
goals = ["Say where a lamp turns."]
summary = "A lamp turns towards what it hears."
+++

:::{explain} #turning sources="S1.p1.7" quote="S1.p1" title="It turns"
A lamp of width {{fact:lamp.width}} turns by $a_t$; see [the rates](activity:rates) and
[the angle](source:S1.E1).

$$ a = b^{2} $$ (equation: angle, words="a is b squared")
:::

:::{detail} #by-the-library sources="S1.p2" symbol="headwise.Causal headwise.masks.Window"
The [mask](symbol:headwise.masks.Window) hides what lies ahead.
:::

:::{later} #newer link="https://example.org/lamps" link-title="Newer lamps"
Newer lamps turn [further](https://example.org/further).
:::

:::{code} #first sources="S1.p1"
```python
width = 3
print(torch.rand(width))
```
:::

:::{code} #second sources="S1.p1"
```python
print(hw.Causal(), width)
```
:::

:::{visual} #curve visual="rates"
:::

:::{check} #ask question="where-to"
:::

::::{exercise} #try sources=none reason="Only practice."
Turn the lamp.
:::{solution}
```python
print(width + 1)
```
:::
::::
"""

VISUAL = """\
id = "rates"
title = "Rates"
minutes = 2
needs = ["light"]
summary = "A curve of rates."
sources = ["S1.p2"]
data = "schedule"
module = "schedule"
words = "A curve that rises and falls."
[[inputs]]
name = "width"
label = "Width"
kind = "range"
min = 64
max = 2048
value = 512
[[inputs]]
name = "warmup"
label = "Warm-up"
kind = "range"
min = 500
max = 20000
value = 4000
[[inputs]]
name = "reach"
label = "Reach"
kind = "range"
min = 0
max = 100
value = 80
[[inputs]]
name = "log"
label = "Logarithmic"
kind = "toggle"
value = false
"""

QUIZ = """\
id = "light-quiz"
title = "Where does it turn?"
minutes = 4
needs = ["light"]
summary = "A few questions on lamps."

[[questions]]
id = "where-to"
kind = "single"
prompt = "Where does a lamp turn?"
sources = ["S1.p1"]
explain = "It turns to what it hears."
block = "light#turning"
[[questions.options]]
text = "Towards the ship."
correct = true
why = "It hears it."
[[questions.options]]
text = "Towards the land."
why = "It hears nothing there."

[[questions]]
id = "which"
kind = "multiple"
prompt = "Which lamps turn?"
sources = ["S1.p1"]
explain = "Those that hear."
block = "light#turning"
options = [
  { text = "The one that hears", correct = true, why = "It does." },
  { text = "The other one", why = "It doesn't." },
]

[[questions]]
id = "how-many"
kind = "numeric"
prompt = "How many parameters?"
sources = ["S1.p2"]
explain = "Four matrices."
block = "light"
fact = "lamp.parameters"
tolerance = 10
[[questions.mistakes]]
value = 512
why = "That is the width."

[[questions]]
id = "name-it"
kind = "text"
prompt = "What is it called?"
sources = ["S1.p2"]
explain = "It is named so."
block = "light#try-solution"
accept = ["the angle"]
[[questions.mistakes]]
text = "turn"
why = "The turn is what is measured."

[[questions]]
id = "in-order"
kind = "order"
prompt = "What comes first?"
sources = ["S1.p2"]
explain = "It hears before it turns."
block = "light#turning"
items = [
  { text = "Hear", why = "First." },
  { text = "Turn", why = "Then." },
  { text = "Shine", why = "At last." },
]

[[questions]]
id = "what-shape"
kind = "shape"
prompt = "What shape has it?"
sources = ["S1.p2"]
explain = "Nothing is averaged."
block = "light#second"
code = \"\"\"
x = torch.zeros(2, 3)
\"\"\"
ask = "x.T.shape"
[[questions.mistakes]]
shape = [2, 3]
why = "It was turned."
"""

CARDS = """\
id = "light-cards"
title = "Cards"
minutes = 3
needs = ["light"]
summary = "Two cards."
[[cards]]
id = "card-turn"
front = "Where does a lamp turn?"
back = "Towards what it hears."
sources = ["S1.p1"]
block = "light#turning"
[[cards]]
id = "card-angle"
kind = "cloze"
text = "The angle is [[$b^2$]]."
sources = ["S1.E1"]
block = "light"
"""

RESOURCES = """\
id = "reading"
title = "Reading"
minutes = 1
summary = "What to read."
[[resources]]
id = "lamp-book"
title = "The book of lamps"
url = "https://example.org/book"
kind = "reading"
why = "It tells of [older lamps](https://example.org/older)."
when = "light"
"""

FILES = {
    "guide.toml": GUIDE,
    "anchors.json": json.dumps({"paper": "1234.56789v2", "anchors": ANCHORS}, indent=1),
    "sources.toml": SOURCES,
    "facts.toml": FACTS,
    "words.txt": "# none yet\n",
    "activities/10-light.md": LESSON,
    "activities/12-rates.visual.toml": VISUAL,
    "activities/14-light.quiz.toml": QUIZ,
    "activities/20-light.cards.toml": CARDS,
    "activities/22-reading.resources.toml": RESOURCES,
}


def write(folder: Path, *, changes: dict[str, tuple[str, str]] | None = None) -> Path:
    """The guide in this folder; in each file of `changes`, one text replaced by another."""
    for name, text in FILES.items():
        old, new = (changes or {}).get(name, ("", ""))
        if old:
            if text.count(old) != 1:
                raise ValueError(f"{name} holds {old!r} {text.count(old)} times: a test changes one place")
            text = text.replace(old, new)
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "formulas.json").write_text(formulas(folder), encoding="utf-8")
    return folder


def formulas(folder: Path) -> str:
    """What stands for the MathML of all formulas that the guide's files may hold."""
    known = {}
    for path in folder.glob("activities/*"):
        text = path.read_text(encoding="utf-8")
        for display, pattern in ((True, r"\$\$(.+?)\$\$"), (False, r"(?<!\$)\$([^$\n]+)\$(?!\$)")):
            for tex in re.findall(pattern, text):
                key = digest(tex, display)
                known[key] = Formula(tex=tex.strip(), display=display, sha256=key, mathml="<math></math>")
    return written_formulas("0", known)


def line_of(folder: Path, name: str, text: str) -> int:
    """The line of a file that holds this text first."""
    whole = (folder / name).read_text(encoding="utf-8")
    return whole.count("\n", 0, whole.index(text)) + 1
