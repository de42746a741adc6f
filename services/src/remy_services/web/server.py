"""The server of the farm's page: what it serves, to whom, and what browsers may do with it.

It asks the coordinator with the token of whoever is signed in, by the calls that the command line
makes, and keeps nothing: what a role may not do, the coordinator refuses here, too.
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
from remy_services.web.assets import asset, encoding, packed, shell, takes_gzip
from remy_services.web.feed import Tree
from remy_services.web.guard import POLICY_OF_STUDIES, SAFE, Guard, RequestRefused, is_same
from remy_services.web.handlers import HANDLERS, Handler, Login, decoded
from remy_services.web.sessions import Sessions, SignedIn

#: Updates that a browser may be behind before it is told to begin anew.
_MOST_BEHIND: Final = 200
#: With all its pictures.
_MOST_STUDY_BYTES: Final = 64 << 20
_HEARTBEAT_SECONDS: Final = 15.0
#: In which a browser draws what a screen shows, before it is kept busy with the rest.
_DRAWING_SECONDS: Final = 0.2
#: uvicorn ticks ten times a second.
_TICKS_BETWEEN_LOOKS: Final = 10
_CSRF_HEADER: Final = "x-csrf-token"
#: For so long the page waits for its jobs, since a browser draws what it is given without them;
#: and so long in all, since a script waits for the whole page, and asks for what takes longer.
_IN_ONE_PIECE_SECONDS, _FIRST_SECONDS = 0.1, 0.4


@dataclass(frozen=True, kw_only=True)
class PageSettings:
    """How the page is served."""

    listen: Address
    coordinator: ConnectionSettings
    #: Names that browsers know this server by, beside the address that it listens at.
    hosts: tuple[str, ...] = ()
    #: Folders of `reproduce` and `league` whose pages are shown, by the names of the folders.
    studies: tuple[Path, ...] = ()
    #: PEM files; None: in plain text.
    tls_cert: Path | None = None
    tls_key: Path | None = None
    #: Signs in with the coordinator's token of these settings; None: everybody has their own.
    code: str | None = field(default=None, repr=False)


class FarmPage:
    """The application. `cookie` is the name of the session's; `is_secure` says whether browsers
    come by TLS; `studies` are folders of pages that are shown besides."""

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
        self._shell = shell()
        handlers = {**HANDLERS, "/studied/{name}": (self._study, ["GET"])}
        routes = [
            Route("/health", _healthy),
            Route("/assets/{name}", asset),
            Route("/api/session", self._sign_in, methods=["POST"]),
            Route("/api/session", self._sign_out, methods=["DELETE"]),
            Route("/api/session", self._who, methods=["GET"]),
            Route("/api/updates", self._updates),
            *(
                Route(path, partial(self._handle, handler), methods=methods)
                for path, (handler, methods) in handlers.items()
            ),
            Route("/api/{rest:path}", _unknown, methods=["GET", "POST", "DELETE", "PUT"]),
            Route("/{rest:path}", self._page),
        ]
        self.app = Starlette(
            routes=routes,
            middleware=[
                Middleware(Guard, hosts=frozenset(hosts), is_secure=is_secure),
                Middleware(GZipMiddleware, minimum_size=1000, compresslevel=6),
            ],
            exception_handlers={RequestRefused: _said, ServiceError: _failed, SettingsError: _said},
        )

    def _session(self, request: Request) -> SignedIn:
        session = self._sessions.find(request.cookies.get(self._cookie))
        if session is None:
            raise RequestRefused(HTTPStatus.UNAUTHORIZED, "nobody is signed in")
        if request.method not in SAFE and not is_same(
            request.headers.get(_CSRF_HEADER, ""), session.csrf
        ):
            raise RequestRefused(
                HTTPStatus.FORBIDDEN, "the request does not come from this page; load it again"
            )
        return session

    async def _handle(self, handler: Handler, request: Request) -> Response:
        session = self._session(request)
        body = await request.body()
        answer = await run_in_threadpool(handler, session, request, body)
        return answer if isinstance(answer, Response) else JSONResponse(answer)

    async def _sign_in(self, request: Request) -> Response:
        given: Login = decoded(await request.body(), Login)
        session, info = await run_in_threadpool(self._sessions.open, given.token)
        session.account.feed.expect()
        return self._with_cookie(session, JSONResponse(self._who_tree(session, info)))

    def _with_cookie(self, session: SignedIn, response: Response) -> Response:
        response.set_cookie(
            self._cookie,
            session.name,
            httponly=True,
            samesite="strict",
            secure=self._is_secure,
            path="/",
        )
        return response

    async def _who(self, request: Request) -> Response:
        session = self._session(request)
        info = await run_in_threadpool(session.account.server_info)
        return JSONResponse(self._who_tree(session, info))

    def _who_tree(self, session: SignedIn, info: messages.GetServerInfoResponse) -> Tree:
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

    def _study(self, _: SignedIn, request: Request, __: bytes) -> Response:
        name = request.path_params["name"]
        try:
            content = read_file(self._studies[name], limit=_MOST_STUDY_BYTES)
        except (KeyError, FileError) as error:
            raise RequestRefused(
                HTTPStatus.NOT_FOUND, f"there is no page of {name[:100]!r}"
            ) from error
        return HTMLResponse(content, headers={"Content-Security-Policy": POLICY_OF_STUDIES})

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

    async def _events(self, session: SignedIn) -> AsyncIterator[str]:
        """Server-sent events, for as long as the session lasts and the browser keeps up."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[Tree] = asyncio.Queue()

        def listener(update: Tree) -> None:
            # A server that ends has no loop any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(waiting.put_nowait, update)

        feed = session.account.feed
        await run_in_threadpool(feed.listen, listener)
        try:
            while waiting.qsize() <= _MOST_BEHIND:
                try:
                    update = await asyncio.wait_for(waiting.get(), _HEARTBEAT_SECONDS)
                except TimeoutError:
                    if self._sessions.find(session.name) is None:
                        return
                    yield ": still here\n\n"
                else:
                    yield f"data: {json.dumps(update, separators=(',', ':'))}\n\n"
                    if update.get("more"):
                        await asyncio.sleep(_DRAWING_SECONDS)
        finally:
            feed.leave(listener)

    async def _page(self, request: Request) -> Response:
        session = self._sessions.find(request.cookies.get(self._cookie))
        if session is None and request.headers.get("sec-fetch-dest") == "document":
            session = await self._newcomer()
        if session is None:
            # Says that there is no need to ask who is signed in.
            return HTMLResponse(b"null".join(self._shell))
        session.account.feed.expect()
        is_packed = takes_gzip(request)
        pieces = self._pieces(session)
        page = StreamingResponse(
            packed(pieces) if is_packed else pieces,
            media_type="text/html",
            headers=encoding(is_packed),
        )
        return self._with_cookie(session, page)

    async def _newcomer(self) -> SignedIn | None:
        """A session for a browser that nobody is signed in with, where the coordinator asks for no
        token, and says so at once; else the page's script asks."""
        opening = asyncio.create_task(run_in_threadpool(self._sessions.open, ""))
        # What came too late is nobody's trouble.
        opening.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({opening}, timeout=_FIRST_SECONDS)
        if not opening.done() or opening.exception() is not None:
            return None
        session, _ = opening.result()
        return session

    async def _pieces(self, session: SignedIn) -> AsyncIterator[bytes]:
        """The page and in it what it shows first, in two pieces where that takes a while."""
        head, tail = self._shell
        info, feed = session.account.known_info, session.account.feed
        jobs = await run_in_threadpool(feed.first, _IN_ONE_PIECE_SECONDS)
        if jobs is None:
            yield head
            head, jobs = b"", await run_in_threadpool(feed.first, _FIRST_SECONDS)
        first = b""
        if jobs is not None and info is not None:
            found = {"session": self._who_tree(session, info), "jobs": jobs}
            # Within a script element only "<" can mean anything.
            first = json.dumps(found, separators=(",", ":")).replace("<", "\\u003c").encode()
        yield head + first + tail


