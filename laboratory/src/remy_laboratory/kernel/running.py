"""An algorithm at work: who uses it, what was so before, and how that comes back however the
process that holds it ends."""

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

#: Where it is written down what runs, for the next start to clean up.
STATES: Final = Path(os.environ.get("REMY_FARM_KERNEL_STATES", "/run/remy-farm/kernel"))
_SYSCTL: Final = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_AVAILABLE: Final = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_MOST_BYTES: Final = 1 << 20
_ENDS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_NAMES_AFTER_RULES: Final = (
    "acks",
    "clamped_windows",
    "timeouts",
    "idle_restarts",
    "app_limited_acks",
    "acks_of_retransmissions",
    "sockets",
)


class RunError(FileError):
    """Something that keeps an algorithm from being used; one sentence."""


@dataclass(frozen=True)
class Scope:
    """Who uses an algorithm, beside sockets that ask for it by name: all new sockets of this
    machine or of a network namespace (`is_default`), or those that a route leads."""

    netns: str | None = None
    route: str | None = None
    is_default: bool = False

    @property
    def needs_all(self) -> bool:
        """Linux lets only what everybody may use be the default of a namespace."""
        return self.netns is not None and self.is_default


@dataclass(frozen=True)
class RunRecord:
    """A run as it is written down: before anything is changed, so that it can be undone."""

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
        """Whether the process that holds the algorithm is there, or it is pinned."""
        if self.pin is not None:
            return Path(self.pin).exists()
        return _start_of(self.pid) == self.started


