"""What guards a server on this machine from other web sites that are open in the same browser.

Any page on the web may send requests to 127.0.0.1. So: only requests that name this machine as their host are
answered (a foreign name that was made to point here is refused); what changes something has to be JSON sent
by a page of this very server; nothing that is answered may be read, framed or embedded by another site.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headwise.study.render.environment import POLICY
from headwise.study.server.responses import Json, failure

HOSTS = ("127.0.0.1", "localhost")
_HOST = re.compile(rf"(?:{'|'.join(re.escape(host) for host in HOSTS)})(?::[0-9]{{1,5}})?")

HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",  # which a page can't say of itself
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
"""On every answer, errors among them."""


class Guard:
    """Refuses what may not be asked, and puts `HEADERS` on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refused = refusal(scope["method"], str(scope["path"]), Headers(scope=scope))
        await (refused or self.app)(scope, receive, with_headers)


def refusal(method: str, path: str, headers: Headers) -> Json | None:
    """The answer to a request that may not be asked; None if it may."""
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not _HOST.fullmatch(hosts[0].lower()):
        return failure(400, "host", f"This server answers to {', '.join(HOSTS)} alone.")
    if method in ("GET", "HEAD"):
        site = headers.get("sec-fetch-site", "same-origin")
        if path.startswith("/api/") and site not in ("same-origin", "none"):
            return failure(403, "cross-site", "Another site may not ask for progress.")
        return None
    if method != "POST":
        answer = failure(405, "method", f"{method} is not known here.")
        answer.headers["Allow"] = "GET, HEAD, POST"
        return answer
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" or len(headers.getlist("content-type")) != 1:
        return failure(415, "content-type", "What changes something is sent as application/json.")
    return _from_elsewhere(hosts[0], headers)


def _from_elsewhere(host: str, headers: Headers) -> Json | None:
    """Refuse what no page of this server sent."""
    origins, sites = headers.getlist("origin"), headers.getlist("sec-fetch-site")
    own = f"http://{host.lower()}"
    if len(origins) > 1 or len(sites) > 1:
        return failure(403, "cross-site", "One Origin and one Sec-Fetch-Site are expected.")
    if origins and origins[0].lower() != own:
        return failure(403, "cross-site", f"Only pages of {own} may change something here.")
    if sites and sites[0] != "same-origin":
        return failure(403, "cross-site", "Only pages of this server may change something here.")
    if not origins and not sites:
        return failure(403, "cross-site", "Neither Origin nor Sec-Fetch-Site says where this comes from.")
    return None
