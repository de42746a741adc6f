"""The page's own files: named by what is in them, so that browsers keep them, and packed."""

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

#: The page's own files: farm.html, and script and style as built by scripts/live_page.py.
BUILT: Final = resources.files("remy_services.web") / "page"
#: Where the page has what it shows first.
_FIRST: Final = '<script type="application/json" id="first">'
_ASSETS: Final = {"farm.js": "text/javascript", "farm.css": "text/css"}


async def asset(request: Request) -> Response:
    """A file of the page, to be kept under the address of its version."""
    name = request.path_params["name"]
    if name not in _ASSETS:
        raise RequestRefused(HTTPStatus.NOT_FOUND, "there is no such file")
    is_packed = takes_gzip(request)
    headers = encoding(is_packed)
    if request.url.query == _digest(name):
        # The page of another version asks by another address.
        headers["Cache-Control"] = "private, max-age=31536000, immutable"
    return Response(_content(name, is_packed), media_type=_ASSETS[name], headers=headers)


def takes_gzip(request: Request) -> bool:
    """Whether who asks can unpack."""
    return "gzip" in request.headers.get("accept-encoding", "")


def encoding(is_packed: bool) -> dict[str, str]:
    """The headers that say so."""
    return {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if is_packed else {})


async def packed(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Each as soon as it is there."""
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    async for piece in pieces:
        yield packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


def shell() -> tuple[bytes, bytes]:
    """The page before and after what is shown first, with the addresses of its present files."""
    page = (BUILT / "farm.html").read_text(encoding="utf-8")
    for name in _ASSETS:
        page = page.replace(f"/assets/{name}", f"/assets/{name}?{_digest(name)}")
    head, mark, tail = page.partition(_FIRST)
    return (head + mark).encode(), tail.encode()


def _digest(name: str) -> str:
    return hashlib.sha256(_content(name, False)).hexdigest()[:16]


@cache
def _content(name: str, is_packed: bool) -> bytes:
    content = (BUILT / name).read_bytes()
    return gzip.compress(content, mtime=0) if is_packed else content
