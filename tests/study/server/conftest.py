"""The small guide, served."""

import pytest
from served import Served


@pytest.fixture(scope="session")
def built(kept_guide, tmp_path_factory):
    """Where the small guide's pages are built once for all tests that change nothing of it."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture
def server(kept_guide, built, tmp_path):
    from headwise.study.progress import Store

    made = Served(kept_guide.folder, built, store=Store(tmp_path / "progress.sqlite3"))
    yield made
    made.close()
