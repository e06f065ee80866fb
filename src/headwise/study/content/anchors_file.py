"""anchors.json: the places of the paper's page, without its text."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from headwise.study.content.sources import Anchor, Anchors
from headwise.study.content.toml_file import told
from headwise.study.errors import GuideError


def parse_anchors(text: str, name: str, errors: list[GuideError]) -> Anchors | None:
    """The anchors; every fault goes into `errors`. None if the file itself can't be read."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        errors.append(GuideError(f"this is not JSON: {error.msg}", name, error.lineno))
        return None
    found = data.get("anchors") if isinstance(data, dict) else None
    if not isinstance(found, dict) or not isinstance(data.get("paper"), str):
        errors.append(GuideError('this holds {"paper": "...", "anchors": {...}}', name, 1))
        return None
    anchors = {}
    for key, value in found.items():
        try:
            anchors[key] = msgspec.convert({**value, "id": key}, Anchor)
        except (msgspec.ValidationError, TypeError) as error:
            message = told(error)[0] if isinstance(error, msgspec.ValidationError) else "this is no table"
            errors.append(GuideError(f"{key}: {message}", name, _line(text, key)))
    return Anchors(paper=data["paper"], anchors=anchors)


def written_anchors(paper: str, anchors: Mapping[str, Anchor]) -> str:
    """The text of anchors.json."""
    lines = [
        f"    {json.dumps(key)}: "
        + json.dumps(
            {
                "kind": one.kind,
                "parent": one.parent,
                "formulas": one.formulas,
                "label": one.label,
                "sha256": one.sha256,
            },
            ensure_ascii=False,
        )
        for key, one in anchors.items()
    ]
    return f'{{\n  "paper": {json.dumps(paper)},\n  "anchors": {{\n' + ",\n".join(lines) + "\n  }\n}\n"


def _line(text: str, key: str) -> int:
    place = text.find(f"{json.dumps(key)}:")
    return text.count("\n", 0, max(place, 0)) + 1
