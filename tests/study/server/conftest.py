"""The small guide, served and exported; learners at a browser."""

import http.server
import shutil
import threading
from functools import partial

import pytest
from learner import Learner
from served import Served
from small_guide import small_guide

from headwise.study.progress import Store
from headwise.study.site import build_site


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Where the small guide's pages are built once, for all tests that change nothing of it."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture
def server(kept_guide, built, tmp_path):
    made = Served(kept_guide.folder, built, store=Store(tmp_path / "progress.sqlite3"))
    yield made
    made.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def static_host():
    """Serves folders as they are; gives the address of each."""
    hosts = []

    def serve(folder):
        hosts.append(
            http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
        )
        threading.Thread(target=hosts[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{hosts[-1].server_address[1]}"

    yield serve
    for host in hosts:
        host.shutdown()
        host.server_close()


@pytest.fixture(scope="session")
def exported(tmp_path_factory, static_host):
    """A static host with the small guide at / and at /project/sub/; its address."""
    home = tmp_path_factory.mktemp("exported")
    build_site(small_guide(home / "small"), home / "site")
    shutil.copytree(home / "site", home / "site" / "project" / "sub")
    return static_host(home / "site")


@pytest.fixture
def learner(chromium):
    """A learner at an address; whatever went wrong there fails the test."""
    made = []

    def sit_down(address, **options):
        made.append(Learner(chromium, address, **options))
        return made[-1]

    yield sit_down
    for one in made:
        one.close()


ON_BOTH = ("test_quizzes_in_browser", "test_ten_reviews", "test_progress_goes_from_anywhere")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The way of a static site is the slow tests', but for what is at the heart of it."""
    for item in items:
        static = getattr(getattr(item, "callspec", None), "params", {}).get("study") == "static"
        if static and not any(name in item.nodeid for name in ON_BOTH):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=["server", "static"])
def study(request, learner):
    """The same guide by the server, and as a static site below a path: everything that a learner does has to
    work in both."""

    def sit_down(**options):
        if request.param == "server":
            return learner(f"{request.getfixturevalue('server').address}/g/small", **options)
        return learner(f"{request.getfixturevalue('exported')}/project/sub", **options)

    return sit_down
