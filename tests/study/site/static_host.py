"""A static host on this machine, as plain as one can be, at a path of one's choice; and a browser's page that
notes whatever goes wrong."""

from __future__ import annotations

import http.server
import threading
import time
from functools import partial
from urllib.parse import urlsplit


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Host:
    """Serves a folder's content below /."""

    def __init__(self, folder):
        self._server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), partial(_Quiet, directory=str(folder))
        )
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class Visit:
    """A visit of a site: `problems` holds errors of its console, files that aren't there, and requests to
    anything but the host.

    Requests are watched, not routed: routing sends each through Python and turns the browser's cache off.
    """

    def __init__(self, browser, address, **options):
        self.problems = []
        self.address = address
        self.context = browser.new_context(**{"color_scheme": "light", **options})
        self.context.set_default_navigation_timeout(120_000)  # a busy machine fails no test
        self.page = self.context.new_page()
        self._under_way = set()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", self._asked)
        self.page.on("response", self._answered)
        for event in ("requestfinished", "requestfailed"):
            self.page.on(event, self._ended)

    def _asked(self, request):
        self._under_way.add(request)
        url = request.url
        if urlsplit(url).hostname not in ("127.0.0.1", None) and not url.startswith("data:"):
            self.problems.append(f"a request to {url}")

    def _ended(self, request):
        self._under_way.discard(request)

    def _said(self, message):
        if message.type in ("error", "warning"):
            self.problems.append(f"{self.page.url}: {message.text}")

    def _answered(self, response):
        if response.status >= 400:
            self.problems.append(f"{response.status} {response.url}")

    def open(self, path=""):
        """Open a page, and wait until it asks for nothing more."""
        self._under_way.clear()
        self.page.goto(f"{self.address}/{path}", wait_until="load")
        end = time.monotonic() + 30
        quiet = 0
        while quiet < 2:  # a script that just got one file may ask for another
            self.page.wait_for_timeout(20)
            quiet = 0 if self._under_way else quiet + 1
            assert time.monotonic() < end, [request.url for request in self._under_way]
        return self.page

    def close(self):
        self.context.close()


def until(page, expression, *, arg=None, seconds=10):
    """Wait until JavaScript gives something true. Playwright's own way evaluates text within the page, which
    the pages' security policy forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression, arg):
        if time.monotonic() > end:
            raise AssertionError(f"after {seconds} s it is still not so: {expression}")
        page.wait_for_timeout(50)
