"""Loading eBPF by the libbpf of this machine, which iproute2 has installed nearly everywhere:
nothing is built where a RemyCC is only to run."""

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
#: The two algorithms of an exported object, of which one is loaded.
PRIVILEGED: Final = "remy_privileged"
FOR_ALL: Final = "remy_for_all"
_VERIFY: Final = "remy_verify"
_ANY: Final = 0


class LoadError(FileError):
    """Something that keeps an object out of this kernel; one sentence."""


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
def _told() -> Iterator[list[str]]:
    """What libbpf says meanwhile, the log of the verifier included."""
    said: list[str] = []
    libc = ctypes.CDLL(None)
    libc.vsnprintf.argtypes = [c_char_p, c_size_t, c_char_p, c_void_p]

    def listen(level: int, form: bytes, arguments: int) -> int:
        if level < 2:
            text = ctypes.create_string_buffer(1 << 16)
            libc.vsnprintf(text, len(text), form, arguments)
            said.append(text.value.decode(errors="replace").strip())
        return 0

    library = _libbpf()
    callback = ctypes.CFUNCTYPE(c_int, c_int, c_char_p, c_void_p)(listen)
    library.libbpf_set_print(ctypes.cast(callback, c_void_p))
    try:
        yield said
    finally:
        library.libbpf_set_print(None)


def _checked(result: int, what: str, said: Sequence[str] = ()) -> int:
    if result < 0:
        number = ctypes.get_errno() or -result
        because = os.strerror(number)
        if number in (1, 13):
            because += "; root, or CAP_BPF with CAP_NET_ADMIN and CAP_PERFMON, is needed"
        raise LoadError(f"{what} failed: {because}" + "".join(f"; {line}" for line in said[-3:]))
    return result


