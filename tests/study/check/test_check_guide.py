"""What `headwise study check` finds in a guide: everything, each at its file and line, and nothing else."""

from __future__ import annotations

from pathlib import Path

import checked_guide
import pytest

from headwise.study.check import check_guide
from headwise.study.content import load_guide

LESSON = "activities/10-light.md"
VISUAL = "activities/12-rates.visual.toml"
QUIZ = "activities/14-light.quiz.toml"
CARDS = "activities/20-light.cards.toml"
RESOURCES = "activities/22-reading.resources.toml"


def test_nothing_is_wrong_with_a_good_guide(tmp_path: Path) -> None:
    assert [str(fault) for fault in check_guide(checked_guide.write(tmp_path))] == []


# file, what is replaced, by what; the text at whose line the fault stands, and a part of what it says
BROKEN = [
    # sources
    (LESSON, '#turning sources="S1.p1.7"', '#turning sources="S9.p1 S1.p1"', "#turning", "no place S9.p1"),
    (LESSON, '{code} #first sources="S1.p1"', "{code} #first sources=none", "#first", "names no source"),
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
    (CARDS, 'sources = ["S1.E1"]', 'sources = ["S1.E7"]', 'sources = ["S1.E7"]', "no place S1.E7"),
    ("sources.toml", 'about = "How far it turns."', 'about = " "', '["S1.p2"]', "about says nothing"),
    ("sources.toml", "a lamp that hears", "lamp " * 26, '["S1.p1"]', "26 words: at most 25"),
    # facts
    (LESSON, "{{fact:lamp.width}}", "{{fact:lamp.height}}", "{{fact:lamp.height}}", "no lamp.height"),
    (LESSON, "{{fact:lamp.width}}", "{{facts:lamp.width}}", "{{facts", "is written {{fact:id}}"),
    ("facts.toml", "value = 1048576", "value = 1048577", '["lamp.parameters"]', "gives 1048576"),
    ("facts.toml", "value = 0.000699", "value = 0.000697", '["lamp.rate"]', "agree to 3 digits"),
    ("facts.toml", '"attention_parameters"', '"attention_params"', '["lamp.parameters"]', "no function"),
    ("facts.toml", "num_heads = 8", "heads = 8", '["lamp.parameters"]', "can't be called so"),
    ("facts.toml", "num_heads = 8", "num_heads = 7", '["lamp.parameters"]', "7"),
    ("facts.toml", "6.99 × 10⁻⁴", "6.99 × 10⁻⁵", '["lamp.rate"]', "another number"),
    ("facts.toml", 'command = "python -m benchmarks.forward"\n', "", '["lamp.speed"]', "needs the command"),
    ("facts.toml", 'reason = "Measured by this library."\n', "", '["lamp.speed"]', "names no source"),
    ("facts.toml", "digits = 3", "digits = 0", '["lamp.rate"]', "from 1 to 17"),
    # questions
    (
        QUIZ,
        'why = "It hears nothing there."',
        "",
        '[[questions.options]]\ntext = "Towards the land',
        "option 2 has no why",
    ),
    (QUIZ, "correct = true\nwhy", "why", "[[questions]]", "0 options are correct"),
    (QUIZ, 'explain = "It turns to what it hears."\n', "", "[[questions]]", "explain"),
    (QUIZ, '"The other one", why', '"The one  that hears", why', 'id = "which"', "are the same"),
    (QUIZ, "tolerance = 10", "tolerance = -1", "tolerance = -1", "tolerance = -1"),
    (
        QUIZ,
        "value = 512",
        "value = 1048570",
        "[[questions.mistakes]]\nvalue = 1048570",
        "lies within the tolerance",
    ),
    (QUIZ, 'fact = "lamp.parameters"', 'fact = "lamp.number"', 'id = "how-many"', "no lamp.number"),
    (QUIZ, 'fact = "lamp.parameters"', 'answer = 3\nfact = "lamp.parameters"', 'id = "how-many"', "keep one"),
    (QUIZ, 'text = "turn"', 'text = "Angle!"', '[[questions.mistakes]]\ntext = "Angle', "accepted as right"),
    (QUIZ, "tolerance = 10", "tolerance = inf", "tolerance = inf", "inf is no number"),
    (QUIZ, "tolerance = 10", "tolerance = nan", "tolerance = nan", "nan is no number"),
    (QUIZ, 'fact = "lamp.parameters"', "answer = nan", "answer = nan", "nan is no number"),
    (QUIZ, "value = 512", "value = -inf", "value = -inf", "-inf is no number"),
    ("facts.toml", "value = 512", "value = inf", "value = inf", "inf is no number"),
    (
        QUIZ,
        "value = 512",
        'value = 512\nwhy = "So."\n[[questions.mistakes]]\nvalue = 520',
        "[[questions.mistakes]]\nvalue = 520",
        "512 and 520 lie within the tolerance 10",
    ),
    (
        QUIZ,
        'text = "turn"',
        'text = "turn"\nwhy = "So."\n[[questions.mistakes]]\ntext = "The Turn."',
        '[[questions.mistakes]]\ntext = "The Turn',
        "is never told",
    ),
    (
        QUIZ,
        "shape = [2, 3]",
        'shape = [2, 3]\nwhy = "So."\n[[questions.mistakes]]\nshape = [2, 3]',
        None,
        "is never told",
    ),
    (QUIZ, 'text = "turn"', 'text = "..."', '[[questions.mistakes]]\ntext = "...', "can't be given"),
    (QUIZ, 'accept = ["the angle"]', 'accept = ["{{fact:lamp.width}}"]', "accept =", "nobody types braces"),
    (QUIZ, 'text = "turn"', 'text = "{turn}"', '[[questions.mistakes]]\ntext = "{', "nobody types braces"),
    (QUIZ, 'accept = ["the angle"]', f'accept = ["{"angle " * 34}"]', "accept =", "has 204 characters"),
    (QUIZ, '"The other one", why', '"The **one** that *hears*.", why', 'id = "which"', "are the same"),
    (QUIZ, '"The other one", why', '"The one that `hears`", why', 'id = "which"', "are the same"),
    ("facts.toml", 'show = "6.99 × 10⁻⁴"', 'show = "approximately 0.01"', '["lamp.rate"]', "another number"),
    ("facts.toml", 'show = "6.99 × 10⁻⁴"', 'show = "approximately 0.0007"', '["lamp.rate"]', ""),
    (QUIZ, 'text = "turn"', "value = 3", "[[questions.mistakes]]\nvalue = 3", "give text and why"),
    (QUIZ, 'why = "Then."', 'why = ""', "items = [", "item 2 has no why"),
    (QUIZ, "shape = [2, 3]", "shape = [3, 2]", "[[questions.mistakes]]\nshape = [3", "is the right answer"),
    (QUIZ, 'ask = "x.T.shape"', 'ask = "x.TT.shape"', 'id = "what-shape"', "the code fails"),
    (QUIZ, 'ask = "x.T.shape"', 'ask = "len(x)"', 'id = "what-shape"', "must give a shape"),
    (QUIZ, 'accept = ["the angle"]', 'accept = ["the angle"]\nask = "x"', 'ask = "x"', "has no ask"),
    (
        QUIZ,
        'block = "light#second"',
        'block = "light#third"',
        'block = "light#third"',
        "no block light#third",
    ),
    (LESSON, 'question="where-to"', 'question="whither"', "#ask", "names no source"),
    # cards
    (CARDS, "[[$b^2$]]", "$b^2$", 'text = "The angle', "hides something"),
    (CARDS, 'back = "Towards what it hears."\n', "", 'id = "card-turn"', "front and back"),
    # order, ids
    (QUIZ, 'needs = ["light"]', 'needs = ["light-cards"]', "needs =", "lists after"),
    (QUIZ, 'needs = ["light"]', 'needs = ["dark"]', "needs =", "no activity 'dark'"),
    (CARDS, 'id = "card-turn"', 'id = "which"', "[[cards]]", "stands at"),
    (RESOURCES, 'when = "light"', 'when = "dark"', "[[resources]]", "no activity 'dark'"),
    (LESSON, "#second", "#first", '#first sources="S1.p1"\n```python\nprint(hw', "stands at line"),
    (LESSON, "minutes = 9\n", "", "+++", "minutes"),
    (LESSON, '"How a lamp turns"', '"keep  It"', 'title = "keep', "guide.toml:20 too: give each part"),
    (QUIZ, '"Where does it turn?"', '"Rates"', 'title = "Rates"', "12-rates.visual.toml:2 too"),
    # visuals
    (VISUAL, "value = 80", "value = 81", 'name = "reach"', "81"),
    (VISUAL, 'module = "schedule"', 'module = "timetable"', 'id = "rates"', "timetable.js"),
    (VISUAL, 'data = "schedule"', 'data = "timetable"', 'id = "rates"', "no 'timetable'"),
    (VISUAL, 'name = "log"', 'name = "logs"', None, "logs"),
    (VISUAL, "max = 100", "max = 70", 'name = "reach"', "from 0 to 70"),
    # links
    (LESSON, "(activity:rates)", "(activity:rate)", "(activity:rate)", "no activity 'rate'"),
    (LESSON, "(activity:rates)", "(activity:light#turnings)", "turnings", "no block 'turnings'"),
    (LESSON, "(source:S1.E1)", "(source:S1.E2)", "(source:S1.E2)", "no place S1.E2"),
    (LESSON, "(symbol:headwise.masks.Window)", "(symbol:headwise.masks.Door)", "Door", "headwise.masks.Door"),
    (LESSON, 'symbol="headwise.Causal ', 'symbol="headwise.Casual ', "#by-the", "headwise.Casual"),
    (LESSON, "(activity:rates)", "(https://example.org)", "(https", "leads out of the guide"),
    (LESSON, "(activity:rates)", "(rates.html)", "(rates.html)", "begins with none of"),
    (LESSON, '"https://example.org/lamps"', '"http://example.org/lamps"', "#newer", "begins with https"),
    (RESOURCES, '"https://example.org/book"', '"example.org/book"', "[[resources]]", "begins with https"),
    (LESSON, 'visual="rates"', 'visual="light"', "#curve", "no visual 'light'"),
    # formulas
    (LESSON, ' (equation: angle, words="a is b squared")', "", "$$ a", "no words"),
    (LESSON, "$a_t$", "$a_t", "$a_t", "$ is left over"),
    (LESSON, "b^{2} $$", "b^{2 $$", "$$ a", "closing braces"),
    # code
    (LESSON, "width = 3", "width = three", "width = three", "NameError"),
    (LESSON, "width = 3", "width = = 3", "width = =", "not Python"),
    (LESSON, "print(torch.rand(width))", "print(id(width) if False else object())", "#first", "each time"),
    (LESSON, "print(torch.rand(width))", "print(set('abcdefghijklmn'))", "#first", "put sets in order"),
    (LESSON, "print(width + 1)", "print(widths + 1)", "print(widths", "NameError"),
    # spelling
    (LESSON, "The [mask]", "The recieved [mask]", "The recieved", "'recieved' (did you mean 'received'?)"),
    (LESSON, 'title="It turns"', 'title="It tturns"', "#turning", "'tturns'"),
    (LESSON, "a is b squared", "a is b squarred", "$$ a", "'squarred'"),
    ("words.txt", "# none yet", "two words", "two words", "no single word"),
]


