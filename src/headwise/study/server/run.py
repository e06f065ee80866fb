"""Starts the server: finds a port, says where the guide is, opens the browser."""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from headwise.study.progress import Store, cache_folder, progress_file
from headwise.study.server.api import Api
from headwise.study.server.app import make_app
from headwise.study.server.build import build
from headwise.study.server.pages import Site

ADDRESS = "127.0.0.1"
PORT = 8417
Tell = Callable[[str], None]


class NoPort(OSError):
    """No port can be listened on."""


class NoPages(OSError):
    """The pages of a guide can't be kept."""


def serve(folders: Sequence[Path], *, port: int | None, profile: str, open_browser: bool, tell: Tell) -> None:
    """Serve the guides in these folders until Ctrl+C.

    Args:
        port: None for the usual one; 0 for any that is free. One that is taken is replaced by a free one.
        tell: prints a line.

    Raises:
        GuideError: a guide can't be shown, and was never built before.
        ProgressError: the file of progress can't be used.
        NoPages: the folder that pages are built in can't be used.
        NoPort: none can be listened on.
    """
    store = Store(progress_file(profile))
    try:
        sites = {}
        for folder in folders:
            tell(f"Getting the pages of {folder.name} ready (the first time takes up to a minute)")
            site = _site(folder, cache_folder(), tell)
            sites[site.shown().id] = site
        listening = listen(port, tell)
        with listening:
            host, found = listening.getsockname()[:2]
            address = f"http://{host}:{found}/g/{next(iter(sites))}/"
            tell(f"The guide is at {address}\nIts progress is kept in {store.file}\nCtrl+C ends it.")
            if open_browser and has_browser():
                threading.Timer(0.5, webbrowser.open, (address,)).start()
            run(make_app(Api(sites, store, profile=profile)), listening)
    finally:
        store.close()
    tell("Stopped. All progress is kept.")


def _site(folder: Path, cache: Path, tell: Tell) -> Site:
    try:
        return Site(folder, cache, build, tell)
    except OSError as error:
        raise NoPages(
            f"pages are built in {cache}, and {error.filename or cache} can't be written: "
            f"{error.strerror or error}. Make room there, and give yourself the right to write"
        ) from error


def run(app: ASGIApp, listening: socket.socket) -> None:
    """Serve an application on a socket until Ctrl+C or SIGTERM."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=3,
        ws="none",
    )
    try:
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:  # handed on by uvicorn once it has stopped
        return


def listen(port: int | None, tell: Tell) -> socket.socket:
    """A socket that listens on this machine alone: on the port, or on a free one where it is taken.

    Raises:
        NoPort: none can be listened on.
    """
    wanted = PORT if port is None else port
    try:
        return _bound(wanted)
    except OSError as error:
        if wanted == 0:
            raise NoPort(f"no port of {ADDRESS} can be listened on: {error.strerror or error}") from error
        reason, busy = error.strerror or str(error), error.errno == errno.EADDRINUSE
    try:
        found = _bound(0)
    except OSError as error:
        raise NoPort(f"no port of {ADDRESS} can be listened on: {error.strerror or error}") from error
    why = "is in use by another program" if busy else f"can't be used ({reason})"
    tell(
        f"Port {wanted} {why}: the guide is on port {found.getsockname()[1]} instead. --port N names another."
    )
    return found


def _bound(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # on Windows this would let two servers have one port
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((ADDRESS, port))
        made.listen(128)
    except OSError:
        made.close()
        raise
    return made


def has_browser() -> bool:
    """Can a window be opened? Without a display, a browser would start in the terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
