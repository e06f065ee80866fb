"""The server's application: pages below /g/, the API below /api/, the guard around both."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from headwise.study.server import files
from headwise.study.server.api import Api
from headwise.study.server.responses import failure
from headwise.study.server.security import Guard


def make_app(api: Api) -> ASGIApp:
    """The application that serves the guides of an `Api`, within its guard."""

    async def start(request: Request) -> Response:
        return RedirectResponse(f"/g/{next(iter(api.sites))}/", 302)

    async def page(request: Request) -> Response:
        return await run_in_threadpool(_page, api, request)

    inner = Starlette(
        routes=[
            Route("/", start, methods=["GET"]),
            Route("/g/{guide}", page, methods=["GET"]),
            Route("/g/{guide}/{path:path}", page, methods=["GET"]),
            Mount("/api", routes=list(api.routes())),
        ],
        exception_handlers={HTTPException: _failed, Exception: _broken},
    )
    return Guard(inner)  # around everything: what fails has the guard's headers too


def _page(api: Api, request: Request) -> Response:
    site = api.sites.get(request.path_params["guide"])
    if site is None:
        raise HTTPException(404)
    path = request.path_params.get("path")
    if path is None:
        return RedirectResponse(f"{quote(request.url.path)}/", 308)
    asks_for_page = not PurePosixPath(path).suffix or path.endswith((".html", "/"))
    pages = (site.look() if asks_for_page else site.shown()).pages
    file = files.find(pages, path)
    if file is None:
        if files.is_folder(pages, path):
            return RedirectResponse(f"{quote(request.url.path)}/", 308)
        raise HTTPException(404)
    tag = files.tag(file)
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(file.read_bytes(), media_type=files.media_type(file), headers=headers)


async def _failed(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if request.url.path.startswith("/api/"):
        name = {404: "not-there", 405: "method"}.get(status, "failed")
        return failure(status, name, f"{request.url.path}: {status}")
    if status == 404:
        return HTMLResponse(
            '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Not there</title>'
            '<h1>There is no such page</h1><p><a href="/">All activities of the guide</a></p></html>',
            404,
        )
    return PlainTextResponse(f"{status}", status)


async def _broken(request: Request, error: Exception) -> Response:
    return failure(500, "failed", f"The server failed ({type(error).__name__}); nothing was changed.")