@pytest.mark.parametrize(
    ("file", "old", "new", "at", "said"), BROKEN, ids=[f"{one[0][-12:]} {one[2][:30]}" for one in BROKEN]
)
def test_one_fault_is_found_at_its_line(
    tmp_path: Path, file: str, old: str, new: str, at: str | None, said: str
) -> None:
    folder = checked_guide.write(tmp_path, changes={file: (old, new)})
    errors = [fault for fault in check_guide(folder) if not fault.warning]
    if not said:
        assert errors == []
        return
    assert errors, "nothing was found"
    found = [fault for fault in errors if said in str(fault)]
    assert found, [str(fault) for fault in errors]
    assert found[0].file == str(folder / file)
    if at is not None:
        line = checked_guide.line_of(folder, file, at)
        if at.startswith(("id =", "name =")):  # a table's line is that of its [[header]]
            written = (folder / file).read_text(encoding="utf-8").splitlines()
            line -= written[line - 2].startswith("[[")
        assert found[0].line == line, str(found[0])


def test_all_faults_of_a_guide_are_told_at_once(tmp_path: Path) -> None:
    folder = checked_guide.write(
        tmp_path,
        changes={
            LESSON: ("(activity:rates)", "(activity:rate)"),
            QUIZ: ('why = "It hears nothing there."', ""),
            "facts.toml": ("value = 1048576", "value = 1048577"),
            CARDS: ("[[$b^2$]]", "$b^2$"),
        },
    )
    files = [Path(fault.file).name for fault in check_guide(folder, run=False)]
    assert files == ["10-light.md", "14-light.quiz.toml", "20-light.cards.toml", "facts.toml"]


