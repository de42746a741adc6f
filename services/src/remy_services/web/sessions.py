"""Sessions of the page: signed-in users and their tokens.

The session id is in an HttpOnly, SameSite cookie. Requests with side effects also carry the
session's CSRF token, which only the page's scripts know. The coordinator's token stays in the
server's memory and is never sent to the browser.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from remy_proto.v1 import design_service_pb2 as messages
from remy_rpc.settings import Token
from remy_services.client.connection import Connection
from remy_services.client.design_client import DesignClient
from remy_services.client.settings import ConnectionSettings
from remy_services.web.feed import JobFeed

#: Idle time after which a session ends.
IDLE_SECONDS: Final = 12 * 3600.0
MAX_SESSIONS: Final = 10_000

_SECRET_BYTES: Final = 32
# No retries: the page retries by itself.
_PATIENCE_SECONDS: Final = 0.0
_DEADLINE_SECONDS: Final = 20.0


class Account:
    """Connection and feed, shared by all sessions with one token."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._connection = Connection(
            settings, patience_seconds=_PATIENCE_SECONDS, deadline_seconds=_DEADLINE_SECONDS
        )
        self.client = DesignClient(self._connection)
        self.feed = JobFeed(self.client)
        #: Last server info.
        self.known_info: messages.GetServerInfoResponse | None = None

    def server_info(self) -> messages.GetServerInfoResponse:
        """Requests caller, role and server info. Raises ServiceError."""
        self.known_info = self.client.server_info()
        return self.known_info

    def close(self) -> None:
        """Stops the feed and closes the connection."""
        self.feed.close()
        self._connection.close()


@dataclass
class Session:
    """A session."""

    #: Secret id in the cookie.
    name: str = field(repr=False)
    #: CSRF token.
    csrf: str = field(repr=False)
    account: Account
    last_seen_seconds: float
    _key: bytes = field(repr=False)


class Sessions:
    """All sessions of a server. Thread-safe.

    `settings` name the coordinator. Their token is only used for sign-ins with `code`, which a
    single-user server prints; without a code it is not used.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        code: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._code = code
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._accounts: dict[bytes, Account] = {}

    def open(self, given: str) -> tuple[Session, messages.GetServerInfoResponse]:
        """Opens a session with a token, or without one if the coordinator requires none.

        Raises ServiceError, and SettingsError for an invalid token.
        """
        settings = self._settings_with(given)
        key = _key(settings.token)
        with self._lock:
            account = self._accounts.get(key)
        is_new = account is None
        account = account or Account(settings)
        try:
            info = account.server_info()
        except BaseException:
            if is_new:
                account.close()
            raise
        with self._lock:
            kept = self._accounts.setdefault(key, account)
            session = Session(
                secrets.token_urlsafe(_SECRET_BYTES),
                secrets.token_urlsafe(_SECRET_BYTES),
                kept,
                self._clock(),
                key,
            )
            self._sessions[session.name] = session
            ended = self._remove_expired()
        if kept is not account:
            ended.append(account)
        for each in ended:
            each.close()
        return session, info

    def find(self, name: str | None) -> Session | None:
        """Returns the session of a cookie, or None if it is unknown or expired."""
        now = self._clock()
        with self._lock:
            session = self._sessions.get(name or "")
            if session is None or now - session.last_seen_seconds > IDLE_SECONDS:
                return None
            session.last_seen_seconds = now
            self._sessions.move_to_end(session.name)
            return session

    def close(self, session: Session) -> None:
        """Ends a session. The token is dropped with its last session."""
        with self._lock:
            self._sessions.pop(session.name, None)
            ended = self._pop_unused_accounts()
        for each in ended:
            each.close()

    def close_all(self) -> None:
        """Ends all sessions."""
        with self._lock:
            self._sessions.clear()
            ended = self._pop_unused_accounts()
        for each in ended:
            each.close()

    def _settings_with(self, given: str) -> ConnectionSettings:
        code = self._code
        if code is not None and hmac.compare_digest(given.strip().encode(), code.encode()):
            return self._settings
        token = Token(given.strip(), "the sign-in form") if given.strip() else None
        return replace(self._settings, token=token)

    def _remove_expired(self) -> list[Account]:
        now = self._clock()
        while self._sessions:
            oldest = next(iter(self._sessions.values()))
            is_over = now - oldest.last_seen_seconds > IDLE_SECONDS
            if not is_over and len(self._sessions) <= MAX_SESSIONS:
                break
            del self._sessions[oldest.name]
        return self._pop_unused_accounts()

    def _pop_unused_accounts(self) -> list[Account]:
        """Removes and returns accounts without sessions."""
        used = {session._key for session in self._sessions.values()}
        return [self._accounts.pop(key) for key in list(self._accounts) if key not in used]


def _key(token: Token | None) -> bytes:
    return hashlib.sha256(b"" if token is None else token.text.encode()).digest()
