"""Faults that a guide can have: what is changed in a whole one, where the fault is found, and how its message
begins. First those of sources, facts and cards."""

from __future__ import annotations

from broken_elsewhere import BROKEN_ELSEWHERE, CARDS, LESSON, QUIZ, VISUAL
from broken_questions import BROKEN_QUESTIONS

# file, what is replaced, by what; the text at whose line the fault stands, or it; how the message begins
BROKEN = [
    # sources
    (
        LESSON,
        '#turning sources="S1.p1.7"',
        '#turning sources="S9.p1 S1.p1"',
        "#turning",
        "the paper has no place S9.p1",
    ),
    (
        LESSON,
        '{code} #first sources="S1.p1"',
        "{code} #first sources=none",
        "#first",
        "#first names no source",
    ),
    (LESSON, ' reason="Only practice."', "", "#try", "#try names no source"),
    (LESSON, 'sources="S1.p1.7" quote', 'sources="S1.p2" quote', "#turning", "quote=S1.p1, but"),
    (LESSON, 'quote="S1.p1"', 'quote="S1.p1" ', None, ""),
    (
        QUIZ,
        'sources = ["S1.p1"]\nexplain = "It turns',
        'explain = "It turns',
        "[[questions]]",
        "where-to names no source",
    ),
    (
        CARDS,
        'sources = ["S1.E1"]',
        'sources = ["S1.E7"]',
        'sources = ["S1.E7"]',
        "the paper has no place S1.E7",
    ),
    ("sources.toml", 'about = "How far it turns."', 'about = " "', '["S1.p2"]', "S1.p2: about says nothing"),
    (
        "sources.toml",
        "a lamp that hears",
        "lamp " * 26,
        '["S1.p1"]',
        "S1.p1: the quote has 26 words: at most 25",
    ),
    # facts
    (
        LESSON,
        "{{fact:lamp.width}}",
        "{{fact:lamp.height}}",
        "{{fact:lamp.height}}",
        "facts.toml has no lamp.height",
    ),
    (
        LESSON,
        "{{fact:lamp.width}}",
        "{{facts:lamp.width}}",
        "{{facts",
        "{{facts:lamp.width}} is written {{fact:id}}",
    ),
    (
        "facts.toml",
        "value = 1048576",
        "value = 1048577",
        '["lamp.parameters"]',
        "lamp.parameters: value = 1048577, but attention_parameters gives 1048576",
    ),
    (
        "facts.toml",
        "value = 0.000699",
        "value = 0.000697",
        '["lamp.rate"]',
        "lamp.rate: value = 0.000697, but learning_rate gives 0.0006987712429686842",
    ),
    (
        "facts.toml",
        '"attention_parameters"',
        '"attention_params"',
        '["lamp.parameters"]',
        "lamp.parameters: headwise.study.computed has no function",
    ),
    (
        "facts.toml",
        "num_heads = 8",
        "heads = 8",
        '["lamp.parameters"]',
        "lamp.parameters: attention_parameters(d_model: 'int', num_heads: 'int'",
    ),
    (
        "facts.toml",
        "num_heads = 8",
        "num_heads = 7",
        '["lamp.parameters"]',
        "lamp.parameters: d_model=512 doesn't divide into num_heads=7",
    ),
    (
        "facts.toml",
        "6.99 × 10⁻⁴",
        "6.99 × 10⁻⁵",
        '["lamp.rate"]',
        "lamp.rate: show = '6.99 × 10⁻⁵' is another number",
    ),
    (
        "facts.toml",
        'command = "python -m benchmarks.forward"\n',
        "",
        '["lamp.speed"]',
        "lamp.speed: it was measured, so it needs the command",
    ),
    (
        "facts.toml",
        'reason = "Measured by this library."\n',
        "",
        '["lamp.speed"]',
        "lamp.speed names no source",
    ),
    (
        "facts.toml",
        "digits = 3",
        "digits = 0",
        '["lamp.rate"]',
        "lamp.rate: digits = 0: give significant digits from 1 to 17",
    ),
    ("facts.toml", "value = 512", "value = inf", "value = inf", "lamp.width: inf is no number"),
    (
        "facts.toml",
        'show = "6.99 × 10⁻⁴"',
        'show = "approximately 0.01"',
        '["lamp.rate"]',
        "lamp.rate: show = 'approximately 0.01' is another number",
    ),
    ("facts.toml", 'show = "6.99 × 10⁻⁴"', 'show = "approximately 0.0007"', '["lamp.rate"]', ""),
    *BROKEN_QUESTIONS,
    # cards
    (CARDS, "[[$b^2$]]", "$b^2$", 'text = "The angle', "card-angle: a cloze hides something"),
    (
        CARDS,
        'back = "Towards what it hears."\n',
        "",
        'id = "card-turn"',
        "card-turn: a basic card needs front and back",
    ),
    *BROKEN_ELSEWHERE,
]


# What follows from a fault elsewhere, and is told with it: file, line, and how the message begins.
FOLLOWS: dict[tuple[str, str], list[tuple[str, int, str]]] = {
    (LESSON, ' reason="Only practice."'): [(LESSON, 45, "#try-solution names no source")],
    (QUIZ, 'sources = ["S1.p1"]\nexplain = "It turns'): [(LESSON, 40, "#ask names no source")],
    ("facts.toml", "value = 0.000699"): [
        ("facts.toml", 14, "lamp.rate: show = '6.99 × 10⁻⁴' is another number")
    ],
    ("facts.toml", "value = 512"): [(LESSON, 10, "facts.toml has no lamp.width")],
    (LESSON, 'question="where-to"'): [(LESSON, 40, "#ask: no quiz has the question 'whither'")],
    (LESSON, "#second"): [(QUIZ, 78, "what-shape: there is no block light#second")],
    (VISUAL, 'name = "log"'): [(VISUAL, 1, "schedule has an input 'log': add it")],
    (LESSON, 'visual="rates"'): [(LESSON, 37, "#curve names no source")],
}
RUNS_ON = [  # the code of a lesson goes on where the code before it ended
    (LESSON, 33, "the code of #second fails: NameError"),
    (LESSON, 47, "the code of #try-solution fails: NameError"),
]
