"""Chromium, and the small guide's site at / and below a path: each made once."""

import shutil
from datetime import UTC, datetime

import pytest
from small_guide import FIRST, small_guide, write_guide
from static_host import Host, Visit

from headwise.study.content import load_guide
from headwise.study.publishing import publish_guide
from headwise.study.site import build_site


@pytest.fixture(scope="session")
def versioned_guide(tmp_path_factory):
    """The small guide with two versions; a block got another name after the first one."""
    folder = tmp_path_factory.mktemp("versioned") / "small"
    day = datetime(2026, 11, 30, 9, 30, tzinfo=UTC)
    publish_guide(small_guide(folder), "The first", day)
    write_guide(folder, first=FIRST.replace("Four linears", "Four projections"))
    publish_guide(load_guide(folder), "The second", day.replace(month=12, day=1))
    return load_guide(folder)


@pytest.fixture(scope="session")
def site_folder(versioned_guide, tmp_path_factory):
    """A folder that holds the site twice: as a whole, and below project/sub/."""
    home = tmp_path_factory.mktemp("host")
    build_site(versioned_guide, home / "root")
    shutil.copytree(home / "root", home / "root" / "project" / "sub")
    return home / "root"


@pytest.fixture(scope="session")
def host(site_folder):
    made = Host(site_folder)
    yield made
    made.close()


@pytest.fixture
def visit(chromium, host):
    """Visit the site; `at` is the path it lies below. Whatever went wrong fails the test."""
    visits = []

    def make(at="", **options):
        visits.append(Visit(chromium, f"{host.address}/{at}".rstrip("/"), **options))
        return visits[-1]

    yield make
    problems = [problem for one in visits for problem in one.problems]
    for one in visits:
        one.close()
    assert problems == []
