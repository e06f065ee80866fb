"""A page with one visual, as plain as can be, by the hooks of docs/study/visuals.md; and a server for it."""

import json
import mimetypes
import threading
import tomllib
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import headwise.study
from headwise.study.render.environment import POLICY
from headwise.study.visuals import make
from headwise.study.visuals.facts import guide_folder

STATIC = Path(headwise.study.__file__).parent / "static"
CSS = Path(__file__).with_name("page.css")


def definitions():
    """What the guide's TOML files say of each visual, by the name of its module in Python."""
    found = {}
    for file in sorted((guide_folder() / "activities").glob("*.visual.toml")):
        visual = tomllib.loads(file.read_text(encoding="utf-8"))
        found[visual["data"]] = visual
    return found


def control(visual, given):
    name, kind, value = f"{visual['id']}-{given['name']}", given["kind"], given["value"]
    label = f'<label for="{name}">{escape(given["label"])}</label>'
    if kind == "toggle":
        checked = " checked" if value else ""
        field = f'<input type="checkbox" id="{name}" name="{given["name"]}"{checked}>{label}'
    elif kind == "select":
        choices = [one if isinstance(one, dict) else {"value": one, "label": one} for one in given["options"]]
        options = "".join(
            f'<option value="{escape(one["value"])}"{" selected" if one["value"] == value else ""}>'
            f"{escape(one['label'])}</option>"
            for one in choices
        )
        field = f'{label}<select id="{name}" name="{given["name"]}">{options}</select>'
    else:
        ends = "".join(f' {end}="{given[end]}"' for end in ("min", "max", "step") if end in given)
        field = (
            f'{label}<span><input type="{kind}" id="{name}" name="{given["name"]}"{ends} '
            + f'value="{escape(str(value))}">'
            + (f'<output for="{name}">{value}</output>' if kind == "range" else "")
            + "</span>"
        )
    note = f"<p>{escape(given['help'])}</p>" if "help" in given else ""
    return f'<div class="control control-{kind}" data-field>{field}{note}</div>'


def page(visual, data, mode="static"):
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in data.table.columns)
    rows = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{escape(cell)}</th>' if place == 0 else f"<td>{escape(cell)}</td>"
            for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in data.table.rows
    )
    controls = "".join(control(visual, given) for given in visual.get("inputs", []))
    return f"""<!DOCTYPE html>
<html lang="en-GB" data-mode="{mode}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(visual["title"])}</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="/page.css"><link rel="stylesheet" href="/static/visuals.css">
<script type="module" src="/static/visuals/start.js"></script></head>
<body><main><h1>{escape(visual["title"])}</h1><h2>{escape(visual["summary"])}</h2>
<section class="visual" data-visual="{visual["id"]}" data-module="{visual["module"]}"
 data-src="{visual["data"]}.json">
<form aria-label="Controls" novalidate>{controls}</form>
<figure></figure>
<p data-words>{escape(data.words)}</p>
<details class="visual-table" data-table><summary>Show as table</summary>
<div class="visual-table-box" tabindex="0" role="group" aria-label="The numbers as a table">
<table><caption>{escape(data.table.caption)}</caption>
<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>
</section></main></body></html>"""


class Site:
    """Every visual on a page of its own, at /MODULE/; at /MODULE/live as a server with the model shows it."""

    def __init__(self):
        self.visuals, self.made = definitions(), {}
        self.heads, self.available = None, {"available": True, "why": ""}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.answer(self)

            def do_POST(self):
                size = int(self.headers["Content-Length"])
                status, body = site.heads(json.loads(self.rfile.read(size)))
                site.send(self, json.dumps(body).encode(), "application/json", status)

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def data(self, name):
        if name not in self.made:
            self.made[name] = make(name)
        return self.made[name]

    def answer(self, request):
        path = request.path.split("?")[0]
        if path == "/page.css":
            return self.send(request, CSS.read_bytes(), "text/css")
        if path.startswith("/static/"):
            file = STATIC / path.removeprefix("/static/")
            kind = "text/javascript" if file.suffix == ".js" else mimetypes.guess_type(file.name)[0]
            return self.send(request, file.read_bytes(), kind)
        if path == "/api/heads":
            return self.send(request, json.dumps(self.available).encode(), "application/json")
        if path == "/tests/contrast.js":
            return self.send(request, CSS.with_name("contrast.js").read_bytes(), "text/javascript")
        name, _, rest = path.strip("/").partition("/")
        if rest.endswith(".json"):
            body = json.dumps(self.data(name).data, ensure_ascii=False)
            return self.send(request, body.encode(), "application/json")
        mode = "server" if rest == "live" else "static"
        return self.send(request, page(self.visuals[name], self.data(name), mode).encode(), "text/html")

    def send(self, request, body, kind, status=200):
        request.send_response(status)
        request.send_header("Content-Type", f"{kind}; charset=utf-8")
        request.send_header("Content-Security-Policy", POLICY)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Opened:
    """One visual in the browser, with everything that went wrong in it."""

    def __init__(self, browser, site, name, *, live=False, **options):
        self.name, self.site = name, site
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.errors, self.requests = [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._console)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(f"{site.url}/{name}/{'live' if live else ''}")
        if options.get("java_script_enabled", True):
            self.page.wait_for_selector("section[data-live=yes] figure svg")

    def _console(self, message):
        if message.type == "error":  # a blocked style, script or request among them
            self.errors.append(message.text)

    def set(self, name, value):
        """Move an input, as a reader does."""
        control = self.page.locator(f"form [name='{name}']")
        if isinstance(value, bool):
            control.set_checked(value)
        elif control.evaluate("one => one.tagName") == "SELECT":
            control.select_option(value)
        else:
            control.evaluate(
                "(one, value) => { one.value = value;"
                " one.dispatchEvent(new Event('input', { bubbles: true })); }",
                str(value),
            )
        self.settled()

    def settled(self):
        """Two frames on, the picture is drawn."""
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def words(self):
        return self.page.inner_text("[data-words]")

    def table(self):
        """The cells of the table, row by row."""
        return self.page.evaluate(
            "[...document.querySelectorAll('[data-table] tbody tr')]"
            ".map(row => [...row.cells].map(cell => cell.textContent))"
        )

    def close(self):
        """Nothing may have gone wrong, and nothing been asked of another machine."""
        self.context.close()
        assert not self.errors, self.errors
        foreign = [url for url in self.requests if not url.startswith((self.site.url, "data:"))]
        assert not foreign, foreign


def keys(cells):
    """The keys of all cells that a locator finds, in their order."""
    return cells.evaluate_all("all => all.map(one => one.dataset.key)")
