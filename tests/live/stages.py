"""Calls the live network's functions (simulator/src/live/live.h) natively and in WebAssembly."""

from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import wasmtime

from benchmarks.programs import ROOT
from remy_farm.remycc import read_remycc
from remy_simulator import _native

BUILT = ROOT / "library/src/remy_farm/live"
EXAMPLE = ROOT / "data/remyccs/general-purpose-delta1/remycc.json"
_DOUBLE = 8
_SIGNALS = {
    "SIGNAL_SEND_RATIO": 0,
    "SIGNAL_RTT_RATIO": 2,
    "SIGNAL_SLOW_REC_RATIO": 3,
}


class Refusal(Exception):
    """A function refused its arguments; the message is one sentence."""


class Stage(Protocol):
    """The interface of both implementations; an instance has at most one network."""

    def call(self, name: str, *arguments: float) -> int: ...

    def put(self, numbers: Sequence[float]) -> int: ...


class WasmStage:
    """The WebAssembly module that a browser runs."""

    def __init__(self) -> None:
        engine = wasmtime.Engine()
        self._store = wasmtime.Store(engine)
        self._store.set_wasi(wasmtime.WasiConfig())
        linker = wasmtime.Linker(engine)
        linker.define_wasi()
        module = wasmtime.Module.from_file(engine, str(BUILT / "simulator.wasm"))
        instance = linker.instantiate(self._store, module)
        self._exports = cast(Any, instance.exports(self._store))
        self._exports["_initialize"](self._store)

    def call(self, name: str, *arguments: float) -> int:
        try:
            return int(self._exports[f"remy_live_{name}"](self._store, *arguments) or 0)
        except wasmtime.Trap as trap:
            raise Refusal(self.text("refusal")) from trap

    def put(self, numbers: Sequence[float]) -> int:
        input_buffer = self.call("input_buffer", len(numbers))
        packed = struct.pack(f"<{len(numbers)}d", *numbers)
        self._exports["memory"].write(self._store, packed, input_buffer)
        return len(numbers)

    def text(self, name: str) -> str:
        place = self._exports[f"remy_live_{name}"](self._store)
        memory = self._exports["memory"]
        return bytes(memory.read(self._store, place, place + 4096)).split(b"\0")[0].decode()


class NativeStage:
    """The functions of the Python module. A refused call would end the process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(_native.__file__)
        self._library.remy_live_input_buffer.restype = ctypes.POINTER(ctypes.c_double)
        self._library.remy_live_samples.restype = ctypes.POINTER(ctypes.c_double)
        self._library.remy_live_digest.restype = ctypes.c_uint64
        self._library.remy_live_run.argtypes = [ctypes.c_double, ctypes.c_double]
        for name in ("add_table", "start", "change_link", "input_buffer"):
            getattr(self._library, f"remy_live_{name}").argtypes = [ctypes.c_size_t]

    def call(self, name: str, *arguments: float) -> int:
        return int(getattr(self._library, f"remy_live_{name}")(*arguments) or 0)

    def numbers(self, name: str, count: int) -> list[float]:
        """Returns the numbers that the last run has left."""
        found: list[float] = getattr(self._library, f"remy_live_{name}")()[:count]
        return found

    def put(self, numbers: Sequence[float]) -> int:
        input_buffer = self._library.remy_live_input_buffer(len(numbers))
        for place, number in enumerate(numbers):
            input_buffer[place] = number
        return len(numbers)


def table_numbers(path: Path = EXAMPLE, competition_rtt_ratio: float = 0) -> list[float]:
    """Returns a scale-free table with a path model in the form of remy_live_add_table()."""
    tree = json.loads(path.read_text(encoding="utf-8"))
    signals = [_SIGNALS[name] for name in tree["signals"]]
    constants = read_remycc(path).with_competition(competition_rtt_ratio).table.path_model
    assert constants is not None
    numbers = [1.0, tree["domain_upper"], 1, *constants, len(signals), *signals]
    for node in tree["nodes"]:
        thresholds = node.get("split", {}).get("thresholds", [])
        numbers.append(len(thresholds))
        for each in thresholds:
            numbers += [_SIGNALS[each["signal"]], each["value"]]
        if not thresholds:
            action = node["action"]
            names = ("window_multiple", "window_increment", "intersend_ms")
            numbers += [action[name] for name in names]
    return numbers


#: Indexes into the numbers of remy_live_start().
_RUNS = 10


def replay(
    stage: Stage,
    tables: Sequence[Sequence[float]],
    network: Sequence[float],
    events: Sequence[tuple[int, dict[str, Any]]],
    steps: int,
    step_ms: float = 10.0,
) -> str:
    """Replays events and returns the digests; an event happens before the step of its number."""
    first = [stage.call("add_table", stage.put(table)) for table in tables][:1]
    # A stage that was used before has earlier tables.
    runs = [each + first[0] if each >= 0 else each for each in network[_RUNS:]]
    stage.call("start", stage.put([*network[:_RUNS], *runs]))
    for step in range(steps):
        for _, event in (each for each in events if each[0] == step):
            if event["kind"] == "link":
                stage.call("change_link", stage.put(event["numbers"]))
            else:
                stage.call("switch", event["sender"], event["how"])
        stage.call("run", float((step + 1) * step_ms), float(step_ms))
    return f"{stage.call('digest') & (2**64 - 1):016x}"
