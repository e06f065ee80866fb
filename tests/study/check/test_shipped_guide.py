"""The guide that comes with headwise keeps its own rules."""

from __future__ import annotations

from pathlib import Path

from headwise.models.table3 import find_row
from headwise.study.check import check_guide
from headwise.study.content import load_guide

GUIDE = Path(__file__).parents[3] / "guides" / "attention-is-all-you-need"


def test_nothing_is_wrong_with_the_guide_to_attention() -> None:
    assert [str(fault) for fault in check_guide(GUIDE) if not fault.warning] == []


def test_no_example_of_how_to_write_an_answer_is_an_answer_of_the_guide() -> None:
    assert [fault for fault in check_guide(GUIDE) if "answers it" in str(fault)] == []


ROWS = {
    "base": "base",
    **{f"a{heads}": f"A h={heads}" for heads in (1, 4, 16, 32)},
    **{f"b{width}": f"B d_k={width}" for width in (16, 32)},
    **{f"c-n{layers}": f"C N={layers}" for layers in (2, 4, 8)},
    **{f"c-d{width}": f"C d_model={width}" for width in (256, 1024)},
    **{f"c-ff{width}": f"C d_ff={width}" for width in (1024, 4096)},
    "d-drop0": "D dropout=0.0",
    "d-drop2": "D dropout=0.2",
    "d-ls0": "D label_smoothing=0.0",
    "d-ls2": "D label_smoothing=0.2",
    "e": "E learned",
    "big": "big",
}


def test_cited_figures_of_table_3_are_those_of_the_library() -> None:
    """The paper's table stands twice in the project, typed by different hands."""
    facts = load_guide(GUIDE).facts
    for short, name in ROWS.items():
        row = find_row(name)
        assert facts[f"table3.{short}.bleu"].value == row.bleu, name
        assert facts[f"table3.{short}.perplexity"].value == row.perplexity, name
        if row.parameters is not None:
            assert facts[f"table3.{short}.parameters"].value == row.parameters, name
