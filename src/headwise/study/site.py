"""A guide as a folder of pages that any static host serves; and the same pages for the local server."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from headwise.study import versions
from headwise.study.content import Guide, Lesson, Visual
from headwise.study.errors import GuideError
from headwise.study.keys import Key, answer_keys
from headwise.study.maths import Maths, StoredMaths
from headwise.study.render import search
from headwise.study.render.indexes import Indexes
from headwise.study.render.maker import Maker
from headwise.study.render.markdown import to_html
from headwise.study.render.pages import Mode, Pages, Version
from headwise.study.render.uses import uses
from headwise.study.running import prepare, run_lessons
from headwise.study.visuals import make
from headwise.study.visuals.base import VisualData

STATIC = Path(__file__).with_name("static")
LISTED = "files.json"
"""The list of a site's files, in the site: the next build takes these away, and no others."""
Files = dict[str, bytes]
"""Files by their way from the site's root, with / between folders."""

ON_SERVER: Files = {
    "static/mode.js": b'document.documentElement.dataset.mode = "server";\n',
    "static/mode.css": b"[data-static-only] { display: none; }\n",
}
"""The two static files that are others on the local server. Pages, frozen ones too, are the same bytes for
both: which of the two shows them, they learn here."""

SHOWN = 5
"""How many files that aren't the site's a message names."""


class BuildError(Exception):
    """A site can't be written where it was asked for. The message names the folder, the rule and the fix."""


def render_site(guide: Guide, mode: Mode) -> Files:
    """All files of a guide's site, but those of its published versions. See `render_content`."""
    return render_content(guide, mode) | static_files(mode)


def render_content(guide: Guide, mode: Mode, *, version: Version | None = None) -> Files:
    """What a guide says, as files: pages, numbers of visuals, answers, the search index. Style sheet, scripts
    and fonts are not among them.

    Args:
        mode: "static": pages that work by themselves, with answers.json; "server": no file holds an answer.
        version: for a version that is being frozen; its pages lie in v/N/, and load the
            style sheet and scripts of the current site.

    Raises:
        GuideError: something in the guide can't be shown; file and line are those of the text.
    """
    maths = StoredMaths.of(guide.folder)
    data = {
        activity.id: _data(guide, activity)
        for activity in guide.activities.values()
        if isinstance(activity, Visual)
    }
    printed = _printed(guide)
    makers = {root: Maker(guide, root=root, maths=maths, data=data, printed=printed) for root in ("", "../")}
    published = versions.published(guide.folder)
    newest = published[-1] if published and version is None else None
    places = versions.places(guide.folder, newest.number) if newest else {}

    def permanent(activity: str, block: str) -> str:
        if newest is None or block not in places.get(activity, ()):
            return ""
        return f"../v/{newest.number}/{activity}/"

    pages = Pages(guide, mode, at=makers.__getitem__, version=version, permanent=permanent)
    indexes = Indexes(guide, pages, makers["../"], uses(guide))
    texts = {
        "index.html": pages.index(),
        "sources/index.html": indexes.sources(),
        "numbers/index.html": indexes.numbers(),
        "library/index.html": indexes.library(),
        "search/index.html": indexes.search(),
        "progress/index.html": indexes.progress(),
        "search.json": search.index(guide),
    }
    for activity in guide.activities.values():
        texts[f"{activity.id}/index.html"] = pages.activity(activity)
    for name, one in data.items():
        texts[f"visuals/{name}.json"] = _json(one.data)
    if version is None:
        texts["versions/index.html"] = indexes.versions(published)
        texts["versions.json"] = versions.listed(guide, published)
    if mode == "static":
        answers = keys(guide, maths)
        texts["answers.json"] = _json(answers)
        texts["answers/index.html"] = indexes.answers(answers)
    return {name: text.encode() for name, text in texts.items()}


def keys(guide: Guide, maths: Maths) -> dict[str, Key]:
    """The keys of all questions by id, with reasons and explanations as HTML.

    Raises:
        GuideError: see `answer_keys`.
    """
    return answer_keys(guide, lambda text: str(to_html(text, guide, maths=maths)))


