"""The live network in WebAssembly gives the native simulator's digests and is up to date."""

from __future__ import annotations

import gzip
import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

from remy_simulator import signals
from scripts import live_page
from tests.live.stages import BUILT, NativeStage, Refusal, WasmStage, replay, table_numbers

MOST_WASM_BYTES = 338_000
MOST_PAGE_BYTES = 500_000  # compressed, without the simulator
#: A link of 12 Mbit/s and 80 ms with a drop-tail queue of 100 packets.
LINK = [1.0, 80.0, 100.0, 0.0, 1.0]
TRAFFIC = [0.0, 1000.0, 1000.0]


def switched_on(senders: int, how: int = 1) -> list[tuple[int, dict[str, Any]]]:
    return [(0, {"kind": "switch", "sender": sender, "how": how}) for sender in range(senders)]


def both(network: list[float], events: list[tuple[int, dict[str, Any]]], steps: int) -> list[str]:
    return [
        replay(stage, [table_numbers()], network, events, steps)
        for stage in (WasmStage(), NativeStage())
    ]


def protocols() -> list[str]:
    return [line.split("\t")[0] for line in WasmStage().text("protocols").splitlines()]


@pytest.mark.parametrize(
    ("number", "name"), [(i, name) for i, name in enumerate(protocols()) if name != "xcp"]
)
def test_protocol_beside_a_remycc_has_the_native_digest(number: int, name: str) -> None:
    wasm, native = both([1, *LINK, *TRAFFIC, 2, 0, -1 - number], switched_on(2), 200)
    assert wasm == native, name


def test_competing_remycc_has_the_native_digest() -> None:
    """A Cubic flow fills a queue of 600 packets, so that the RemyCC competes and loses packets."""
    link = [1.0, 80.0, 600.0, 0.0, 1.0]
    network = [1, *link, *TRAFFIC, 2, 0, -1 - protocols().index("cubic")]
    alone, wasm, native = (
        replay(stage, [table_numbers(competition_rtt_ratio=ratio)], network, switched_on(2), 3000)
        for stage, ratio in ((WasmStage(), 0), (WasmStage(), 1.1), (NativeStage(), 1.1))
    )
    assert wasm == native
    assert wasm != alone


def test_changes_during_the_run_have_the_native_digest() -> None:
    cubic = -1 - protocols().index("cubic")
    queues = WasmStage().text("queues").splitlines()
    events = switched_on(3, how=2)
    changes: list[list[float]] = [
        [0.3, 80, 100, 0],
        [2, 200, 100, 0],
        [2, 20, 10, 0],
        [2, 20, 10, 0.02],
    ]
    for step, change in enumerate(changes, start=1):
        events.append((100 * step, {"kind": "link", "numbers": [*change, 1]}))
    for queue, line in enumerate(queues):
        if not line.startswith("xcp"):
            event = {"kind": "link", "numbers": [1, 60, 60, 0.01, queue]}
            events.append((500 + 50 * queue, event))
    events.append((900, {"kind": "switch", "sender": 0, "how": 0}))
    wasm, native = both([7, *LINK, *TRAFFIC, 3, 0, cubic, 0], events, 1200)
    assert wasm == native


def test_table_of_all_signals_has_the_native_digest_on_a_link_that_changes() -> None:
    """A rule for new senders, and two that divide on utilization; telemetry comes from the link."""
    axes = range(len(signals.AXES))
    new, idle, busy = [0, 0.0, 30.0, 0.3], [0, 0.8, 25.0, 0.7], [0, 0.7, 20.0, 1.1]
    table = [1.0, 163840.0, 0, len(axes), *axes, 1, 2, 0.5, *new, 1, 8, 0.9, *idle, *busy]
    network = [1, *LINK, *TRAFFIC, 2, 0, 0]
    slower: list[float] = [0.25, 80, 100, 0.02, 1]
    events = [*switched_on(2), (150, {"kind": "link", "numbers": slower})]
    wasm, native = WasmStage(), NativeStage()
    digests = [replay(stage, [table], network, events, 400) for stage in (wasm, native)]
    assert digests[0] == digests[1]
    sender = 9 + len(axes)
    memory = native.numbers("samples", 4 + sender)[4 + 9 :]
    assert all(memory[axis] > 0 for axis in (2, 6, 8, 10)), "loss, utilization, RTTs since loss"
    assert 0.5 < memory[8] <= 1 + 1e-9


def test_different_runs_have_different_digests() -> None:
    stage = WasmStage()
    digests = {
        replay(stage, [table_numbers()], [seed, *LINK, *TRAFFIC, 1, 0], switched_on(1, 2), 300)
        for seed in (1, 2, 3)
    }
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("network", "sentence"),
    [
        ([1, 0, *LINK[1:], *TRAFFIC, 1, -1], "links[0].rate_packets_per_ms is 0.000000 but must"),
        ([1, *LINK, *TRAFFIC, 0], "the number of senders is 0.000000 but must be from 1"),
        ([1, *LINK, *TRAFFIC, 1, 3], "senders[0] runs table 3 but there are no tables"),
        ([1, *LINK[:4], 99, *TRAFFIC, 1, -1], "the queue is 99.000000 but must be"),
        ([1, *LINK, *TRAFFIC, 2, -1], "the input buffer ends before the last number"),
    ],
)
def test_invalid_network_is_refused_with_a_sentence(network: list[float], sentence: str) -> None:
    stage = WasmStage()
    with pytest.raises(Refusal) as refusal:
        stage.call("start", stage.put(network))
    assert str(refusal.value).startswith(sentence)


def test_invalid_table_is_refused_with_the_reason() -> None:
    stage = WasmStage()
    with pytest.raises(Refusal, match="intersend_ms -1; it must be a finite number not below 0"):
        stage.call("add_table", stage.put([0, 1000, 0, 1, 0, 0, 1, 1, -1]))


def test_built_files_are_small() -> None:
    assert (BUILT / "simulator.wasm").stat().st_size <= MOST_WASM_BYTES
    assert len(gzip.compress((BUILT / "page.html").read_bytes())) <= MOST_PAGE_BYTES


def test_built_files_are_up_to_date() -> None:
    assert live_page.stale() == [], "run make live-page"


def test_rebuilt_simulator_is_identical(tmp_path: Path) -> None:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("PyPI's ziglang is not installed here")
    built = tmp_path / "simulator.wasm"
    live_page.build_simulator(built)
    assert built.read_bytes() == (BUILT / "simulator.wasm").read_bytes()


def test_rebuilt_pages_are_identical(tmp_path: Path) -> None:
    if shutil.which("node") is None or not (live_page.PLAY / "node_modules").is_dir():
        pytest.skip("node, or what npm ci brings to play/, is not here")
    live_page.build_pages(tmp_path, tmp_path)
    for page in live_page.PAGES:
        assert (tmp_path / page.name).read_bytes() == page.read_bytes(), page.name
