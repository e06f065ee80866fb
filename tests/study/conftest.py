"""What the tests of study guides share."""

import pytest
from small_guide import small_guide


@pytest.fixture
def guide(tmp_path):
    """A small guide with one of everything, in a folder that the test may change."""
    return small_guide(tmp_path / "small")


@pytest.fixture(scope="session")
def kept_guide(tmp_path_factory):
    """The same, made once: for tests that change nothing."""
    return small_guide(tmp_path_factory.mktemp("guides") / "small")
