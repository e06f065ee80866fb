"""The guide that comes with headwise keeps its own rules."""

from __future__ import annotations

from pathlib import Path

from headwise.study.check import check_guide

GUIDE = Path(__file__).parents[3] / "guides" / "attention-is-all-you-need"


def test_nothing_is_wrong_with_the_guide_to_attention() -> None:
    assert [str(fault) for fault in check_guide(GUIDE) if not fault.warning] == []
