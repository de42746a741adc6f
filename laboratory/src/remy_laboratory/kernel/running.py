"""Runs exported algorithms in this kernel, and restores the previous settings afterwards.

The settings are restored even if the process that holds the algorithm is killed, by the next start.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from remy_farm.files import FileError, read_file
from remy_laboratory.kernel.libbpf import FOR_ALL, PRIVILEGED, LoadedObject, read_counters
from remy_laboratory.kernel.linux import OBJECT, compile_ebpf, read_manifest

#: Directory of the records of running algorithms, from which a later start cleans up.
RECORD_DIR: Final = Path(os.environ.get("REMY_FARM_KERNEL_STATES", "/run/remy-farm/kernel"))
_SYSCTL: Final = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_AVAILABLE: Final = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_MAX_RECORD_BYTES: Final = 1 << 20
_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_COUNTERS_AFTER_RULES: Final = (
    "acks",
    "clamped_windows",
    "timeouts",
    "idle_restarts",
    "app_limited_acks",
    "acks_of_retransmissions",
    "sockets",
)


class RunError(FileError):
    """An algorithm cannot be run or used; the text is one sentence."""


@dataclass(frozen=True)
class Scope:
    """The sockets that use an algorithm besides those that select it by name.

    With `is_default`, all new sockets of this machine or of the namespace `netns`; with `route`,
    those with this route.
    """

    netns: str | None = None
    route: str | None = None
    is_default: bool = False

    @property
    def needs_for_all(self) -> bool:
        """Whether unprivileged use must be allowed, as Linux requires for a namespace's default."""
        return self.netns is not None and self.is_default


@dataclass(frozen=True)
class RunRecord:
    """The record of a run, written before any change so that a later process can undo it."""

    name: str
    pid: int
    started: str
    rules: int
    counters_map: int
    netns: str | None
    route: str | None
    is_default: bool
    default_before: str | None
    route_before: str | None
    pin: str | None

    @property
    def is_alive(self) -> bool:
        """Whether the process that holds the algorithm still runs, or its pin exists."""
        if self.pin is not None:
            return Path(self.pin).exists()
        return _start_ticks(self.pid) == self.started


def _start_ticks(pid: int) -> str:
    """Returns a process's start time, in ticks since boot; empty if it does not run.

    The start time distinguishes the process from later processes with the same id.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def ip(*arguments: str, netns: str | None = None) -> str:
    """Runs iproute2's `ip`, in a namespace if one is given, and returns its output.

    Raises RunError.
    """
    prefix = [] if netns is None else ["-n", netns]
    try:
        result = subprocess.run(
            ["ip", *prefix, *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise RunError("ip is not installed; install the package iproute2") from error
    if result.returncode:
        raise RunError(f"'ip {shlex.join([*prefix, *arguments])}' failed: {result.stderr.strip()}")
    return result.stdout.strip()


def _default_algorithm(netns: str | None, value: str | None = None) -> str:
    """Sets the default algorithm if `value` is given, and returns the default."""
    if netns is None:
        if value is not None:
            _SYSCTL.write_text(value)
        return _SYSCTL.read_text().strip()
    script = f"cat {_SYSCTL}" if value is None else f"echo {value} > {_SYSCTL} && cat {_SYSCTL}"
    return ip("netns", "exec", netns, "sh", "-c", script)


def _find_route(scope: Scope) -> str:
    """Returns the route to the scope's prefix as `ip route` prints it. Raises RunError."""
    assert scope.route is not None
    lines = ip("route", "show", "exact", scope.route, netns=scope.netns).splitlines()
    if len(lines) != 1:
        raise RunError(f"there are {len(lines)} routes to {scope.route}, but exactly one is needed")
    if "congctl" in lines[0].split():
        raise RunError(f"the route to {scope.route} already names an algorithm")
    return lines[0].strip()


def _restore(state: RunRecord) -> None:
    """Restores the default and the route, unless they have been changed since."""
    if state.is_default and state.default_before is not None:
        with suppress(OSError, FileError):
            if _default_algorithm(state.netns) == state.name:
                _default_algorithm(state.netns, state.default_before)
    if state.route_before is not None and state.route is not None:
        with suppress(FileError):
            current = ip("route", "show", "exact", state.route, netns=state.netns)
            if f"congctl {state.name}" in current:
                ip("route", "change", *state.route_before.split(), netns=state.netns)


def _record_path(name: str) -> Path:
    return RECORD_DIR / f"{name}.json"


def _write_record(state: RunRecord) -> None:
    """Writes the record atomically. The temporary file's name identifies the process, so that a
    later start can remove it if the process is killed."""
    RECORD_DIR.mkdir(parents=True, exist_ok=True)
    unfinished = RECORD_DIR / f".{state.name}.{state.pid}.{state.started}.tmp"
    unfinished.write_text(json.dumps(asdict(state)))
    unfinished.replace(_record_path(state.name))