def _start_of(pid: int) -> str:
    """When a process started, in ticks since boot, which tells it from later ones of its number;
    empty if there is none."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return ""
    return "" if words[0] in "ZX" else words[19]


def ip(*words: str, netns: str | None = None) -> str:
    """What iproute2 prints, in a network namespace if one is named. Raises RunError."""
    prefix = [] if netns is None else ["-n", netns]
    try:
        done = subprocess.run(["ip", *prefix, *words], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise RunError("ip is not installed; the package iproute2 has it") from error
    if done.returncode:
        raise RunError(f"'ip {shlex.join([*prefix, *words])}' failed: {done.stderr.strip()}")
    return done.stdout.strip()


def _default(netns: str | None, value: str | None = None) -> str:
    """The default algorithm, after it was set to `value`."""
    if netns is None:
        if value is not None:
            _SYSCTL.write_text(value)
        return _SYSCTL.read_text().strip()
    script = f"cat {_SYSCTL}" if value is None else f"echo {value} > {_SYSCTL} && cat {_SYSCTL}"
    return ip("netns", "exec", netns, "sh", "-c", script)


def _route(scope: Scope) -> str:
    """The one route to a prefix, as `ip route` has it."""
    assert scope.route is not None
    lines = ip("route", "show", "exact", scope.route, netns=scope.netns).splitlines()
    if len(lines) != 1:
        raise RunError(f"there are {len(lines)} routes to {scope.route}; one is needed")
    if "congctl" in lines[0].split():
        raise RunError(f"the route to {scope.route} names an algorithm already")
    return lines[0].strip()


def _put_back(state: RunRecord) -> None:
    """What was so before; what somebody else has changed since is left."""
    if state.is_default and state.default_before is not None:
        with suppress(OSError, FileError):
            if _default(state.netns) == state.name:
                _default(state.netns, state.default_before)
    if state.route_before is not None and state.route is not None:
        with suppress(FileError):
            now = ip("route", "show", "exact", state.route, netns=state.netns)
            if f"congctl {state.name}" in now:
                ip("route", "change", *state.route_before.split(), netns=state.netns)


def _path(name: str) -> Path:
    return STATES / f"{name}.json"


def _write_down(state: RunRecord) -> None:
    """In one step. What a run that is killed meanwhile was writing says whose it is by its name."""
    STATES.mkdir(parents=True, exist_ok=True)
    unfinished = STATES / f".{state.name}.{state.pid}.{state.started}.tmp"
    unfinished.write_text(json.dumps(asdict(state)))
    unfinished.replace(_path(state.name))


def states() -> Iterator[RunRecord]:
    """All runs that are written down, whether alive or not."""
    for path in sorted(STATES.glob("*.json")):
        try:
            yield RunRecord(**json.loads(read_file(path, limit=_MOST_BYTES)))
        except (ValueError, TypeError) as error:
            raise RunError(f"{path} is not written by 'remy-farm kernel run'") from error
        except FileError:
            # It ended meanwhile.
            continue


def clean_up() -> list[str]:
    """Undoes what runs left that could not end by themselves; their names."""
    found = []
    for path in STATES.glob(".*.tmp"):
        pid, started = path.name.split(".")[-3:-1]
        if _start_of(int(pid)) != started:
            path.unlink(missing_ok=True)
    for state in states():
        if not state.is_alive:
            _put_back(state)
            _path(state.name).unlink(missing_ok=True)
            found.append(state.name)
    return found


def stop(name: str) -> None:
    """Ends a run, or what it pinned. Raises RunError if there is none of this name."""
    clean_up()
    for state in states():
        if state.name != name:
            continue
        if state.pin is None:
            with suppress(ProcessLookupError):
                os.kill(state.pid, signal.SIGTERM)
            return
        _put_back(state)
        Path(state.pin).unlink(missing_ok=True)
        _path(name).unlink(missing_ok=True)
        return
    raise RunError(f"no algorithm {name!r} runs here; see 'remy-farm kernel status'")


def counters(state: RunRecord) -> dict[str, Any]:
    """What an algorithm has counted since it was loaded: uses by rule, and the rest by name."""
    values = read_counters(state.counters_map)
    after = values[state.rules : state.rules + len(_NAMES_AFTER_RULES)]
    rest = dict(zip(_NAMES_AFTER_RULES, after, strict=True))
    return {"uses_by_rule": values[: state.rules], **rest}


@contextmanager
def running_table(
    folder: Path, scope: Scope, *, for_all: bool = False, pin: Path | None = None
) -> Iterator[RunRecord]:
    """The algorithm of an exported folder, registered and used as `scope` says until the end; what
    was the default before is so again before its name goes. With `pin` it stays.

    Raises KernelExportError, LoadError or RunError.
    """
    manifest = read_manifest(folder)
    name = manifest["name"]
    clean_up()
    if name in _AVAILABLE.read_text().split():
        raise RunError(f"this machine has an algorithm {name!r} already")
    path = folder / OBJECT
    if not path.exists():
        compile_ebpf(folder)
    with LoadedObject(path, FOR_ALL if for_all or scope.needs_all else PRIVILEGED) as loaded:
        state = RunRecord(
            name=name,
            pid=os.getpid(),
            started=_start_of(os.getpid()),
            rules=manifest["rules"],
            counters_map=loaded.counters_map_id(),
            **asdict(scope),
            default_before=_default(scope.netns) if scope.is_default else None,
            route_before=_route(scope) if scope.route else None,
            pin=None if pin is None else str(pin.absolute()),
        )
        _write_down(state)
        is_kept = False
        try:
            if pin is not None:
                loaded.pin(pin)
            if scope.is_default:
                _default(scope.netns, name)
            if state.route_before is not None:
                words = [*state.route_before.split(), "congctl", name]
                ip("route", "change", *words, netns=scope.netns)
            is_kept = pin is not None
            yield state
        except PermissionError as error:
            raise RunError(f"{name} cannot become the default: {error.strerror}") from error
        finally:
            if not is_kept:
                _put_back(state)
                if pin is not None:
                    pin.unlink(missing_ok=True)
                _path(name).unlink(missing_ok=True)


@contextmanager
def held_signals() -> Iterator[Callable[[], None]]:
    """Keeps SIGTERM, SIGINT and SIGHUP from ending this process meanwhile; what it yields returns
    once one of them has come, also one of before. To be used in the main thread.

    They are blocked here, which commands that are called inherit, and handled: libraries have
    threads of their own, by which a signal without a handler would end the process all the same.
    """
    came: list[int] = []
    handlers = {each: signal.signal(each, lambda number, _: came.append(number)) for each in _ENDS}
    blocked_before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)

    def wait() -> None:
        # Of one that another thread took, the handler is called between two waits.
        while not came and signal.sigtimedwait(_ENDS, 1) is None:
            pass

    try:
        yield wait
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked_before)
        for each, handler in handlers.items():
            signal.signal(each, handler)
