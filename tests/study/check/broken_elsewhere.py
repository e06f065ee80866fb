"""Faults of the order of activities, of visuals, links, formulas, code and spelling: see broken_guides.py."""

from __future__ import annotations

LESSON = "activities/10-light.md"
VISUAL = "activities/12-rates.visual.toml"
QUIZ = "activities/14-light.quiz.toml"
CARDS = "activities/20-light.cards.toml"
RESOURCES = "activities/22-reading.resources.toml"

BROKEN_ELSEWHERE = [
    # order, ids
    (
        QUIZ,
        'needs = ["light"]',
        'needs = ["light-cards"]',
        "needs =",
        "needs 'light-cards', which guide.toml lists after",
    ),
    (QUIZ, 'needs = ["light"]', 'needs = ["dark"]', "needs =", "needs: there is no activity 'dark'"),
    (CARDS, 'id = "card-turn"', 'id = "which"', "[[cards]]", "the id 'which' stands at"),
    (RESOURCES, 'when = "light"', 'when = "dark"', "[[resources]]", "when: there is no activity 'dark'"),
    (LESSON, "#second", "#first", '#first sources="S1.p1"\n```python\nprint(hw', "#first stands at line"),
    (LESSON, "minutes = 9\n", "", "+++", "minutes"),
    (
        LESSON,
        '"How a lamp turns"',
        '"keep  It"',
        'title = "keep',
        "the title 'keep  It' stands at guide.toml:20 too: give each part",
    ),
    (
        QUIZ,
        '"Where does it turn?"',
        '"Rates"',
        'title = "Rates"',
        "the title 'Rates' stands at activities/12-rates.visual.toml:2 too",
    ),
    # visuals
    (VISUAL, "value = 80", "value = 81", 'name = "reach"', "reach begins with 81, but with 80 in schedule"),
    (
        VISUAL,
        'module = "schedule"',
        'module = "timetable"',
        'id = "rates"',
        "there is no script static/visuals/timetable.js",
    ),
    (
        VISUAL,
        'data = "schedule"',
        'data = "timetable"',
        'id = "rates"',
        "headwise.study.visuals has no 'timetable'",
    ),
    (VISUAL, 'name = "log"', 'name = "logs"', 31, "schedule has no input 'logs"),
    (VISUAL, "max = 100", "max = 70", 'name = "reach"', "reach begins with 80: it must lie from 0 to 70"),
    # links
    (LESSON, "(activity:rates)", "(activity:rate)", "(activity:rate)", "there is no activity 'rate'"),
    (LESSON, "(activity:rates)", "(activity:light#turnings)", "turnings", "light has no block 'turnings'"),
    (LESSON, "(source:S1.E1)", "(source:S1.E2)", "(source:S1.E2)", "the paper has no place S1.E2"),
    (
        LESSON,
        "(symbol:headwise.masks.Window)",
        "(symbol:headwise.masks.Door)",
        "Door",
        "the library has no headwise.masks.Door",
    ),
    (
        LESSON,
        'symbol="headwise.Causal ',
        'symbol="headwise.Casual ',
        "#by-the",
        "the library has no headwise.Casual",
    ),
    (
        LESSON,
        "(activity:rates)",
        "(https://example.org)",
        "(https",
        "https://example.org leads out of the guide",
    ),
    (LESSON, "(activity:rates)", "(rates.html)", "(rates.html)", "the link 'rates.html' begins with none of"),
    (
        LESSON,
        '"https://example.org/lamps"',
        '"http://example.org/lamps"',
        "#newer",
        "'http://example.org/lamps' is no address of a page: it begins with https",
    ),
    (
        RESOURCES,
        '"https://example.org/book"',
        '"example.org/book"',
        "[[resources]]",
        "'example.org/book' is no address of a page: it begins with https",
    ),
    (LESSON, 'visual="rates"', 'visual="light"', "#curve", "there is no visual 'light'"),
    # formulas
    (LESSON, ' (equation: angle, words="a is b squared")', "", "$$ a", "this formula has no words"),
    (LESSON, "$a_t$", "$a_t", "$a_t", "a $ is left over"),
    (LESSON, "b^{2} $$", "b^{2 $$", "$$ a", "1 opening and 0 closing braces"),
    # code
    (LESSON, "width = 3", "width = three", "width = three", "the code of #first fails: NameError"),
    (LESSON, "width = 3", "width = = 3", "width = =", "this is not Python"),
    (
        LESSON,
        "print(torch.rand(width))",
        "print(id(width) if False else object())",
        "#first",
        "#first prints something else each time",
    ),
    (
        LESSON,
        "print(torch.rand(width))",
        "print(set('abcdefghijklmn'))",
        "#first",
        "#first prints something else each time it runs: give it a seed, put sets in order",
    ),
    (
        LESSON,
        "print(width + 1)",
        "print(widths + 1)",
        "print(widths",
        "the code of #try-solution fails: NameError",
    ),
    # spelling
    (
        LESSON,
        "The [mask]",
        "The recieved [mask]",
        "The recieved",
        "the dictionary has no 'recieved' (did you mean 'received'?)",
    ),
    (LESSON, 'title="It turns"', 'title="It tturns"', "#turning", "the dictionary has no 'tturns'"),
    (LESSON, "a is b squared", "a is b squarred", "$$ a", "the dictionary has no 'squarred'"),
    ("words.txt", "# none yet", "two words", "two words", "'two words' is no single word"),
]