def run_records() -> Iterator[RunRecord]:
    """Yields the records of all runs, including those whose process has ended."""
    for path in sorted(RECORD_DIR.glob("*.json")):
        try:
            yield RunRecord(**json.loads(read_file(path, limit=_MAX_RECORD_BYTES)))
        except (ValueError, TypeError) as error:
            raise RunError(f"{path} was not written by 'remy-farm kernel run'") from error
        except FileError:
            # The run has ended and removed its record.
            continue


def clean_up() -> list[str]:
    """Undoes the changes of killed runs and returns the names of their algorithms."""
    names = []
    for path in RECORD_DIR.glob(".*.tmp"):
        pid, started = path.name.split(".")[-3:-1]
        if _start_ticks(int(pid)) != started:
            path.unlink(missing_ok=True)
    for state in run_records():
        if not state.is_alive:
            _restore(state)
            _record_path(state.name).unlink(missing_ok=True)
            names.append(state.name)
    return names


def stop_run(name: str) -> None:
    """Stops a run, or removes a pinned algorithm. Raises RunError if there is none of this name."""
    clean_up()
    for state in run_records():
        if state.name != name:
            continue
        if state.pin is None:
            with suppress(ProcessLookupError):
                os.kill(state.pid, signal.SIGTERM)
            return
        _restore(state)
        Path(state.pin).unlink(missing_ok=True)
        _record_path(name).unlink(missing_ok=True)
        return
    raise RunError(f"no algorithm {name!r} is running; see 'remy-farm kernel status'")


def run_counters(state: RunRecord) -> dict[str, Any]:
    """Returns an algorithm's counters since it was loaded: uses by rule, and others by name."""
    values = read_counters(state.counters_map)
    after = values[state.rules : state.rules + len(_COUNTERS_AFTER_RULES)]
    others = dict(zip(_COUNTERS_AFTER_RULES, after, strict=True))
    return {"uses_by_rule": values[: state.rules], **others}


@contextmanager
def running_table(
    folder: Path, scope: Scope, *, for_all: bool = False, pin: Path | None = None
) -> Iterator[RunRecord]:
    """Registers an exported algorithm and uses it as `scope` describes until the block ends.

    Then the previous default is restored and the algorithm's name is removed. With `pin`, the
    algorithm stays instead.

    Raises KernelExportError, LoadError or RunError.
    """
    manifest = read_manifest(folder)
    name = manifest["name"]
    clean_up()
    if name in _AVAILABLE.read_text().split():
        raise RunError(f"this machine already has an algorithm {name!r}")
    path = folder / OBJECT
    if not path.exists():
        compile_ebpf(folder)
    with LoadedObject(path, FOR_ALL if for_all or scope.needs_for_all else PRIVILEGED) as loaded:
        state = RunRecord(
            name=name,
            pid=os.getpid(),
            started=_start_ticks(os.getpid()),
            rules=manifest["rules"],
            counters_map=loaded.counters_map_id(),
            **asdict(scope),
            default_before=_default_algorithm(scope.netns) if scope.is_default else None,
            route_before=_find_route(scope) if scope.route else None,
            pin=None if pin is None else str(pin.absolute()),
        )
        _write_record(state)
        is_kept = False
        try:
            if pin is not None:
                loaded.pin(pin)
            if scope.is_default:
                _default_algorithm(scope.netns, name)
            if state.route_before is not None:
                arguments = [*state.route_before.split(), "congctl", name]
                ip("route", "change", *arguments, netns=scope.netns)
            is_kept = pin is not None
            yield state
        except PermissionError as error:
            raise RunError(f"{name} cannot become the default: {error.strerror}") from error
        finally:
            if not is_kept:
                _restore(state)
                if pin is not None:
                    pin.unlink(missing_ok=True)
                _record_path(name).unlink(missing_ok=True)


@contextmanager
def hold_signals() -> Iterator[Callable[[], None]]:
    """Holds SIGTERM, SIGINT and SIGHUP during the block, and yields a function that waits for one.

    The function also returns if a signal came earlier. Use it in the main thread only. The signals
    are blocked, which child processes inherit. They also have handlers, because a signal without a
    handler would end the process through the threads of libraries, in which it is not blocked.
    """
    received: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, _: received.append(number))
        for number in _SIGNALS
    }
    blocked_before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)

    def wait() -> None:
        # If another thread takes the signal, its handler runs between two calls of sigtimedwait.
        while not received and signal.sigtimedwait(_SIGNALS, 1) is None:
            pass

    try:
        yield wait
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked_before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
