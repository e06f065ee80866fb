"""The application behind a real socket, and requests to it as plain as they can be."""

from __future__ import annotations

import http.client
import json
import threading

import uvicorn

from headwise.study.progress import Store
from headwise.study.server.api import Api
from headwise.study.server.app import make_app
from headwise.study.server.build import build
from headwise.study.server.pages import Site
from headwise.study.server.run import listen


class Served:
    """A server of one guide, in a thread.

    `get` and `post` give (status, headers, body); the body of JSON is read."""

    def __init__(self, folder, home, *, store=None, build=build, **more):
        self.told = []
        self.store = store or Store(home / "progress.sqlite3")
        self.site = Site(folder, home / "cache", build, self.told.append)
        self.api = Api({self.site.shown().id: self.site}, self.store, **more)
        self._socket = listen(0, self.told.append)
        self.port = self._socket.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(
            make_app(self.api), log_level="critical", access_log=False, server_header=False, lifespan="off"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()

    def close(self):
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()
        self.store.close()

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            given = {"Host": f"127.0.0.1:{self.port}", **(headers or {})}
            if body is not None:
                given.setdefault("Content-Length", str(len(body)))
            for name, value in given.items():
                for one in value if isinstance(value, list) else [value]:
                    if one is not None:
                        connection.putheader(name, one)
            connection.endheaders(body)
            answer = connection.getresponse()
            raw = answer.read()
        finally:
            connection.close()
        found = {name.lower(): value for name, value in answer.getheaders()}
        if found.get("content-type") == "application/json" and raw:
            return answer.status, found, json.loads(raw)
        return answer.status, found, raw.decode(errors="replace")

    def get(self, path, headers=None):
        return self.ask("GET", path, headers=headers)

    def post(self, path, body, headers=None):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        own = {"Content-Type": "application/json", "Origin": self.address}
        return self.ask("POST", path, raw, {**own, **(headers or {})})
