"""Code: what a lesson shows runs, and prints the same every time."""

from __future__ import annotations

from headwise.study.check.checking import Checking
from headwise.study.content import Lesson
from headwise.study.content.fences import fences
from headwise.study.errors import GuideError

SLOW = 1.0  # seconds for one block


def check_code(checking: Checking) -> None:
    """A `code` block holds Python; all Python in lessons can be read; that of `code` blocks and solutions
    runs without an error, quickly, and prints the same when it runs again."""
    for activity in checking.guide.activities.values():
        if not isinstance(activity, Lesson):
            continue
        broken = False
        file = checking.file(activity)
        for block in activity.walk():
            found = [fence for fence in fences(block.body, block.body_line) if fence.language == "python"]
            if block.kind == "code" and len(found) != 1:
                checking.error(
                    f"#{block.id} holds {len(found)} pieces of code: a code block holds one, between "
                    f"```python and ```",
                    file,
                    block.line,
                )
            for fence in found:
                try:
                    compile(fence.code, file, "exec")
                except (SyntaxError, ValueError) as error:
                    broken = True
                    line = fence.line + (getattr(error, "lineno", None) or 1) - 1
                    checking.error(f"this is not Python: {getattr(error, 'msg', error)}", file, line)
        if checking.run and not broken:
            _run(checking, activity, file)


def _run(checking: Checking, lesson: Lesson, file: str) -> None:
    try:
        first, again = (found[lesson.id] for found in checking.ran)
    except GuideError as unstarted:  # no Python to run it
        checking.error(unstarted.message, file)
        return
    lines = {block.id: block.line for block in lesson.walk()}
    for name, ran in first.items():
        other = again.get(name)
        error = ran.error or (other.error if other else None)
        if error is not None:
            checking.error(error.message, error.file, error.line)
        elif other is None or ran.output != other.output:
            checking.error(
                f"#{name} prints something else each time it runs: give it a seed, put sets in order "
                f"(sorted), and print nothing that depends on the time or on memory addresses",
                file,
                lines[name],
            )
        elif min(ran.seconds, other.seconds) > SLOW:
            seconds = min(ran.seconds, other.seconds)
            checking.warn(f"#{name} takes {seconds:.1f} s: at most {SLOW:g} s are meant", file, lines[name])
