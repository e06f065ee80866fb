"""What `headwise study check` finds in a guide: everything, each at its file and line, and nothing else."""

from __future__ import annotations

from pathlib import Path

import checked_guide
import pytest
from broken_guides import BROKEN, CARDS, FOLLOWS, LESSON, QUIZ, RUNS_ON

from headwise.study.check import check_guide
from headwise.study.content import load_guide


def test_nothing_is_wrong_with_a_good_guide(tmp_path: Path) -> None:
    assert [str(fault) for fault in check_guide(checked_guide.write(tmp_path))] == []


@pytest.mark.parametrize(
    ("file", "old", "new", "at", "begins"), BROKEN, ids=[f"{one[0][-12:]} {one[2][:30]}" for one in BROKEN]
)
def test_one_fault_is_found_at_its_line(
    tmp_path: Path, file: str, old: str, new: str, at: str | int, begins: str
) -> None:
    folder = checked_guide.write(tmp_path, changes={file: (old, new)})
    found = [
        (str(Path(fault.file).relative_to(folder)), fault.line, fault.error.message.replace(f"{folder}/", ""))
        for fault in check_guide(folder)
        if not fault.warning
    ]
    if not begins:
        assert found == []
        return
    line = at if isinstance(at, int) else checked_guide.line_of(folder, file, at)
    if isinstance(at, str) and at.startswith(("id =", "name =")):  # a table's line is that of its [[header]]
        written = (folder / file).read_text(encoding="utf-8").splitlines()
        line -= written[line - 2].startswith("[[")
    follows = RUNS_ON if new == "width = three" else FOLLOWS.get((file, old), [])
    wanted = sorted([(file, line, begins), *follows])
    assert [(name, number) for name, number, _ in sorted(found)] == [
        (name, number) for name, number, _ in wanted
    ]
    for (_, _, message), (_, _, start) in zip(sorted(found), wanted, strict=True):
        assert message.startswith(start), message


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


def test_a_missing_reason_hides_no_mistake_of_the_grading(tmp_path: Path) -> None:
    changes = {QUIZ: ('explain = "It is named so."', 'accept = ["Turn."]')}
    folder = checked_guide.write(tmp_path, changes=changes)
    quiz = folder / QUIZ
    quiz.write_text(
        quiz.read_text(encoding="utf-8").replace('accept = ["the angle"]\n', ""), encoding="utf-8"
    )
    told = [fault.error.message for fault in check_guide(folder, run=False)]
    assert told == [
        'name-it: explain = "..." is missing: why is the answer right?',
        "name-it: the mistake 'turn' is graded as right",
    ]


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
    lesson = folder / LESSON
    lesson.write_text(lesson.read_text(encoding="utf-8").replace("$a_t$", "$a_u$"), encoding="utf-8")
    (told,) = [str(fault) for fault in check_guide(folder, run=False)]
    line = checked_guide.line_of(folder, LESSON, "$a_u$")
    assert told.startswith(f"{lesson}:{line}: no MathML is stored for the inline formula 'a_u'")
    assert told.endswith(f"run python -m headwise.study.authoring {folder}")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("guide.toml", "a guide needs this file, and there is none"),
        ("anchors.json", "a guide needs this file, and there is none"),
        ("sources.toml", "a guide needs this file, and there is none"),
        ("facts.toml", "a guide needs this file, and there is none"),
        ("activities", "a guide needs this folder, and there is none"),
        ("formulas.json", "it has the MathML of no formula: run python -m headwise.study.authoring"),
    ],
)
def test_what_is_missing_is_told_once_and_not_what_follows(tmp_path: Path, name: str, says: str) -> None:
    folder = checked_guide.write(tmp_path)
    (folder / name).rename(tmp_path / "elsewhere")
    (told,) = [str(fault) for fault in check_guide(folder, run=False)]
    assert told.startswith(f"{folder / name}: {says}")


@pytest.mark.parametrize(
    "name", ["anchors.json", "sources.toml", "facts.toml", "activities", "formulas.json"]
)
def test_what_cannot_be_read_is_told_once(tmp_path: Path, name: str) -> None:
    folder = checked_guide.write(tmp_path)
    (folder / name).rename(tmp_path / "elsewhere")
    if name == "activities":
        (folder / name).write_text("a file, and no folder", encoding="utf-8")
    else:
        (folder / name).mkdir()
    (told,) = [str(fault) for fault in check_guide(folder, run=False)]
    assert told.startswith(f"{folder / name}: ")
    assert "\n" not in told


def test_a_folder_without_activities_is_told_of_each_that_is_listed(tmp_path: Path) -> None:
    folder = checked_guide.write(tmp_path)
    (folder / "activities").rename(tmp_path / "elsewhere")
    (folder / "activities").mkdir()
    told = [fault.error.message for fault in check_guide(folder, run=False) if not fault.warning]
    assert told == [
        f"no file in activities/ has the id {name!r}"
        for name in ("light", "rates", "light-quiz", "light-cards", "reading")
    ]


def test_a_question_and_a_visual_lend_their_sources(tmp_path: Path) -> None:
    guide = load_guide(checked_guide.write(tmp_path))
    assert guide.block("light#ask").sources == ["S1.p1"]
    assert guide.block("light#curve").sources == ["S1.p2"]
