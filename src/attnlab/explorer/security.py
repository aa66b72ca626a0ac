"""Who may talk to the explorer's server, and how much.

    token    a random word in the address; whoever does not know it gets nothing but a refusal
    Host     must name this computer, so a site whose name points here (DNS rebinding) is refused
    Origin   must be our own, so no page of another site opens the socket
    CSP      the page loads modules, styles and pictures from here and from nowhere else

The token is part of the path (``/TOKEN/``), so that modules and the socket are found by relative addresses,
a reload works, and the state of the page stays alone behind ``#``. No ``Referer`` is ever sent.
"""

import ipaddress
import re
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = "127.0.0.1"
_NAMES_OF_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ANY = ("0.0.0.0", "::", "")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.-]+)(:\d{1,5})?", re.ASCII)

TABS = 64
"""Pages that are open at once, at most."""
MESSAGES = 100.0
"""Messages a second of one page that are answered; a burst may be twice as many."""
BYTES = 8.0 * 2**20
"""Bytes a second of one page; a burst may be four times as many."""
WAITING = 32
"""Requests of one page that wait for an answer, at most."""
JOBS = 8
"""Analyses of all pages that run or wait, at most; each page has one."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Door:
    """The token, and by which names this server is known. ``host`` is what it is bound to."""

    host: str = LOOPBACK
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16), repr=False)

    def knows(self, token: str) -> bool:
        """Whether it is our token, in a time that does not depend on how much of it is right."""
        return secrets.compare_digest(token.encode(errors="replace"), self.token.encode())

    def is_here(self, host: str) -> bool:
        """Whether a Host header names this server, with any port, since ports are forwarded. An address in
        numbers cannot be rebound, so all are taken where the server listens on all.
        """
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match[1].strip("[]").lower()
        if name in (*_NAMES_OF_LOOPBACK, self.host.lower()):
            return True
        return self.host in _ANY and (_is_address(name) or name == socket.gethostname().lower())

    def is_ours(self, origin: str, host: str) -> bool:
        """Whether an Origin header is that of a page from here."""
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and origin == f"{parts.scheme}://{host}"

    def refusal(self, kind: str, path: str, headers: Headers) -> str:
        """Why a request is turned away, as one sentence; empty if it may come in."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self.is_here(host):
            return "this server does not answer under that name"
        if (origin is not None or kind == "websocket") and not self.is_ours(origin or "", host):
            return "pages of other sites may not talk to this server"
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return "pages of other sites may not talk to this server"
        if not self.knows(path.split("/")[1] if path.startswith("/") else ""):
            return "the address lacks its token; use the one that attnlab explore printed"
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@dataclass
class Guard:
    """Asks the door about every request, and puts the security headers on every answer."""

    app: ASGIApp
    door: Door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        why = self.door.refusal(scope["type"], scope["path"], Headers(scope=scope))
        if not why:
            await self.app(scope, receive, send_safely)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": why})  # before it is open: 403
        else:
            await PlainTextResponse(f"attnlab: {why}\n", 403)(scope, receive, send_safely)


@dataclass
class Bucket:
    """What may still be taken: ``rate`` a second is added, up to ``most``."""

    rate: float
    most: float
    clock: Callable[[], float] = monotonic

    def __post_init__(self) -> None:
        self._left, self._at = self.most, self.clock()

    def take(self, amount: float) -> bool:
        """Whether there is so much left, which is then gone."""
        now = self.clock()
        self._left = min(self.most, self._left + (now - self._at) * self.rate)
        self._at = now
        if amount > self._left:
            return False
        self._left -= amount
        return True


class Rates:
    """How much one page may still send."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._messages = Bucket(MESSAGES, 2 * MESSAGES, clock)
        self._bytes = Bucket(BYTES, 4 * BYTES, clock)

    def allow(self, size: int) -> bool:
        return self._messages.take(1) and self._bytes.take(size)
