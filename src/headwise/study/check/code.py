"""Code: what a lesson shows runs, and prints the same every time."""

from __future__ import annotations

from headwise.study.check.checking import Checking
from headwise.study.content import Lesson
from headwise.study.content.fences import fences

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
    from headwise.study.running import run_lesson

    first = run_lesson(lesson, checking.guide.folder)
    if not first:
        return
    lines = {block.id: block.line for block in lesson.walk()}
    again = run_lesson(lesson, checking.guide.folder)
    for name, ran in first.items():
        if ran.error is not None:
            checking.error(ran.error.message, ran.error.file, ran.error.line)
        elif ran.output != again[name].output:
            checking.error(
                f"#{name} prints something else each time it runs: give it a seed, and nothing that depends "
                f"on the time or on memory addresses",
                file,
                lines[name],
            )
        elif min(ran.seconds, again[name].seconds) > SLOW:
            seconds = min(ran.seconds, again[name].seconds)
            checking.warn(f"#{name} takes {seconds:.1f} s: at most {SLOW:g} s are meant", file, lines[name])
