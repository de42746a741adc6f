"""Sessions: who is signed in at the farm's page, with which token, and what proves it.

A browser holds the session's name in a cookie that its scripts cannot read and that no other site
has it send; requests that change something also carry the session's CSRF token, which only the
page's own scripts know. The coordinator's token stays in the server's memory: it is in no cookie,
no address and no answer.
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

#: A session that nothing was heard of for so long is over.
IDLE_SECONDS: Final = 12 * 3600.0
MOST_SESSIONS: Final = 10_000

_SECRET_BYTES: Final = 32
# A page asks again by itself; nobody looks at one that does not answer.
_PATIENCE_SECONDS: Final = 0.0
_DEADLINE_SECONDS: Final = 20.0


class Account:
    """What the sessions of one token share: the connection to the coordinator, and the feed."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._connection = Connection(
            settings, patience_seconds=_PATIENCE_SECONDS, deadline_seconds=_DEADLINE_SECONDS
        )
        self.client = DesignClient(self._connection)
        self.feed = JobFeed(self.client)
        #: As it was last told.
        self.known_info: messages.GetServerInfoResponse | None = None

    def server_info(self) -> messages.GetServerInfoResponse:
        """Who the token says that this is, and what serves there. Raises ServiceError."""
        self.known_info = self.client.server_info()
        return self.known_info

    def close(self) -> None:
        """Ends its calls."""
        self.feed.close()
        self._connection.close()


@dataclass
class SignedIn:
    """A session."""

    #: What the cookie holds.
    name: str = field(repr=False)
    #: What requests that change something must carry.
    csrf: str = field(repr=False)
    account: Account
    heard_at_seconds: float
    _key: bytes = field(repr=False)


class Sessions:
    """All sessions of a server. Safe to use from several threads.

    `settings` says where the coordinator is. Its token is given to nobody but to whoever knows
    `code`, which a server for one user prints; without a code it is not used.
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
        self._sessions: OrderedDict[str, SignedIn] = OrderedDict()
        self._accounts: dict[bytes, Account] = {}

    def open(self, given: str) -> tuple[SignedIn, messages.GetServerInfoResponse]:
        """A session for whoever has a token that the coordinator takes; without one, if the
        coordinator asks for none.

        Raises ServiceError, and SettingsError for what can be no token.
        """
        settings = self._settings_with(given)
        key = _key(settings.token)
        with self._lock:
            account = self._accounts.get(key)
        fresh = account is None
        account = account or Account(settings)
        try:
            info = account.server_info()
        except BaseException:
            if fresh:
                account.close()
            raise
        with self._lock:
            kept = self._accounts.setdefault(key, account)
            session = SignedIn(
                secrets.token_urlsafe(_SECRET_BYTES),
                secrets.token_urlsafe(_SECRET_BYTES),
                kept,
                self._clock(),
                key,
            )
            self._sessions[session.name] = session
            ended = self._drop_old()
        if kept is not account:
            ended.append(account)
        for each in ended:
            each.close()
        return session, info

    def find(self, name: str | None) -> SignedIn | None:
        """The session that a cookie names, if it is not over."""
        now = self._clock()
        with self._lock:
            session = self._sessions.get(name or "")
            if session is None or now - session.heard_at_seconds > IDLE_SECONDS:
                return None
            session.heard_at_seconds = now
            self._sessions.move_to_end(session.name)
            return session

    def close(self, session: SignedIn) -> None:
        """Signs out; the token is forgotten with the last session that has it."""
        with self._lock:
            self._sessions.pop(session.name, None)
            ended = self._unused()
        for each in ended:
            each.close()

    def close_all(self) -> None:
        """Ends everything."""
        with self._lock:
            self._sessions.clear()
            ended = self._unused()
        for each in ended:
            each.close()

    def _settings_with(self, given: str) -> ConnectionSettings:
        code = self._code
        if code is not None and hmac.compare_digest(given.strip().encode(), code.encode()):
            return self._settings
        token = Token(given.strip(), "what was entered") if given.strip() else None
        return replace(self._settings, token=token)

    def _drop_old(self) -> list[Account]:
        now = self._clock()
        while self._sessions:
            oldest = next(iter(self._sessions.values()))
            is_over = now - oldest.heard_at_seconds > IDLE_SECONDS
            if not is_over and len(self._sessions) <= MOST_SESSIONS:
                break
            del self._sessions[oldest.name]
        return self._unused()

    def _unused(self) -> list[Account]:
        """Accounts without a session, which are no longer kept."""
        used = {session._key for session in self._sessions.values()}
        return [self._accounts.pop(key) for key in list(self._accounts) if key not in used]


def _key(token: Token | None) -> bytes:
    return hashlib.sha256(b"" if token is None else token.text.encode()).digest()
