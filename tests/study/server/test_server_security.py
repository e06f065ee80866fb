"""Other web sites in the browser can neither read nor change anything; nothing beside the site is served."""

import json
import os
import socket
import subprocess
import sys
from urllib.parse import quote

import pytest

MARK = {"id": "mark-0001", "guide": "small", "activity": "first", "done": True}


def nothing_changed(server):
    status, _, found = server.get("/api/progress?guide=small")
    assert status == 200
    return found["marks"] == {}


# quick-lint/quick-lint-js#951
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example",
        "localhost.evil.example:{port}",
        "127.0.0.2",
        "0.0.0.0",
        "[::1]",  # the server listens on 127.0.0.1 alone
        "[::1]:{port}",
        "[::2]",
        "",
        "127.0.0.1@evil.example",
        "127.0.0.1:80:80",
        "localhost:",
    ],
)
@pytest.mark.parametrize("path", ["/", "/g/small/", "/api/progress"])
def test_a_foreign_host_is_refused(server, host, path):
    status, headers, body = server.get(path, {"Host": host.format(port=server.port)})
    assert status == 400
    assert "small" not in json.dumps(body)
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "LOCALHOST", "127.0.0.1:{port}", "localhost:{port}"]
)
def test_this_machines_own_names_are_answered(server, host):
    assert server.get("/g/small/", {"Host": host.format(port=server.port)})[0] == 200


def test_a_request_with_no_host_or_two_is_refused(server):
    assert server.get("/g/small/", {"Host": None})[0] == 400
    assert server.get("/g/small/", {"Host": ["127.0.0.1", "evil.example"]})[0] == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},  # another program on this machine
        {"Origin": "http://localhost:{port}"},  # not the name that the page was opened by
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": ["http://127.0.0.1:{port}", "https://evil.example"]},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": None, "Sec-Fetch-Site": "cross-site"},
        {"Origin": None},
    ],
)
@pytest.mark.parametrize("path", ["/api/marks", "/api/import", "/api/reviews", "/api/settings", "/api/heads"])
def test_only_a_page_of_this_server_may_write(server, headers, path):
    def filled(value):
        return (
            [filled(one) for one in value]
            if isinstance(value, list)
            else value and value.format(port=server.port)
        )

    given = {name: filled(value) for name, value in headers.items()}
    status, _, body = server.post(path, MARK, given)
    assert (status, body["error"]) == (403, "cross-site")
    assert nothing_changed(server)


def test_a_page_of_this_server_may_write(server):
    assert server.post("/api/marks", MARK)[0] == 200
    again = {"Origin": None, "Sec-Fetch-Site": "same-origin"}
    assert server.post("/api/marks", {**MARK, "id": "mark-0002"}, again)[0] == 200
    by_name = {"Host": f"localhost:{server.port}", "Origin": f"http://localhost:{server.port}"}
    assert server.post("/api/marks", {**MARK, "id": "mark-0003"}, by_name)[0] == 200


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/json",
        "application/jsonp",
        "",
    ],
)
def test_a_write_has_to_be_json(server, kind):
    status, _, body = server.post("/api/marks", MARK, {"Content-Type": kind})
    assert (status, body["error"]) == (415, "content-type")
    assert nothing_changed(server)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(server, method):
    status, headers, _ = server.ask(method, "/api/marks", b"{}", {"Content-Type": "application/json"})
    assert status == 405
    assert headers["allow"] == "GET, HEAD, POST"
    assert not [name for name in headers if name.startswith("access-control")]


def test_get_never_changes_anything(server):
    before = server.get("/api/export")[2]
    for path in ("/api/marks", "/api/reviews", "/api/reviews/undo", "/api/import", "/api/settings"):
        query = "&".join(f"{name}={quote(str(value))}" for name, value in MARK.items())
        assert server.get(f"{path}?{query}")[0] == 405
    for path in ("/api/progress", "/api/queue?deck=deck", "/api/heads", "/g/small/", "/g/small/deck/"):
        assert server.get(path)[0] == 200
    after = server.get("/api/export")[2]
    before.pop("exported"), after.pop("exported")
    assert before == after


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_may_not_read_progress(server, site):
    for path in ("/api/progress", "/api/export", "/api/queue?deck=deck"):
        assert server.get(path, {"Sec-Fetch-Site": site})[0] == 403