async def _healthy(_: Request) -> Response:
    return Response("serving\n", media_type="text/plain")


async def _unknown(_: Request) -> Response:
    raise RequestRefused(HTTPStatus.NOT_FOUND, "there is nothing at this address")


_STATUSES: Final[dict[type[ServiceError], HTTPStatus]] = {
    BadRequest: HTTPStatus.BAD_REQUEST,
    Refused: HTTPStatus.CONFLICT,
    Unreachable: HTTPStatus.SERVICE_UNAVAILABLE,
    NotAllowed: HTTPStatus.FORBIDDEN,
}


async def _failed(_: Request, error: Exception) -> Response:
    """What the coordinator said."""
    assert isinstance(error, ServiceError)
    status = _STATUSES.get(type(error), HTTPStatus.BAD_GATEWAY)
    if error.code == grpc.StatusCode.UNAUTHENTICATED:
        status = HTTPStatus.UNAUTHORIZED
    elif error.code == grpc.StatusCode.NOT_FOUND:
        status = HTTPStatus.NOT_FOUND
    return JSONResponse({"error": error.message}, status)


async def _said(_: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, RequestRefused) else HTTPStatus.BAD_REQUEST
    return JSONResponse({"error": str(error)}, status)


def serve_page(settings: PageSettings, announce: Callable[[str], None]) -> None:
    """Serves until Ctrl-C or SIGTERM; `announce` is told the page's address once it is there.

    Raises SettingsError for an address or certificate that cannot be used.
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
        # Browsers do not tell ports apart where they keep cookies.
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
        # Streams of updates have no end of their own.
        timeout_graceful_shutdown=1,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"the page's certificate or key cannot be used: {error}") from error
    shown = Address(settings.hosts[0] if settings.hosts else settings.listen.host, port)
    announce(f"{'https' if is_secure else 'http'}://{shown}/")
    # It is raised again when all has ended in order.
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        _PageServer(config).run(sockets=[listener])
    finally:
        sessions.close_all()


class _PageServer(uvicorn.Server):
    """Shows a certificate that was renewed from the next connection on, without a restart."""

    async def on_tick(self, counter: int) -> bool:
        # Between two handshakes, since both are made in the event loop.
        if counter % _TICKS_BETWEEN_LOOKS == 0:
            self._renew()
        return await super().on_tick(counter)

    def _renew(self) -> None:
        cert, key, context = self.config.ssl_certfile, self.config.ssl_keyfile, self.config.ssl
        if cert is None or key is None or context is None:
            return
        with contextlib.suppress(OSError, ssl.SSLError):
            # One of both may have been written, and the other not yet: it is looked at again.
            now = (Path(cert).stat().st_mtime_ns, Path(key).stat().st_mtime_ns)
            if now != self._shown:
                context.load_cert_chain(cert, key)
                self._shown = now

    _shown: tuple[int, int] | None = None


def _bound(listen: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((listen.host, listen.port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise SettingsError(f"{listen} cannot be served at: {error.strerror}") from error
    return listener
