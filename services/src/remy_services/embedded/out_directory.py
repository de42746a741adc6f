"""The directory that a design lives in."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from remy_services.files import FileError
from remy_services.files.errors import reason


class OutDirectory:
    """Names of a design's files, and the lock that keeps a second run away."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def checkpoint(self) -> Path:
        """The designer's state: all that a resume needs."""
        return self.path / "checkpoint.bin"

    @property
    def progress(self) -> Path:
        """What happened, one event a line."""
        return self.path / "progress.jsonl"

    @property
    def pareto(self) -> Path:
        """Throughput and delay of each epoch's table."""
        return self.path / "pareto.csv"

    @property
    def remycc_json(self) -> Path:
        """The best table so far."""
        return self.path / "remycc.json"

    @property
    def remycc_dna(self) -> Path:
        """The same in the reference tool's format."""
        return self.path / "remycc.dna"

    @property
    def first_table(self) -> Path:
        """The table that the design was given to begin with; there is no file if it was none."""
        return self.path / "first.json"

    @property
    def spec(self) -> Path:
        """The specification in canonical form, with all defaults and the run's budgets."""
        return self.path / "spec.yaml"

    @property
    def provenance(self) -> Path:
        """Seed, digests and versions of what made the design."""
        return self.path / "provenance.json"

    def remove_leftovers(self) -> None:
        """Removes what a run was writing when it was killed. Raises FileError."""
        try:
            for file in (
                self.checkpoint,
                self.pareto,
                self.remycc_json,
                self.remycc_dna,
                self.first_table,
                self.spec,
                self.provenance,
            ):
                for leftover in self.path.glob(f".{file.name}.*.tmp"):
                    leftover.unlink()
        except OSError as error:
            raise FileError(f"{self.path}: cannot be written ({reason(error)})") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Makes the directory if need be, and keeps other runs out of it.

        The operating system frees the lock when this process ends, however it ends. Raises
        FileError.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise FileError(f"{self.path}: cannot be written ({reason(error)})") from error
        try:
            self._take(lock)
            yield
        finally:
            os.close(lock)

    def _take(self, lock: int) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FileError(f"{self.path} is in use by another run; wait for its end") from error
        except OSError as error:
            raise FileError(f"{self.path}: cannot be locked ({reason(error)})") from error
