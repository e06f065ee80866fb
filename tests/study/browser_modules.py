"""The guide's scripts in Chromium without a page around them: each module's functions, called from Python."""

from __future__ import annotations

import http.server
import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import headwise.study

STATIC = Path(headwise.study.__file__).with_name("static")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript"}  # noqa: RUF012

    def log_message(self, *_):
        pass


@contextmanager
def modules(browser, **options):
    """A page from which `/NAME.js` can be imported; options are those of the browser's context."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(STATIC)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context = browser.new_context(**options)
    try:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{server.server_address[1]}/ASSETS.json")
        yield page
    finally:
        context.close()
        server.shutdown()
        server.server_close()
