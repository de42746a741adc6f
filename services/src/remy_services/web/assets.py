"""Static files of the page: content-addressed for caching, and compressed."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import AsyncIterator
from functools import cache
from http import HTTPStatus
from importlib import resources
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from remy_services.web.guard import RequestRefused

#: farm.html, and script and style as built by scripts/live_page.py.
BUILT: Final = resources.files("remy_services.web") / "page"
#: Marker in farm.html after which the initial data is inserted.
_INITIAL_DATA_MARKER: Final = '<script type="application/json" id="first">'
_ASSETS: Final = {"farm.js": "text/javascript", "farm.css": "text/css"}


async def asset(request: Request) -> Response:
    """Serves a static file, cacheable forever under the address of its version."""
    name = request.path_params["name"]
    if name not in _ASSETS:
        raise RequestRefused(HTTPStatus.NOT_FOUND, "this file does not exist")
    is_compressed = accepts_gzip(request)
    headers = encoding_headers(is_compressed)
    if request.url.query == _digest(name):
        # Each version has its own address.
        headers["Cache-Control"] = "private, max-age=31536000, immutable"
    return Response(_content(name, is_compressed), media_type=_ASSETS[name], headers=headers)


def accepts_gzip(request: Request) -> bool:
    """Returns whether the client accepts gzip."""
    return "gzip" in request.headers.get("accept-encoding", "")


def encoding_headers(is_compressed: bool) -> dict[str, str]:
    """Returns the headers for a compressed or plain response."""
    return {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if is_compressed else {})


async def compress(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Compresses pieces, and flushes each one immediately."""
    compressor = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    async for piece in pieces:
        yield compressor.compress(piece) + compressor.flush(zlib.Z_SYNC_FLUSH)
    yield compressor.flush()


def page_template() -> tuple[bytes, bytes]:
    """Returns the page before and after the initial data, with versioned addresses of its files."""
    page = (BUILT / "farm.html").read_text(encoding="utf-8")
    for name in _ASSETS:
        page = page.replace(f"/assets/{name}", f"/assets/{name}?{_digest(name)}")
    head, mark, tail = page.partition(_INITIAL_DATA_MARKER)
    return (head + mark).encode(), tail.encode()


def _digest(name: str) -> str:
    return hashlib.sha256(_content(name, False)).hexdigest()[:16]


@cache
def _content(name: str, is_compressed: bool) -> bytes:
    content = (BUILT / name).read_bytes()
    return gzip.compress(content, mtime=0) if is_compressed else content