def static_files(mode: Mode) -> Files:
    """The style sheet, scripts and fonts, under static/: of the current pages and of every version's."""
    found = {
        f"static/{path.relative_to(STATIC).as_posix()}": path.read_bytes()
        for path in sorted(STATIC.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }
    return found | ON_SERVER if mode == "server" else found


def build_site(guide: Guide, out: Path) -> int:
    """Write the static site of a guide and of all its versions; how many files it has.

    Everything is written into a new folder beside `out`, which then takes its place: whoever reads the old
    site sees it whole until the new one is, and keeps it if anything fails or the build is interrupted.

    Raises:
        GuideError: something in the guide can't be shown.
        BuildError: `out` holds a file that no build of this guide wrote, or can't be written.
    """
    _check_place(guide, out)
    files = render_site(guide, "static")
    for one in versions.published(guide.folder):
        for name, content in versions.files(guide.folder, one.number).items():
            files[f"v/{one.number}/{name}"] = content
    files[".nojekyll"] = b""
    listed = {"guide": guide.id, "files": sorted([*files, LISTED])}
    files[LISTED] = (json.dumps(listed, ensure_ascii=False, indent=1) + "\n").encode()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise BuildError(f"{out.parent} can't be written: {error.strerror}") from error
    try:
        write(files, fresh)
        fresh.chmod(0o755)
        _check_place(guide, out)  # rendering took a while
        _swap(fresh, out)
    except OSError as error:
        raise BuildError(
            f"{out} can't be written: {error.strerror}; what was there is still there"
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return len(files)


def write(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files into a folder.

    Raises:
        BuildError: a name leads out of it; nothing is written then.
    """
    for name in files:
        if not versions.stays_inside(name):
            raise BuildError(f"the file {name!r} would lie outside of the site: no part is empty, . or ..")
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _check_place(guide: Guide, out: Path) -> None:
    """Refuse a place that holds something a build would destroy."""
    if out.is_symlink() or out.is_file():
        raise BuildError(f"{out} is no folder: name one that is new, empty, or an earlier site of this guide")
    if guide.folder.resolve().is_relative_to(out.resolve()):
        raise BuildError(f"{out} holds the guide itself: name a folder outside of it")
    if not out.is_dir():
        return
    try:
        held = json.loads((out / LISTED).read_bytes())
        known = {str(name) for name in held["files"]} if held["guide"] == guide.id else None
    except (OSError, ValueError, KeyError, TypeError):
        known = None
    try:
        others = _others(out, known or set())
    except OSError as error:
        raise BuildError(f"{out} can't be read: {error.strerror}") from error
    if known is None and others:
        raise BuildError(
            f"{out} isn't empty and is no earlier site of {guide.id}: name another folder, or empty it"
        )
    if others:
        more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
        raise BuildError(
            f"{out} holds what is not the site's: {', '.join(others[:SHOWN])}{more}. A build takes the place "
            f"of the whole folder, so build into another one and copy the site from there, or move these away"
        )


def _others(out: Path, known: set[str]) -> list[str]:
    """What a folder holds beside files of these names; of folders without any of them only the topmost."""
    homes = {parent.as_posix() for name in known for parent in PurePosixPath(name).parents}
    others = []

    def fail(error: OSError) -> None:
        raise error

    for folder, folders, files in os.walk(out, onerror=fail):
        at = Path(folder).relative_to(out)
        for name in list(folders):
            path = (at / name).as_posix()
            if path not in homes or (out / path).is_symlink():
                folders.remove(name)
                others.append(f"{path}/")
        others += [path for name in files if (path := (at / name).as_posix()) not in known]
    return sorted(others)


def _swap(fresh: Path, out: Path) -> None:
    """Put a folder in the place of another, which stays unless that succeeds."""
    if not out.exists():
        os.replace(fresh, out)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{out.name}.old.", dir=out.parent))
    kept = old / "site"
    try:
        os.replace(out, kept)
        os.replace(fresh, out)
    except BaseException:  # Ctrl-C between the two as well
        if not out.exists():
            _bring_back(kept, out)
        shutil.rmtree(old, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _bring_back(kept: Path, out: Path) -> None:
    try:
        os.replace(kept, out)
    except OSError as error:
        raise BuildError(
            f"{out} can't be written: {error.strerror}; the earlier site lies in {kept}"
        ) from error


def _data(guide: Guide, visual: Visual) -> VisualData:
    try:
        return make(visual.data, guide.facts)
    except ValueError as error:
        raise GuideError(str(error), str(guide.folder / visual.file), visual.line) from error


def _printed(guide: Guide) -> dict[str, str]:
    """What the code of all lessons prints, by "activity#block".

    Raises:
        GuideError: some of it fails.
    """
    prepare(guide)  # the code of questions too, so that one process does it all
    lessons = [activity for activity in guide.activities.values() if isinstance(activity, Lesson)]
    found = {}
    for lesson, blocks in run_lessons(lessons, guide.folder).items():
        for block, ran in blocks.items():
            if ran.error is not None:
                raise ran.error
            found[f"{lesson}#{block}"] = ran.output
    return found


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
