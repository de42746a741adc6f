"""HTTP server of the farm's page.

It calls the coordinator with the signed-in user's token and stores nothing, so the coordinator's
roles apply here too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final

import grpc
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from remy_farm.files import FileError, read_file
from remy_proto.v1 import design_service_pb2 as messages
from remy_rpc.settings import Address, SettingsError
from remy_services.client.settings import ConnectionSettings
from remy_services.client.status import BadRequest, NotAllowed, Refused, ServiceError, Unreachable
from remy_services.web.assets import accepts_gzip, asset, compress, encoding_headers, page_template
from remy_services.web.feed import Tree
from remy_services.web.guard import SAFE_METHODS, STUDY_POLICY, Guard, RequestRefused, is_equal
from remy_services.web.handlers import HANDLERS, Handler, Login, decode_body
from remy_services.web.sessions import Session, Sessions

#: Maximum queued updates of a browser, beyond which its stream ends and it reconnects.
_MAX_QUEUED_UPDATES: Final = 200
#: Limit of a study page with its pictures.
_MOST_STUDY_BYTES: Final = 64 << 20
_HEARTBEAT_SECONDS: Final = 15.0
#: Pause after the newest jobs, so that a browser can render them before the rest.
_RENDER_SECONDS: Final = 0.2
#: Ticks between certificate checks; uvicorn ticks ten times a second.
_TICKS_PER_CERTIFICATE_CHECK: Final = 10
_CSRF_HEADER: Final = "x-csrf-token"
#: Wait for the initial jobs before the first byte of the page is sent.
_FIRST_BYTE_WAIT_SECONDS: Final = 0.1
#: Wait for the initial jobs before the page is completed; later the script requests them.
_TOTAL_WAIT_SECONDS: Final = 0.4


@dataclass(frozen=True, kw_only=True)
class PageSettings:
    """Settings of the page's server."""

    listen: Address
    coordinator: ConnectionSettings
    #: Host names of this server, in addition to the listen address.
    hosts: tuple[str, ...] = ()
    #: Output folders of `reproduce` and `league` whose pages are shown.
    studies: tuple[Path, ...] = ()
    #: PEM files; None means plain text.
    tls_cert: Path | None = None
    tls_key: Path | None = None
    #: Code that signs in with the token of `coordinator`; None means that users have their own
    #: tokens.
    code: str | None = field(default=None, repr=False)