def test_a_file_that_cannot_be_read_hides_no_other_fault(tmp_path: Path) -> None:
    folder = checked_guide.write(
        tmp_path,
        changes={QUIZ: ("minutes = 4", "minutes = ="), "facts.toml": ("value = 1048576", "value = 1048577")},
    )
    told = [str(fault) for fault in check_guide(folder, run=False)]
    assert any(f"{QUIZ}:3: this is not TOML" in one for one in told)
    assert any("facts.toml:6: lamp.parameters" in one for one in told)


def test_without_running_no_code_is_run(tmp_path: Path) -> None:
    folder = checked_guide.write(tmp_path, changes={LESSON: ("width = 3", "width = three")})
    assert check_guide(folder, run=False) == []
    assert [fault.line for fault in check_guide(folder)] != []


def test_a_typed_number_that_is_a_fact_is_a_warning(tmp_path: Path) -> None:
    folder = checked_guide.write(tmp_path, changes={LESSON: ("The [mask]", "Of 512 lamps the [mask]")})
    (warning,) = check_guide(folder, run=False)
    assert warning.warning
    assert "{{fact:lamp.width}}" in str(warning)
    assert str(warning).startswith(
        f"{folder / LESSON}:{checked_guide.line_of(folder, LESSON, 'Of 512')}: warning:"
    )


