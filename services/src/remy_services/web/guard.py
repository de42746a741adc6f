"""Security of the page: response headers, and checks of host, origin and body size."""

from __future__ import annotations

import hmac
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Limit of a request body; a specification may have 1 MiB.
MAX_BODY_BYTES: Final = (1 << 20) + (64 << 10)
#: Methods without side effects.
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
#: Content security policy: only the page's own files, and the live network in a frame.
_POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src data:",
        "frame-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
#: The live network contains its own policy with digests of its scripts; a second policy would block
#: #: them.
LIVE_POLICY: Final = "frame-ancestors 'self'"
#: Study pages contain text and pictures in a frame, without scripts.
STUDY_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'"
)


class RequestRefused(Exception):
    """Ends a request with an HTTP status and one sentence."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def is_equal(given: str, wanted: str) -> bool:
    """Compares secrets in constant time."""
    return hmac.compare_digest(given.encode(), wanted.encode())


class Guard:
    """ASGI middleware that sets security headers and refuses foreign or oversized requests.

    An unknown host name indicates DNS rebinding by a foreign page. A request with side effects from
    another origin is a cross-site request.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], is_secure: bool) -> None:
        self._app = app
        self._hosts = hosts
        self._headers = {
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }
        if is_secure:
            self._headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send_guarded)
            return
        await self._app(scope, _limited(receive), send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name = urlsplit(f"//{host}").hostname or ""
        if scope["path"] != "/health" and name not in self._hosts:
            sentence = f"{name[:100]!r} is not a name of this server; add it with --host"
            return JSONResponse({"error": sentence}, HTTPStatus.MISDIRECTED_REQUEST)
        if scope["method"] not in SAFE_METHODS:
            origin = headers.get("origin")
            site = headers.get("sec-fetch-site", "same-origin")
            is_foreign = origin is not None and urlsplit(origin).netloc != host
            if is_foreign or site not in ("same-origin", "none"):
                sentence = "the request comes from a page of another origin"
                return JSONResponse({"error": sentence}, HTTPStatus.FORBIDDEN)
        return None


def _limited(receive: Receive) -> Receive:
    """Wraps `receive` with the body size limit."""
    received = 0

    async def receive_limited() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > MAX_BODY_BYTES:
            raise RequestRefused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the request is larger than {MAX_BODY_BYTES} bytes",
            )
        return message

    return receive_limited