class FarmPage:
    """The ASGI application.

    `cookie` is the name of the session cookie, `is_secure` says whether the page is served over
    TLS, and `studies` are folders of study pages.
    """

    def __init__(
        self,
        sessions: Sessions,
        hosts: Iterable[str],
        *,
        cookie: str,
        is_secure: bool,
        studies: Iterable[Path] = (),
    ) -> None:
        self._sessions = sessions
        self._studies = {path.resolve().name: path / "index.html" for path in studies}
        self._cookie = cookie
        self._is_secure = is_secure
        self._template = page_template()
        handlers = {**HANDLERS, "/studied/{name}": (self._study, ["GET"])}
        routes = [
            Route("/health", _health),
            Route("/assets/{name}", asset),
            Route("/api/session", self._sign_in, methods=["POST"]),
            Route("/api/session", self._sign_out, methods=["DELETE"]),
            Route("/api/session", self._session_info, methods=["GET"]),
            Route("/api/updates", self._updates),
            *(
                Route(path, partial(self._handle, handler), methods=methods)
                for path, (handler, methods) in handlers.items()
            ),
            Route("/api/{rest:path}", _not_found, methods=["GET", "POST", "DELETE", "PUT"]),
            Route("/{rest:path}", self._page),
        ]
        self.app = Starlette(
            routes=routes,
            middleware=[
                Middleware(Guard, hosts=frozenset(hosts), is_secure=is_secure),
                Middleware(GZipMiddleware, minimum_size=1000, compresslevel=6),
            ],
            exception_handlers={
                RequestRefused: _refused,
                ServiceError: _service_error,
                SettingsError: _refused,
            },
        )

    def _session(self, request: Request) -> Session:
        session = self._sessions.find(request.cookies.get(self._cookie))
        if session is None:
            raise RequestRefused(HTTPStatus.UNAUTHORIZED, "not signed in")
        if request.method not in SAFE_METHODS and not is_equal(
            request.headers.get(_CSRF_HEADER, ""), session.csrf
        ):
            raise RequestRefused(
                HTTPStatus.FORBIDDEN, "the request has no valid CSRF token; reload the page"
            )
        return session

    async def _handle(self, handler: Handler, request: Request) -> Response:
        session = self._session(request)
        body = await request.body()
        answer = await run_in_threadpool(handler, session, request, body)
        return answer if isinstance(answer, Response) else JSONResponse(answer)

    async def _sign_in(self, request: Request) -> Response:
        given: Login = decode_body(await request.body(), Login)
        session, info = await run_in_threadpool(self._sessions.open, given.token)
        session.account.feed.expect()
        return self._with_cookie(session, JSONResponse(self._session_dict(session, info)))

    def _with_cookie(self, session: Session, response: Response) -> Response:
        response.set_cookie(
            self._cookie,
            session.name,
            httponly=True,
            samesite="strict",
            secure=self._is_secure,
            path="/",
        )
        return response

    async def _session_info(self, request: Request) -> Response:
        session = self._session(request)
        info = await run_in_threadpool(session.account.server_info)
        return JSONResponse(self._session_dict(session, info))

    def _session_dict(self, session: Session, info: messages.GetServerInfoResponse) -> Tree:
        return {
            "csrf": session.csrf,
            "caller": info.caller,
            "role": info.role,
            "coordinator": info.coordinator,
            "version": info.version,
            "evaluators": {
                "kind": info.evaluators.kind,
                "workers": info.evaluators.workers,
                "busy": info.evaluators.busy_workers,
                "threads": info.evaluators.threads,
            },
            "studies": list(self._studies),
        }

    def _study(self, _: Session, request: Request, __: bytes) -> Response:
        name = request.path_params["name"]
        try:
            content = read_file(self._studies[name], limit=_MOST_STUDY_BYTES)
        except (KeyError, FileError) as error:
            raise RequestRefused(
                HTTPStatus.NOT_FOUND, f"there is no study page {name[:100]!r}"
            ) from error
        return HTMLResponse(content, headers={"Content-Security-Policy": STUDY_POLICY})

    async def _sign_out(self, request: Request) -> Response:
        session = self._session(request)
        await run_in_threadpool(self._sessions.close, session)
        response = JSONResponse({})
        response.delete_cookie(self._cookie, path="/", secure=self._is_secure, httponly=True)
        return response

    async def _updates(self, request: Request) -> Response:
        session = self._session(request)
        return StreamingResponse(
            self._events(session),
            media_type="text/event-stream",
            headers={"X-Accel-Buffering": "no"},
        )

    async def _events(self, session: Session) -> AsyncIterator[str]:
        """Yields server-sent events while the session lasts and the browser keeps up."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[Tree] = asyncio.Queue()

        def listener(update: Tree) -> None:
            # The event loop may already be closed at shutdown.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(waiting.put_nowait, update)

        feed = session.account.feed
        await run_in_threadpool(feed.listen, listener)
        try:
            while waiting.qsize() <= _MAX_QUEUED_UPDATES:
                try:
                    update = await asyncio.wait_for(waiting.get(), _HEARTBEAT_SECONDS)
                except TimeoutError:
                    if self._sessions.find(session.name) is None:
                        return
                    yield ": still here\n\n"
                else:
                    yield f"data: {json.dumps(update, separators=(',', ':'))}\n\n"
                    if update.get("more"):
                        await asyncio.sleep(_RENDER_SECONDS)
        finally:
            feed.remove_listener(listener)

    async def _page(self, request: Request) -> Response:
        session = self._sessions.find(request.cookies.get(self._cookie))
        if session is None and request.headers.get("sec-fetch-dest") == "document":
            session = await self._open_anonymous_session()
        if session is None:
            # "null" tells the script that there is no session.
            return HTMLResponse(b"null".join(self._template))
        session.account.feed.expect()
        is_compressed = accepts_gzip(request)
        pieces = self._pieces(session)
        page = StreamingResponse(
            compress(pieces) if is_compressed else pieces,
            media_type="text/html",
            headers=encoding_headers(is_compressed),
        )
        return self._with_cookie(session, page)

    async def _open_anonymous_session(self) -> Session | None:
        """Opens a session without token, if the coordinator requires none and answers in time."""
        opening = asyncio.create_task(run_in_threadpool(self._sessions.open, ""))
        # Retrieves the exception of a late result, so that it is not logged.
        opening.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({opening}, timeout=_TOTAL_WAIT_SECONDS)
        if not opening.done() or opening.exception() is not None:
            return None
        session, _ = opening.result()
        return session

    async def _pieces(self, session: Session) -> AsyncIterator[bytes]:
        """Yields the page with its initial data, in two pieces if the data takes long."""
        head, tail = self._template
        info, feed = session.account.known_info, session.account.feed
        jobs = await run_in_threadpool(feed.first, _FIRST_BYTE_WAIT_SECONDS)
        if jobs is None:
            yield head
            head, jobs = b"", await run_in_threadpool(feed.first, _TOTAL_WAIT_SECONDS)
        first = b""
        if jobs is not None and info is not None:
            found = {"session": self._session_dict(session, info), "jobs": jobs}
            # Escapes "<", the only character with a meaning inside a script element.
            first = json.dumps(found, separators=(",", ":")).replace("<", "\\u003c").encode()
        yield head + first + tail


async def _health(_: Request) -> Response:
    return Response("serving\n", media_type="text/plain")


async def _not_found(_: Request) -> Response:
    raise RequestRefused(HTTPStatus.NOT_FOUND, "this address does not exist")


_STATUSES: Final[dict[type[ServiceError], HTTPStatus]] = {
    BadRequest: HTTPStatus.BAD_REQUEST,
    Refused: HTTPStatus.CONFLICT,
    Unreachable: HTTPStatus.SERVICE_UNAVAILABLE,
    NotAllowed: HTTPStatus.FORBIDDEN,
}


async def _service_error(_: Request, error: Exception) -> Response:
    """Converts a coordinator's error to an HTTP response."""
    assert isinstance(error, ServiceError)
    status = _STATUSES.get(type(error), HTTPStatus.BAD_GATEWAY)
    if error.code == grpc.StatusCode.UNAUTHENTICATED:
        status = HTTPStatus.UNAUTHORIZED
    elif error.code == grpc.StatusCode.NOT_FOUND:
        status = HTTPStatus.NOT_FOUND
    return JSONResponse({"error": error.message}, status)