def test_every_answer_has_the_headers_that_protect_it(server):
    for path in ("/", "/g/small/", "/g/small/nowhere/", "/api/progress", "/api/nothing", "/g/other/"):
        headers = server.get(path)[1]
        policy = headers["content-security-policy"].split("; ")
        assert {
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "font-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        } == set(policy)
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers
        assert not [name for name in headers if name.startswith("access-control")]


def test_an_error_of_ours_has_them_too_and_tells_nothing(server, monkeypatch):
    def fails(query):
        raise RuntimeError("the path /home/somebody")

    monkeypatch.setattr("headwise.study.progress.latest_answers", fails)
    monkeypatch.setattr(server.api, "clock", fails)
    status, headers, body = server.get("/api/queue?deck=deck")
    assert status == 500
    assert "somebody" not in json.dumps(body)
    assert headers["x-content-type-options"] == "nosniff"


ESCAPES = [
    "../guide.json",
    "..%2fguide.json",
    "%2e%2e/guide.json",
    "%2e%2e%2fguide.json",
    "first/../../guide.json",
    "first/..%2f..%2fguide.json",
    "..%5cguide.json",
    "static/../../guide.json",
    "//etc/passwd",
    "/etc/passwd",
    "%00",
    "index.html%00.png",
    ".hidden",
    "static/.hidden",
    "linked.json",
    "linked/guide.json",
    "CON",
    "index.html.",
    "C:/windows",
    "first/%2e/index.html",
    "%c0%ae%c0%ae/guide.json",
    "a" * 5000,
]


@pytest.mark.parametrize("path", ESCAPES)
def test_nothing_beside_the_site_is_served(server, path):
    pages = server.site.shown().pages
    (pages / ".hidden").write_text("SECRETFILE")
    (pages / "static" / ".hidden").write_text("SECRETFILE")
    for link, target in (
        (pages / "linked.json", pages.parent / "guide.json"),
        (pages / "linked", pages.parent),
    ):
        if not link.is_symlink():
            os.symlink(target, link)
    try:
        for start in ("/g/small/", "/g/small/static/"):
            status, _, body = server.get(f"{start}{path}")
            assert status in (400, 404), body[:200]
            assert "SECRET" not in str(body)
    finally:
        (pages / "linked.json").unlink()
        (pages / "linked").unlink()


@pytest.mark.parametrize("name", ["..", "%2e%2e", "other", "small%2f..", "", "%00", "small%00"])
def test_only_guides_that_are_served_have_pages(server, name):
    assert server.get(f"/g/{name}/")[0] == 404


def test_requests_that_are_too_large_are_refused_unread(server):
    status, _, body = server.post("/api/marks", b'{"id": "' + b"a" * 200_000 + b'"}')
    assert (status, body["error"]) == (413, "too-large")
    assert nothing_changed(server)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"5", b"null", b"[" * 50_000, b"\xff", b'{"a": NaN'])
def test_what_is_no_json_object_is_refused(server, body):
    for path in ("/api/marks", "/api/import"):
        status, _, answer = server.post(path, body)
        assert status == 422
        assert answer["error"] in ("refused", "bad-import")
    assert nothing_changed(server)


def test_the_server_listens_on_this_machine_alone(server):
    assert server._socket.getsockname()[0] == "127.0.0.1"
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in others - {"127.0.0.1"}:
        if not address.startswith("127."):
            with pytest.raises(OSError):  # noqa: PT011
                socket.create_connection((address, server.port), timeout=2).close()


def test_the_interpreters_own_mime_types_do_not_matter():
    # A Windows registry may say that .js is text/plain, which browsers then refuse to run as a module.
    code = (
        "import mimetypes; mimetypes.add_type('text/plain', '.js'); from pathlib import Path\n"
        "from headwise.study.server.files import media_type; print(media_type(Path('a.js')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("text/javascript")
