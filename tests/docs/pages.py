"""The documentation's pages: their examples, links and names.

A page is Markdown. Its examples are blocks of ```python, run from top to bottom in one namespace; a block of
```text or ```output right after one is what it prints.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

_EXAMPLE = re.compile(
    r"^```python\n(.*?)^```$(?:\n{1,2}^```(?:text|output)\n(.*?)^```$)?", re.DOTALL | re.MULTILINE
)
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_SPAN = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"[\w*-][\w./*-]*(?:\.py|\.md|\.toml|/)")
_NAME = re.compile(r"(?<![\w./])(?:hw|headwise)((?:\.[A-Za-z_]\w*)+)")


@dataclass(frozen=True)
class Example:
    code: str
    shown: str | None  # what the page says that it prints; None where it says nothing
    line: int  # of the page, for tracebacks


@dataclass(frozen=True)
class Page:
    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def examples(self) -> list[Example]:
        return [
            Example(match[1], match[2], self.text.count("\n", 0, match.start()) + 2)
            for match in _EXAMPLE.finditer(self.text)
        ]

    @cached_property
    def prose(self) -> str:
        """The page without its blocks of code."""
        return _FENCED.sub("", self.text)

    @property
    def links(self) -> list[str]:
        return _LINK.findall(_SPAN.sub("", self.prose))

    @property
    def anchors(self) -> set[str]:
        """What can stand behind # in a link to this page, by GitHub's rule."""
        seen: dict[str, int] = {}
        anchors = set()
        for title in re.findall(r"^#+ (.+?) *$", self.prose, re.MULTILINE):
            plain = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            count = seen.get(plain, 0)
            seen[plain] = count + 1
            anchors.add(f"{plain}-{count}" if count else plain)
        return anchors

    @property
    def names(self) -> set[str]:
        """Dotted names of this library in the prose's code spans: "headwise.kernels.merge"."""
        spans = " ".join(_SPAN.findall(self.prose))
        return {f"headwise{found}" for found in _NAME.findall(spans)}

    @property
    def files(self) -> set[str]:
        """Code spans that name a source file, a page or a folder."""
        return {span for span in _SPAN.findall(self.prose) if _FILE.fullmatch(span)}

    def run(self) -> Iterator[tuple[Example, str]]:
        """Each example with what it printed."""
        names: dict[str, Any] = {"__name__": f"example of {self.name}"}
        for example in self.examples:
            source = "\n" * (example.line - 1) + example.code  # so that tracebacks name the line
            code = compile(source, self.name, "exec", dont_inherit=True)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code, names)
            yield example, printed.getvalue()


def pages() -> list[Page]:
    """Every page of the documentation."""
    top = [
        path
        for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")
        if path.exists()
    ]
    return [Page(path) for path in (*top, *sorted((ROOT / "docs").glob("**/*.md")))]


GUIDE = ROOT / "guides" / "attention-is-all-you-need"
TOPS = (ROOT, ROOT / "src" / "headwise", ROOT / "src" / "headwise" / "study", GUIDE, GUIDE / "activities")


def is_file(name: str) -> bool:
    """Whether a path (or pattern) leads somewhere, from the top, the package, the study room or the guide."""
    return any(any(top.glob(name)) for top in TOPS)


def exists(name: str) -> bool:
    """Whether a dotted name leads somewhere: "headwise.interop.torch.MultiheadAttention.forward"."""
    first, *rest = name.split(".")
    found: Any = importlib.import_module(first)
    path = first
    for part in rest:
        path = f"{path}.{part}"
        if not hasattr(found, part):
            try:
                found = importlib.import_module(path)
            except ImportError:
                return False
        else:
            found = getattr(found, part)
    return True
