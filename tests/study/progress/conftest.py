"""A file of progress of the test's own."""

import pytest

from headwise.study.progress import Store


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "progress.sqlite3")
    yield made
    made.close()
