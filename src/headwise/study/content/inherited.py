"""Blocks that show a question or a visual rest on the same passages as that."""

from __future__ import annotations

import msgspec

from headwise.study.content.guide import Activity
from headwise.study.content.lesson import Block, Lesson
from headwise.study.content.quiz import Question, Quiz
from headwise.study.content.visual import Visual


def with_sources(activities: dict[str, Activity]) -> dict[str, Activity]:
    """The activities, where each `check` and `visual` block without sources and reason has those of the
    question or visual that it shows."""
    questions = {
        one.id: one
        for activity in activities.values()
        if isinstance(activity, Quiz)
        for one in activity.questions
    }

    def shown(block: Block) -> Question | Visual | None:
        if block.kind == "check":
            return questions.get(block.options.get("question", ""))
        visual = activities.get(block.options.get("visual", ""))
        return visual if block.kind == "visual" and isinstance(visual, Visual) else None

    def filled(block: Block) -> Block:
        other = None if block.sources or block.reason else shown(block)
        if other is None:
            return block
        return msgspec.structs.replace(block, sources=other.sources, reason=other.reason)

    return {
        name: msgspec.structs.replace(activity, blocks=[filled(block) for block in activity.blocks])
        if isinstance(activity, Lesson)
        else activity
        for name, activity in activities.items()
    }
