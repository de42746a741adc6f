"""Tokens that may be changed while the server runs."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import structlog

from remy_services.coordinator.access.doorkeeper import Doorkeeper
from remy_services.coordinator.access.tokens import Tokens
from remy_services.coordinator.serving.file_watch import signature_of
from remy_services.files import FileError

_CHECK_SECONDS = 1.0

_log = structlog.get_logger()


class TokenWatch:
    """Gives a doorkeeper the tokens of a file, and again whenever they change.

    A file that makes no sense is told of in the log, and the last good tokens go on being valid.
    """

    def __init__(self, path: Path, doorkeeper: Doorkeeper) -> None:
        """Raises FileError if the tokens cannot be read."""
        self._path = path
        self._doorkeeper = doorkeeper
        self._paths: tuple[Path, ...] = (path,)
        self._read()
        self._signature = signature_of(self._paths)
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Watches until `close`."""
        self._task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            signature = await asyncio.to_thread(signature_of, self._paths)
            if signature == self._signature:
                continue
            self._signature = signature
            try:
                await asyncio.to_thread(self._read)
            except FileError as error:
                _log.error("the new tokens cannot be used", why=str(error))
            else:
                self._signature = signature_of(self._paths)
                _log.info("the tokens were read anew")

    def _read(self) -> None:
        tokens = Tokens.read(self._path)
        self._doorkeeper.tokens = tokens
        self._paths = tokens.paths
