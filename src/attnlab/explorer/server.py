"""The explorer as a server on this computer: a page, its modules, and one socket a page.

/TOKEN/          the page          /TOKEN/js/...    modules and styles, as they are in the package
/TOKEN/socket    questions and answers (``messages.py``)
"""

import asyncio
import contextlib
import errno
import logging
import os
import re
import socket
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI, HTTPException, Response, WebSocket

from attnlab.display import say
from attnlab.errors import InputError, LabError, brief
from attnlab.explorer.desk import Desk
from attnlab.explorer.library import Library
from attnlab.explorer.pages import MODULES
from attnlab.explorer.security import LOOPBACK, TABS, Door, Guard

PAGE = "page.html"
FRAME = 8 * 2**20 + 1024
"""Bytes of a frame beyond which its connection ends; a little more than a message may have."""
CONNECTIONS = 1_000
BACKLOG = 256
"""Connections that wait to be taken, at most."""
SILENCE = 120.0
"""Seconds that a page may be silent, and this program too busy to hear it, as while torch is read."""
CLOSING = 2
"""Seconds that open connections have to end in."""
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_IMPORT = re.compile(r"^import\s[^;]*?from\s*[\"'](\.[^\"']+)[\"']", re.MULTILINE)


def make_app(library: Library, door: Door, listening: Callable[[], None] = lambda: None) -> FastAPI:
    """The application; ``listening`` is called when it begins."""
    desk, tabs = Desk(library), _Tabs()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        desk.warm_up()
        listening()
        yield
        await asyncio.to_thread(desk.close)

    app = FastAPI(
        title="attnlab explorer", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None
    )
    app.add_middleware(Guard, door=door)
    modules, shell = module_files(), page()

    @app.get("/{token}/", response_class=Response)
    def show_page(token: str) -> Response:
        """The page."""
        return Response(shell, media_type="text/html")

    @app.get(
        "/{token}/js/{name:path}",
        response_class=Response,
        responses={404: {"description": "no such module"}},
    )
    def show_module(token: str, name: str) -> Response:
        """A module or the styles."""
        if name not in modules:
            raise HTTPException(404, "there is no such module")
        return Response(modules[name].read_bytes(), media_type=_TYPES[modules[name].suffix])

    @app.websocket("/{token}/socket")
    async def answer(link: WebSocket, token: str) -> None:
        await link.accept()
        with tabs.another() as allowed:
            if not allowed:
                await link.close(1013, f"{TABS} pages are open already; close one of them")
                return
            await desk.ready()
            from attnlab.explorer.session import Session

            await Session(link, desk).run()

    return app


def module_files() -> dict[str, Path]:
    """What a page may load, by its path below ``js/``; nothing else is ever read."""
    found = sorted(path for path in MODULES.rglob("*") if path.suffix in _TYPES)
    return {path.relative_to(MODULES).as_posix(): path for path in found}


def page() -> str:
    """The page, which names all modules that it needs, so that they are fetched at once."""
    links = "\n".join(f'<link rel="modulepreload" href="js/{name}">' for name in _needed("served.js"))
    return (MODULES / PAGE).read_text(encoding="utf-8").replace("<!-- modules -->", links)


def _needed(entry: str) -> list[str]:
    """A module and all that it imports."""
    left, found = [MODULES / entry], dict[Path, None]()
    while left:
        path = left.pop()
        if path not in found and path.is_file():
            found[path] = None
            sources = _IMPORT.findall(path.read_text(encoding="utf-8"))
            left += [Path(os.path.normpath(path.parent / each)) for each in sources]
    return [path.relative_to(MODULES).as_posix() for path in found]


class _Tabs:
    """How many pages are open."""

    def __init__(self) -> None:
        self._open = 0

    @contextmanager
    def another(self) -> Iterator[bool]:
        """Whether one more may be; it is open as long as the context."""
        allowed = self._open < TABS
        self._open += allowed
        try:
            yield allowed
        finally:
            self._open -= allowed