async def _refused(_: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, RequestRefused) else HTTPStatus.BAD_REQUEST
    return JSONResponse({"error": str(error)}, status)


def serve_page(settings: PageSettings, announce: Callable[[str], None]) -> None:
    """Serves until SIGINT or SIGTERM; calls `announce` with the page's address once it is ready.

    Raises SettingsError if the address or the certificate cannot be used.
    """
    listener = _bound(settings.listen)
    port = listener.getsockname()[1]
    is_secure = settings.tls_cert is not None
    sessions = Sessions(settings.coordinator, code=settings.code)
    hosts = [settings.listen.host, *settings.hosts]
    if settings.listen.is_loopback:
        hosts += ["localhost", "127.0.0.1", "::1"]
    page = FarmPage(
        sessions,
        (host.lower() for host in hosts),
        # Cookies are not separated by port, so the name contains it.
        cookie="__Host-remy-farm" if is_secure else f"remy-farm-{port}",
        is_secure=is_secure,
        studies=settings.studies,
    )
    config = uvicorn.Config(
        page.app,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        # Update streams would otherwise never end.
        timeout_graceful_shutdown=1,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"the page's TLS certificate or key is invalid: {error}") from error
    shown = Address(settings.hosts[0] if settings.hosts else settings.listen.host, port)
    announce(f"{'https' if is_secure else 'http'}://{shown}/")
    # uvicorn handles SIGTERM and raises it again after an orderly shutdown, which this ignores.
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        _PageServer(config).run(sockets=[listener])
    finally:
        sessions.close_all()


class _PageServer(uvicorn.Server):
    """Reloads a renewed certificate for new connections, without a restart."""

    async def on_tick(self, counter: int) -> bool:
        # Runs in the event loop, and therefore never during a handshake.
        if counter % _TICKS_PER_CERTIFICATE_CHECK == 0:
            self._reload_certificate()
        return await super().on_tick(counter)

    def _reload_certificate(self) -> None:
        cert, key, context = self.config.ssl_certfile, self.config.ssl_keyfile, self.config.ssl
        if cert is None or key is None or context is None:
            return
        with contextlib.suppress(OSError, ssl.SSLError):
            # If only one of the two files is renewed so far, loading fails and is retried.
            now = (Path(cert).stat().st_mtime_ns, Path(key).stat().st_mtime_ns)
            if now != self._loaded_mtimes:
                context.load_cert_chain(cert, key)
                self._loaded_mtimes = now

    _loaded_mtimes: tuple[int, int] | None = None


def _bound(listen: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((listen.host, listen.port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise SettingsError(f"cannot listen on {listen}: {error.strerror}") from error
    return listener
