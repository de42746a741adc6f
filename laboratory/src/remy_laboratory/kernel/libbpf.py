"""Loads eBPF objects with the installed libbpf.

libbpf comes with iproute2 on most machines, so that running a RemyCC needs no compiler.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, Final

from remy_farm.files import FileError

_LIBRARY: Final = "libbpf.so.1"
_BPF_F_LINK: Final = 1 << 13
_BPF_STRUCT_OPS: Final = 44
_BPF_LINK_CREATE: Final = 28
_BPF_PROG_TEST_RUN: Final = 10
_SYS_BPF: Final = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
#: The two algorithms in an exported object; only one of them is loaded.
PRIVILEGED: Final = "remy_privileged"
FOR_ALL: Final = "remy_all_users"
_VERIFY: Final = "remy_verify"
_BPF_ANY: Final = 0
_NAME_TAKEN: Final = (
    "an algorithm of this name is already loaded; stop the other 'remy-farm kernel run', or "
    "export under another name"
)


class LoadError(FileError):
    """An eBPF object cannot be loaded into this kernel; the text is one sentence."""


@cache
def _libbpf() -> Any:
    try:
        library = ctypes.CDLL(_LIBRARY, use_errno=True)
    except OSError as error:
        raise LoadError(f"{_LIBRARY} is not installed; the package libbpf1 has it") from error
    pointer = (c_void_p, [c_void_p, c_char_p])
    for name, (result, arguments) in {
        "bpf_object__open_file": (c_void_p, [c_char_p, c_void_p]),
        "bpf_object__load": (c_int, [c_void_p]),
        "bpf_object__close": (None, [c_void_p]),
        "bpf_object__find_map_by_name": pointer,
        "bpf_object__find_program_by_name": pointer,
        "bpf_program__set_autoload": (c_int, [c_void_p, ctypes.c_bool]),
        "bpf_program__fd": (c_int, [c_void_p]),
        "bpf_map__set_autocreate": (c_int, [c_void_p, ctypes.c_bool]),
        "bpf_map__set_map_flags": (c_int, [c_void_p, c_uint32]),
        "bpf_map__fd": (c_int, [c_void_p]),
        "bpf_map__attach_struct_ops": (c_void_p, [c_void_p]),
        "bpf_link__fd": (c_int, [c_void_p]),
        "bpf_obj_pin": (c_int, [c_int, c_char_p]),
        "bpf_map_get_fd_by_id": (c_int, [c_uint32]),
        "bpf_obj_get_info_by_fd": (c_int, [c_int, c_void_p, ctypes.POINTER(c_uint32)]),
        "bpf_map_lookup_elem": (c_int, [c_int, c_void_p, c_void_p]),
        "bpf_map_update_elem": (c_int, [c_int, c_void_p, c_void_p, c_uint64]),
        "libbpf_num_possible_cpus": (c_int, []),
        "libbpf_set_print": (c_void_p, [c_void_p]),
    }.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


@contextmanager
def _capture_messages() -> Iterator[list[str]]:
    """Collects the messages of libbpf, including the verifier's log."""
    messages: list[str] = []
    libc = ctypes.CDLL(None)
    libc.vsnprintf.argtypes = [c_char_p, c_size_t, c_char_p, c_void_p]

    def on_message(level: int, format_string: bytes, arguments: int) -> int:
        if level < 2:
            text = ctypes.create_string_buffer(1 << 16)
            libc.vsnprintf(text, len(text), format_string, arguments)
            messages.append(text.value.decode(errors="replace").strip())
        return 0

    library = _libbpf()
    callback = ctypes.CFUNCTYPE(c_int, c_int, c_char_p, c_void_p)(on_message)
    library.libbpf_set_print(ctypes.cast(callback, c_void_p))
    try:
        yield messages
    finally:
        library.libbpf_set_print(None)


def _check(result: int, action: str, messages: Sequence[str] = ()) -> int:
    """Returns a non-negative result. Raises LoadError with the reason for a negative one."""
    if result < 0:
        number = ctypes.get_errno() or -result
        reason = os.strerror(number)
        if number in (1, 13):
            reason += "; it needs root, or CAP_BPF with CAP_NET_ADMIN and CAP_PERFMON"
        log = "".join(f"; {line}" for line in messages[-3:])
        raise LoadError(f"{action} failed: {reason}{log}")
    return result


