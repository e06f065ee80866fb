"""Anki, and a guide whose cards can be changed."""

import pytest

pytest.importorskip("anki.collection")

from anki_itself import Anki


@pytest.fixture
def anki(tmp_path):
    made = Anki(tmp_path / "anki")
    yield made
    made.close()
