"""MathML for the formulas of a guide: which ones there are, and Temml run on those that are new."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headwise.study.content import load_guide
from headwise.study.errors import GuideError
from headwise.study.maths import FILE, Formula, digest, plain, read_formulas, written_formulas
from headwise.study.render.texts import all_texts
from headwise.training.files import replace_file

TEMML = "0.13.5"

# Temml writes some style attributes. A page's security policy forbids them, so each becomes a class (of
# blocks.css) or nothing, where the browser does the same by itself.
CLASS_OF = {
    "display:block math": "",  # the class tml-display, which Temml writes too
    "math-depth:0": "",
    "padding-left:0em": "pl-0",
    "padding-right:0em": "pr-0",
    "padding-left:5.9776pt": "pl-6",
    "padding-right:5.9776pt": "pr-6",
    "padding-left:1em": "pl-1em",
    "padding-right:1em": "pr-1em",
    "width:100%": "w-100",
    "padding:0": "p-0",
    "width:50%": "w-50",
    "margin-left:-0.1667em": "ml-thin",
}
_TAG = re.compile(r"<[a-z]+\b[^>]*>")
_STYLE = re.compile(r'\sstyle="([^"]*)"')
_CLASS = re.compile(r'\sclass="([^"]*)"')


@dataclass(frozen=True)
class Counts:
    """How many formulas were made, kept as they were, and dropped."""

    made: int
    kept: int
    dropped: int


class Wanted:
    """Collects the formulas of a guide while its texts are turned into HTML."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[str, bool, str, int]] = {}

    def __call__(self, tex: str, *, display: bool, file: str, line: int) -> str:
        self.found.setdefault(digest(tex, display), (plain(tex), display, file, line))
        return ""


def renew(folder: Path, temml: Path | None = None) -> Counts:
    """Write formulas.json: those that are stored already stay, new ones are made, others go.

    Raises:
        GuideError: the guide can't be read, a formula is no TeX, or Node or Temml can't be had.
    """
    guide = load_guide(folder)
    wanted = Wanted()
    for text in all_texts(guide):
        text.to_html(guide, maths=wanted)
    try:
        stored = {one.sha256: one for one in read_formulas(folder)}
    except GuideError:
        stored = {}  # an unreadable or stale file: everything is made again
    new = {key: one for key, one in wanted.found.items() if key not in stored}
    kept = {key: one for key, one in stored.items() if key in wanted.found}
    made = {
        key: Formula(tex=tex, display=display, sha256=key, mathml=mathml)
        for (key, (tex, display, _, _)), mathml in zip(
            new.items(), converted(list(new.values()), temml), strict=True
        )
    }
    replace_file(folder / FILE, written_formulas(TEMML, kept | made).encode())
    return Counts(len(made), len(kept), len(stored) - len(kept))


def converted(formulas: Sequence[tuple[str, bool, str, int]], temml: Path | None) -> list[str]:
    """The MathML of each (TeX, display, file, line).

    Raises:
        GuideError: as `renew`.
    """
    if not formulas:
        return []
    node = shutil.which("node")
    if node is None:
        raise GuideError("formulas are made by Node.js, and there is no node on the path: install it")
    with tempfile.TemporaryDirectory() as scratch:
        package = temml or _fetched(Path(scratch))
        run = subprocess.run(
            [node, str(Path(__file__).with_name("temml.cjs")), str(package)],
            input=json.dumps([(tex, display) for tex, display, _, _ in formulas]),
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
    if run.returncode:
        lines = run.stderr.strip().splitlines() or ["it says nothing"]
        raise GuideError(f"Temml in {package} failed: {lines[-1]}")
    errors, made = [], []
    for (tex, _, file, line), one in zip(formulas, json.loads(run.stdout), strict=True):
        if "error" in one:
            errors.append(GuideError(f"{tex!r} is no TeX that Temml reads: {one['error']}", file, line))
            continue
        try:
            made.append(without_styles(one["mathml"]))
        except ValueError as error:
            errors.append(GuideError(f"{tex!r}: {error}", file, line))
    if errors:
        raise GuideError.of(errors)
    return made


def without_styles(mathml: str) -> str:
    """The same with classes in place of style attributes.

    Raises:
        ValueError: a style has no class.
    """

    def plain_tag(tag: re.Match[str]) -> str:
        text = tag[0]
        found = _STYLE.search(text)
        if found is None:
            return text
        names = []
        for one in filter(None, (part.strip() for part in found[1].split(";"))):
            if one not in CLASS_OF:
                raise ValueError(f"it needs the style {one!r}, which pages may not have: write it without")
            names.append(CLASS_OF[one])
        text = text[: found.start()] + text[found.end() :]
        classes = _CLASS.search(text)
        if classes:
            names = [*classes[1].split(), *names]
            text = text[: classes.start()] + text[classes.end() :]
        kept = " ".join(dict.fromkeys(filter(None, names)))
        return text if not kept else re.sub(r"^<([a-z]+)", rf'<\1 class="{kept}"', text)

    return _TAG.sub(plain_tag, mathml)


def _fetched(scratch: Path) -> Path:
    """Temml, brought by npm into a scratch folder."""
    npm = shutil.which("npm")
    if npm is None:
        raise GuideError(
            f"Temml is an npm package, and there is no npm: give an unpacked one by --temml ({TEMML})"
        )
    run = subprocess.run(
        [npm, "pack", "--silent", f"temml@{TEMML}"], cwd=scratch, capture_output=True, text=True, check=False
    )
    archives = sorted(scratch.glob("temml-*.tgz"))
    if run.returncode or not archives:
        lines = run.stderr.strip().splitlines() or ["it says nothing"]
        raise GuideError(f"npm pack temml@{TEMML} failed: {lines[-1]}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(scratch, filter="data")
    return scratch / "package"