class LoadedObject:
    """An exported object in the kernel, whose programs and maps exist until it is closed.

    `algorithm` is PRIVILEGED or FOR_ALL; None loads only the program that replays records. Raises
    LoadError with the last lines of the verifier's log.
    """

    def __init__(self, path: Path, algorithm: str | None) -> None:
        library = self._library = _libbpf()
        self._link_fd = -1
        with _capture_messages() as messages:
            self._object = library.bpf_object__open_file(os.fsencode(path), None)
            if not self._object:
                raise LoadError(f"{path} is not an eBPF object that libbpf can read")
            try:
                for name in (PRIVILEGED, FOR_ALL):
                    self._set_map_flags(name, is_loaded=name == algorithm)
                for name in _PROGRAMS:
                    program = library.bpf_object__find_program_by_name(self._object, name.encode())
                    is_loaded = (name == _VERIFY) == (algorithm is None)
                    library.bpf_program__set_autoload(program, is_loaded)
                _check(library.bpf_object__load(self._object), f"loading {path}", messages)
                if algorithm is not None:
                    self._attach(algorithm, messages)
            except BaseException:
                self.close()
                raise

    def _find_map(self, name: str) -> int:
        find = self._library.bpf_object__find_map_by_name
        pointer: int | None = find(self._object, name.encode())
        if not pointer:
            raise LoadError(f"the object has no map {name}; export the table again")
        return pointer

    def _set_map_flags(self, name: str, *, is_loaded: bool) -> None:
        if is_loaded:
            # With a link, the kernel removes the algorithm's name when this process ends for any
            # reason.
            self._library.bpf_map__set_map_flags(self._find_map(name), _BPF_F_LINK)
        else:
            self._library.bpf_map__set_autocreate(self._find_map(name), False)

    def _attach(self, algorithm: str, messages: list[str]) -> None:
        operations = self._find_map(algorithm)
        link = self._library.bpf_map__attach_struct_ops(operations)
        if not link:
            number = ctypes.get_errno()
            raise LoadError(
                _NAME_TAKEN
                if number == 17
                else f"registering the algorithm failed: {os.strerror(number)}"
                + "".join(f"; {line}" for line in messages[-3:])
            )
        map_fd = self._library.bpf_map__fd(operations)
        self._link_fd = self._library.bpf_link__fd(link)
        if self._link_fd == map_fd:
            # libbpf before 1.2 does not create the link itself.
            attributes = (c_uint32 * 4)(map_fd, 0, _BPF_STRUCT_OPS, 0)
            link_fd = _bpf(_BPF_LINK_CREATE, attributes)
            if link_fd < 0 and ctypes.get_errno() == 17:
                raise LoadError(_NAME_TAKEN)
            self._link_fd = _check(link_fd, "registering the algorithm")

    def pin(self, path: Path) -> None:
        """Keeps the algorithm registered after this process ends, until the path is removed."""
        result = self._library.bpf_obj_pin(self._link_fd, os.fsencode(path))
        _check(result, f"pinning to {path}")

    def unregister(self) -> None:
        """Removes the algorithm's name unless it is pinned; sockets that use it keep it."""
        if self._link_fd >= 0:
            os.close(self._link_fd)
            self._link_fd = -1

    def counters_map_id(self) -> int:
        """Returns the id by which any process can open the map of counters."""
        return _map_info(self._library.bpf_map__fd(self._find_map("remy_counters")))[1]

    def replay(self, records: bytes) -> bytes:
        """Computes answers to records in the kernel (BPF_PROG_TEST_RUN); see kernel/replay.h."""
        library = self._library
        program = library.bpf_object__find_program_by_name(self._object, _VERIFY.encode())
        program_fd = library.bpf_program__fd(program)
        batches = library.bpf_map__fd(self._find_map("remy_batches"))
        key = c_uint32(0)
        record_bytes, answer_bytes, batch = 40, 24, 1024
        state_bytes = _map_info(batches)[0] - batch * (record_bytes + answer_bytes)
        state = b"\0" * state_bytes
        answers = []
        step = batch * record_bytes
        for start in range(0, len(records), step):
            part = records[start : start + step]
            # Zero records reset the state, so the state from before the padding is passed on.
            value = ctypes.create_string_buffer(
                part.ljust(step, b"\0") + b"\0" * (batch * answer_bytes) + state
            )
            update = library.bpf_map_update_elem(batches, ctypes.byref(key), value, _BPF_ANY)
            _check(update, "writing records")
            attributes = (c_uint32 * 20)()
            attributes[0] = program_fd
            _check(_bpf(_BPF_PROG_TEST_RUN, attributes), "running the arithmetic in the kernel")
            _check(
                library.bpf_map_lookup_elem(batches, ctypes.byref(key), value), "reading answers"
            )
            state = value.raw[batch * (record_bytes + answer_bytes) :][:state_bytes]
            count = len(part) // record_bytes
            answers.append(value.raw[step : step + count * answer_bytes])
        return b"".join(answers)

    def close(self) -> None:
        """Unregisters the algorithm and unloads the object."""
        self.unregister()
        if self._object:
            self._library.bpf_object__close(self._object)
            self._object = None

    def __enter__(self) -> LoadedObject:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_PROGRAMS: Final = (
    "remy_init",
    "remy_cong_control",
    "remy_set_state",
    "remy_cwnd_event",
    "remy_min_tso_segs",
    "remy_ssthresh",
    "remy_undo_cwnd",
    _VERIFY,
)


def _bpf(command: int, attributes: Any) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    number = _SYS_BPF.get(os.uname().machine)
    if number is None:
        raise LoadError(f"the number of the bpf system call on {os.uname().machine} is unknown")
    result: int = libc.syscall(number, command, ctypes.byref(attributes), ctypes.sizeof(attributes))
    return result


def _map_info(fd: int) -> tuple[int, int, int]:
    """Returns a map's value size in bytes, its id, and its maximum number of entries."""
    info = (c_uint32 * 32)()
    length = c_uint32(ctypes.sizeof(info))
    result = _libbpf().bpf_obj_get_info_by_fd(fd, ctypes.byref(info), ctypes.byref(length))
    _check(result, "reading a map's description")
    return info[3], info[1], info[4]


def read_counters(map_id: int) -> list[int]:
    """Reads a loaded algorithm's counters, summed over CPUs. Raises LoadError if it is gone."""
    library = _libbpf()
    fd = library.bpf_map_get_fd_by_id(map_id)
    _check(fd, "finding the counters")
    try:
        cpus = library.libbpf_num_possible_cpus()
        values = (c_uint64 * cpus)()
        totals = []
        for number in range(_map_info(fd)[2]):
            key = c_uint32(number)
            result = library.bpf_map_lookup_elem(fd, ctypes.byref(key), ctypes.byref(values))
            _check(result, "reading a counter")
            totals.append(sum(values))
        return totals
    finally:
        os.close(fd)


def libbpf_version() -> str:
    """Returns the version of this machine's libbpf. Raises LoadError if it is not installed."""
    function = _libbpf().libbpf_version_string
    function.restype = c_char_p
    version: bytes = function()
    return version.decode()