class LoadedObject:
    """An exported object in the kernel; its programs and maps are there until it is closed.

    `algorithm` is PRIVILEGED or FOR_ALL, or None to load only what answers records. Raises
    LoadError, with the verifier's last words.
    """

    def __init__(self, path: Path, algorithm: str | None) -> None:
        library = self._library = _libbpf()
        self._link_fd = -1
        with _told() as said:
            self._object = library.bpf_object__open_file(os.fsencode(path), None)
            if not self._object:
                raise LoadError(f"{path} is no eBPF object that libbpf can read")
            try:
                for name in (PRIVILEGED, FOR_ALL):
                    self._map_flags(name, is_wanted=name == algorithm)
                for name in _PROGRAMS:
                    program = library.bpf_object__find_program_by_name(self._object, name.encode())
                    is_wanted = (name == _VERIFY) == (algorithm is None)
                    library.bpf_program__set_autoload(program, is_wanted)
                _checked(library.bpf_object__load(self._object), f"loading {path}", said)
                if algorithm is not None:
                    self._attach(algorithm, said)
            except BaseException:
                self.close()
                raise

    def _map(self, name: str) -> int:
        found: int | None = self._library.bpf_object__find_map_by_name(self._object, name.encode())
        if not found:
            raise LoadError(f"the object has no map {name}; export the table again")
        return found

    def _map_flags(self, name: str, *, is_wanted: bool) -> None:
        if is_wanted:
            # With a link, the algorithm's name goes when this process does, however it ends.
            self._library.bpf_map__set_map_flags(self._map(name), _BPF_F_LINK)
        else:
            self._library.bpf_map__set_autocreate(self._map(name), False)

    def _attach(self, algorithm: str, said: list[str]) -> None:
        operations = self._map(algorithm)
        link = self._library.bpf_map__attach_struct_ops(operations)
        if not link:
            number = ctypes.get_errno()
            raise LoadError(
                "the name is taken by an algorithm that is loaded already; end the other "
                "'remy-farm kernel run', or export under another name"
                if number == 17
                else f"registering the algorithm failed: {os.strerror(number)}"
                + "".join(f"; {line}" for line in said[-3:])
            )
        map_fd = self._library.bpf_map__fd(operations)
        self._link_fd = self._library.bpf_link__fd(link)
        if self._link_fd == map_fd:
            # A libbpf before 1.2 has only made it ready.
            attributes = (c_uint32 * 4)(map_fd, 0, _BPF_STRUCT_OPS, 0)
            made = _bpf(_BPF_LINK_CREATE, attributes)
            if made < 0 and ctypes.get_errno() == 17:
                raise LoadError(
                    "the name is taken by an algorithm that is loaded already; end the other "
                    "'remy-farm kernel run', or export under another name"
                )
            self._link_fd = _checked(made, "registering the algorithm")

    def pin(self, path: Path) -> None:
        """Keeps the algorithm registered after this process, until the path is removed."""
        done = self._library.bpf_obj_pin(self._link_fd, os.fsencode(path))
        _checked(done, f"pinning to {path}")

    def unregister(self) -> None:
        """Takes the algorithm's name away, unless it is pinned; sockets that have it keep it."""
        if self._link_fd >= 0:
            os.close(self._link_fd)
            self._link_fd = -1

    def counters_map_id(self) -> int:
        """By which any process finds the counters."""
        return _map_info(self._library.bpf_map__fd(self._map("remy_counters")))[1]

    def replay(self, records: bytes) -> bytes:
        """Answers records in the kernel (BPF_PROG_TEST_RUN); see kernel/replay.h."""
        library = self._library
        program = library.bpf_object__find_program_by_name(self._object, _VERIFY.encode())
        program_fd = library.bpf_program__fd(program)
        batches = library.bpf_map__fd(self._map("remy_batches"))
        key = c_uint32(0)
        record_bytes, answer_bytes, batch = 40, 24, 1024
        state_bytes = _map_info(batches)[0] - batch * (record_bytes + answer_bytes)
        state = b"\0" * state_bytes
        answers = []
        step = batch * record_bytes
        for start in range(0, len(records), step):
            part = records[start : start + step]
            # Records of zeros begin anew, which the next batch's state is spared.
            value = ctypes.create_string_buffer(
                part.ljust(step, b"\0") + b"\0" * (batch * answer_bytes) + state
            )
            update = library.bpf_map_update_elem(batches, ctypes.byref(key), value, _ANY)
            _checked(update, "writing records")
            attributes = (c_uint32 * 20)()
            attributes[0] = program_fd
            _checked(_bpf(_BPF_PROG_TEST_RUN, attributes), "running the arithmetic in the kernel")
            _checked(
                library.bpf_map_lookup_elem(batches, ctypes.byref(key), value), "reading answers"
            )
            state = value.raw[batch * (record_bytes + answer_bytes) :][:state_bytes]
            count = len(part) // record_bytes
            answers.append(value.raw[step : step + count * answer_bytes])
        return b"".join(answers)

    def close(self) -> None:
        """Unregisters and unloads."""
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
        raise LoadError(f"bpf(2) has no known number on {os.uname().machine}")
    result: int = libc.syscall(number, command, ctypes.byref(attributes), ctypes.sizeof(attributes))
    return result


def _map_info(fd: int) -> tuple[int, int, int]:
    """Bytes of a value, the id, and the number of entries of a map."""
    info = (c_uint32 * 32)()
    length = c_uint32(ctypes.sizeof(info))
    done = _libbpf().bpf_obj_get_info_by_fd(fd, ctypes.byref(info), ctypes.byref(length))
    _checked(done, "reading a map's description")
    return info[3], info[1], info[4]


def read_counters(map_id: int) -> list[int]:
    """The counters of a loaded algorithm, summed over CPUs. Raises LoadError if it is gone."""
    library = _libbpf()
    fd = library.bpf_map_get_fd_by_id(map_id)
    _checked(fd, "finding the counters")
    try:
        cpus = library.libbpf_num_possible_cpus()
        values = (c_uint64 * cpus)()
        found = []
        for number in range(_map_info(fd)[2]):
            key = c_uint32(number)
            done = library.bpf_map_lookup_elem(fd, ctypes.byref(key), ctypes.byref(values))
            _checked(done, "reading a counter")
            found.append(sum(values))
        return found
    finally:
        os.close(fd)


def libbpf_version() -> str:
    """The version of this machine's libbpf. Raises LoadError if there is none."""
    function = _libbpf().libbpf_version_string
    function.restype = c_char_p
    found: bytes = function()
    return found.decode()
