"""The one kind of JSON that this server answers with."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse

NO_STORE = {"Cache-Control": "no-store"}


class Json(JSONResponse):
    """JSON in ASCII alone: whatever text is in it, half of a character too, it can be sent and read again."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class JsonFile(Json):
    """JSON to be kept as a file: indented."""

    def render(self, content: Any) -> bytes:
        return (json.dumps(content, allow_nan=False, indent=1) + "\n").encode("ascii")


def failure(status: int, name: str, message: str) -> Json:
    """What went wrong: a name for the page's script, and words for the learner."""
    return Json({"error": name, "message": message}, status, NO_STORE)
