"""The teaching order: what an activity needs comes before it."""

from __future__ import annotations

from headwise.study.check.checking import Checking
from headwise.study.content import Lesson, Resources, Visual


def check_order(checking: Checking) -> None:
    """What `needs` and `when` name exists, and `needs` comes earlier; every activity says how long it takes
    and what it is for; no part is empty."""
    guide = checking.guide
    order = {name: place for place, name in enumerate(guide.activities)}
    for number, part in enumerate(guide.parts, 1):
        if not part.activities:
            checking.error(
                f"part {number}, {part.title!r}, holds no activities", checking.file("guide.toml"), 1
            )
    for activity in guide.activities.values():
        file = checking.file(activity)
        line = checking.line(file, "needs")
        for needed in activity.needs:
            if needed == activity.id:
                checking.error(f"{activity.id} needs itself", file, line)
            elif needed not in order:
                checking.error(f"needs: there is no activity {needed!r}", file, line)
            elif order[needed] > order[activity.id]:
                checking.error(
                    f"needs {needed!r}, which guide.toml lists after {activity.id!r}: move one of them",
                    file,
                    line,
                )
        if not activity.title.strip():
            checking.error("the title is empty", file, activity.line)
        if not activity.summary.strip():
            checking.error(
                'summary = "..." is missing: one sentence for the list of all activities', file, activity.line
            )
        if activity.minutes <= 0:
            checking.error("minutes = ... is missing: how long does it take?", file, activity.line)
        if not activity.places() and not isinstance(activity, Visual):
            checking.error(f"{activity.id} holds nothing", file, activity.line)
        if isinstance(activity, Lesson) and not activity.goals:
            checking.error(
                'goals = ["..."] is missing: what can a learner do afterwards?', file, activity.line
            )
        if isinstance(activity, Resources):
            for resource in activity.resources:
                if resource.when and resource.when not in order:
                    checking.error(f"when: there is no activity {resource.when!r}", file, resource.line)
