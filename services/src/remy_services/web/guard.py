"""What browsers may do with the page, and which requests are let in."""

from __future__ import annotations

import hmac
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Of a request; a specification may have 1 MiB.
MOST_BODY_BYTES: Final = (1 << 20) + (64 << 10)
#: Methods of requests that change nothing.
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
#: The page's own files, and nothing else from anywhere; the live network in a frame.
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
#: The live network has a policy of its own, by digests of what is in it, which must not be met by
#: another that knows them not.
POLICY_OF_LIVE: Final = "frame-ancestors 'self'"
#: Pages of studies are files: words and pictures, without scripts, in a frame.
POLICY_OF_STUDIES: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'"
)


class RequestRefused(Exception):
    """A request that is answered with a status and one sentence."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def is_same(given: str, wanted: str) -> bool:
    """Compares secrets in a time that does not tell how much of them is alike."""
    return hmac.compare_digest(given.encode(), wanted.encode())


class Guard:
    """Lets in what comes from the page itself, of bounded size, and says what browsers may do.

    A request by another name of this server is one of a foreign page whose name leads here (DNS
    rebinding); one that changes something and names another origin comes from a foreign page.
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
            sentence = f"this server is not called {name[:100]!r}; --host names what it is called"
            return JSONResponse({"error": sentence}, HTTPStatus.MISDIRECTED_REQUEST)
        if scope["method"] not in SAFE:
            origin = headers.get("origin")
            site = headers.get("sec-fetch-site", "same-origin")
            is_foreign = origin is not None and urlsplit(origin).netloc != host
            if is_foreign or site not in ("same-origin", "none"):
                sentence = "the request comes from another page than this server's"
                return JSONResponse({"error": sentence}, HTTPStatus.FORBIDDEN)
        return None


def _limited(receive: Receive) -> Receive:
    """The body as it comes in, up to its bound."""
    received = 0

    async def receive_limited() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > MOST_BODY_BYTES:
            raise RequestRefused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the request is larger than {MOST_BODY_BYTES} bytes",
            )
        return message

    return receive_limited
