"""One page in Chromium, opened from the file system."""


class Page:
    """One open report, with everything that went wrong in it."""

    def __init__(self, browser, file, **options):
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.requests, self.errors = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._console)
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-ready=yes]")

    def _console(self, message):
        if message.type == "error":  # a blocked style, script or request among them
            self.errors.append(message.text)

    def text(self, selector):
        return self.page.inner_text(selector)

    def cell(self, row, column):
        """Middle of a cell of the large map, in pixels of the window."""
        self.page.locator("#map").scroll_into_view_if_needed()
        frame = self.page.evaluate(
            "(() => { const { x, y } = $('sheet').getBoundingClientRect(); "
            "return [x, y, map.cell, map.tall]; })()"
        )
        return frame[0] + (column + 0.5) * frame[2], frame[1] + (row + 0.5) * frame[3]

    def close(self):
        """Close it; nothing may have gone wrong, and nothing been asked for."""
        self.context.close()
        assert self.errors == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))] == []
