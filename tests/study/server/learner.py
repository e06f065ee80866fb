"""A learner at a browser: a page of a server or of a static host, with everything that goes wrong noted."""

from __future__ import annotations

from urllib.parse import urlsplit


class Learner:
    """One browser profile. `problems` holds errors of the console, what the page failed to get, and requests
    to anything but this machine; answers with a status in `expected` are none."""

    def __init__(self, browser, address, *, expected=(), **options):
        self.problems, self.expected = [], set(expected)
        self.address = address
        self.context = browser.new_context(**{"color_scheme": "light", "locale": "en-GB", **options})
        self.context.route("**/*", self._watch)
        self.page = self.tab()

    def tab(self):
        page = self.context.new_page()
        page.on("console", lambda message: self._said(page, message))
        page.on("pageerror", lambda error: self.problems.append(f"{page.url}: {error}"))
        return page

    def _watch(self, route):
        if urlsplit(route.request.url).hostname == "127.0.0.1":
            route.continue_()
        else:
            self.problems.append(f"a request to {route.request.url}")
            route.abort()

    def _said(self, page, message):
        if message.type not in ("error", "warning"):
            return
        if any(f"status of {status}" in message.text for status in self.expected):
            return
        self.problems.append(f"{page.url}: {message.text}")

    def open(self, path="", page=None):
        page = page or self.page
        page.goto(f"{self.address}/{path}")
        page.wait_for_selector("html[data-progress=ready]")
        return page

    def close(self):
        self.context.close()
        assert self.problems == []