@pytest.mark.parametrize(
    "typed", ["51", "5120", "512nd", "v512", "0.512", "`512`", "$512$", "{{value:lamp.width}}"]
)
def test_other_numbers_are_no_facts(tmp_path: Path, typed: str) -> None:
    folder = checked_guide.write(tmp_path, changes={LESSON: ("The [mask]", f"Of {typed} lamps the [mask]")})
    assert [fault for fault in check_guide(folder, run=False) if fault.warning] == []


def test_a_source_that_nothing_rests_on_is_a_warning(tmp_path: Path) -> None:
    folder = checked_guide.write(
        tmp_path, changes={"sources.toml": ('["S1.E1"]', '["S1.p3"]\nabout = "Lamps."\n["S1.E1"]')}
    )
    (warning,) = check_guide(folder, run=False)
    assert warning.warning
    assert "nothing in the guide rests on S1.p3" in str(warning)


@pytest.mark.parametrize(
    ("question", "kind", "old", "new", "example"),
    [
        ("how-many", "whole", 'fact = "lamp.parameters"\ntolerance = 10', "answer = 1234", "1234"),
        ("how-many", "tolerance", 'fact = "lamp.parameters"\ntolerance', "answer = 1240\ntolerance", "1234"),
        ("how-many", "power", 'fact = "lamp.parameters"\ntolerance = 10', "answer = 2187", "3^7"),
        ("name-it", "text", 'accept = ["the angle"]', 'accept = ["the angle", "6e-5."]', "6e-5"),
        ("what-shape", "shape", "torch.zeros(2, 3)", "torch.zeros(496, 28, 6)", "6, 28, 496"),
    ],
    ids=["whole", "tolerance", "power", "text", "shape"],
)
def test_an_example_that_answers_a_question_is_a_warning(
    tmp_path: Path, question: str, kind: str, old: str, new: str, example: str
) -> None:
    folder = checked_guide.write(tmp_path, changes={QUIZ: (old, new)})
    if question == "what-shape":  # .T would warn of more than two sizes
        quiz = folder / QUIZ
        quiz.write_text(quiz.read_text().replace("x.T.shape", "x.permute(2, 1, 0).shape"))
    (warning,) = check_guide(folder)
    line = checked_guide.line_of(folder, QUIZ, f'id = "{question}"') - 1
    assert str(warning).startswith(f"{folder / QUIZ}:{line}: warning: {question}: {example!r} answers it")


def test_words_of_the_guide_are_words(tmp_path: Path) -> None:
    folder = checked_guide.write(
        tmp_path,
        changes={
            LESSON: ("The [mask]", "The zorgly Vrumm [mask]"),
            "words.txt": ("# none yet", "zorgly\nVrumm"),
        },
    )
    assert check_guide(folder, run=False) == []


def test_a_formula_without_stored_mathml_is_told(tmp_path: Path) -> None:
    folder = checked_guide.write(tmp_path)
    (folder / "formulas.json").unlink()
    told = [str(fault) for fault in check_guide(folder, run=False)]
    assert len(told) == 2  # the lesson's text, and the card's
    assert all("headwise.study.authoring" in one for one in told)


def test_a_question_and_a_visual_lend_their_sources(tmp_path: Path) -> None:
    guide = load_guide(checked_guide.write(tmp_path))
    assert guide.block("light#ask").sources == ["S1.p1"]
    assert guide.block("light#curve").sources == ["S1.p2"]