def serve(
    library: Library,
    *,
    start: str = "",
    text: str = "",
    host: str = LOOPBACK,
    port: int = 0,
    browser: bool = True,
) -> None:
    """Serve until Ctrl-C. The page opens the run ``start`` with the input ``text``; port 0 is any free one.

    Whoever knows the address that is printed can use the explorer, but only on this computer unless
    ``host`` says otherwise.
    """
    listener = bind(host, port)
    door = Door(host)
    bound, state = listener.getsockname()[1], _state(start, text)
    address = _address(door, LOOPBACK if _everywhere(host) else host, bound, state)

    def listening() -> None:
        print(address, flush=True)
        if _everywhere(host):
            others = _address(door, socket.gethostname(), bound, state)
            say(f"other computers reach it as {others}")
        say("press Ctrl-C to stop")
        if browser:
            threading.Thread(target=_open_browser, args=(address,), daemon=True).start()

    with one_line_errors():
        _run_until_interrupted(uvicorn.Server(_config(make_app(library, door, listening))), listener)


def _config(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="h11",
        ws="websockets-sansio",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws_max_size=FRAME,
        ws_per_message_deflate=False,
        ws_ping_timeout=SILENCE,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=CLOSING,
    )


def _run_until_interrupted(server: uvicorn.Server, listener: socket.socket) -> None:
    """In a thread, so that a notebook, whose own loop is running, can serve as well.

    Its end is an event: a ``join`` that Ctrl-C interrupts takes the thread for ended, and Python would end
    under a server that is still closing its pages.
    """
    ended = threading.Event()

    def run() -> None:
        try:
            server.run([listener])
        finally:
            ended.set()

    threading.Thread(target=run, name="attnlab-server", daemon=True).start()
    try:
        while not ended.wait(0.5):
            pass
    except KeyboardInterrupt:
        server.should_exit = True
        ended.wait(2 * CLOSING)
    finally:
        listener.close()
    if not server.started:
        raise LabError("the server did not start; its line above says why")


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there: who comes before the server has begun waits for it."""
    if not 0 <= port < 2**16:
        raise InputError(f"port is {port}; it must be from 0 to {2**16 - 1}")
    try:
        family, kind, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"host is {brief(host)}, which is not a name or an address of this computer"
        ) from error
    listener = socket.socket(family, kind)
    if os.name == "posix":  # elsewhere it would let two programs share a port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(where)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise InputError(_why_not(host, port, error)) from error
    return listener


def _why_not(host: str, port: int, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"port {port} is taken by another program; choose another one, or 0 for any that is free"
        case errno.EACCES:
            return f"port {port} is for programs with more rights; choose one from 1024 on"
        case errno.EADDRNOTAVAIL:
            return f"host is {brief(host)}, which is not a name or an address of this computer"
    return f"port {port} of {host} cannot be used: {(error.strerror or str(error)).lower()}"


def _address(door: Door, host: str, port: int, state: str) -> str:
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/{door.token}/{state}"


def _state(run: str, text: str) -> str:
    """The state that the page begins with (``store.js``)."""
    pairs = [(key, value) for key, value in (("run", run), ("text", text)) if value]
    return "#" + "&".join(f"{key}={quote(value, safe=':/')}" for key, value in pairs) if pairs else ""


def _everywhere(host: str) -> bool:
    return host in ("0.0.0.0", "::", "")


def _open_browser(address: str) -> None:
    """In a window, where there are windows: never in the terminal that shows the address."""
    windows = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if windows:
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(address)


class _OneLine(logging.Handler):
    """An error of the server as one line."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        what = f": {type(error).__name__}: {error}" if error else ""
        print(f"attnlab: {' '.join(f'{record.getMessage()}{what}'.split())}", file=sys.stderr, flush=True)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Errors that the server logs are lines without a traceback while the context is open."""
    loggers = [logging.getLogger(name) for name in ("uvicorn", "asyncio")]
    before = [(each, each.propagate, each.level) for each in loggers]
    handler = _OneLine(logging.ERROR)
    for each in loggers:
        each.addHandler(handler)
        each.propagate = False
        each.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for each, propagate, level in before:
            each.removeHandler(handler)
            each.propagate = propagate
            each.setLevel(level)
