"""Measures the web pages: packets simulated in a browser, frame rate, a list of 1,000 jobs."""

from __future__ import annotations

import base64
import itertools
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.benchmark import Benchmark, Row, Unavailable
from benchmarks.programs import ROOT
from library.tests.designer.small_joint_spec import small_joint_spec
from remy_cli.play import page_server
from remy_farm.analysis.live_page import BUILT, live_network_page
from remy_farm.remycc import read_remycc
from remy_proto.v1 import design_service_pb2 as messages
from remy_services.coordinator.farm import FarmSettings
from remy_services.jobs.progress import QueueLimits
from services.tests.coordinator.running_server import RunningServer, settings_for
from tests.live.pages import CHROMIUM, chromium
from tests.live.stages import NativeStage, WasmStage, table_numbers

_TABLE = ROOT / "data/remyccs/general-purpose-delta1/remycc.json"
#: Seed; link rate in packets of 1500 bytes per ms (100 Mbit/s); RTT in ms; buffer in packets (two
#: BDPs); loss probability.
_LINK = [1.0, 100 / 12, 80.0, 1333.0, 0.0]
#: Jitter in ms; mean on and off times in ms, which do not matter to senders switched on by hand.
_TRAFFIC = [0.0, 1000.0, 1000.0]
_SENDERS = 8
_SIMULATED_MS = 60_000.0
_ROUNDS = 7
#: Only the last run counts: a browser optimizes code that has run for a while.
_RUNS = 4
_FRAME_SECONDS = 10
_JOBS = 1000
#: Long enough for a busy machine.
_TIMEOUT_MS = 120_000
_LOADS = 5
#: Longer than the page's server keeps its subscriptions for a user who has left.
_AWAY_SECONDS = 12.0
_UI = "from remy_cli.main import main; main()"
#: A statement that makes the page's server forget the jobs as soon as nobody watches them.
_EXPIRE_AT_ONCE = "from remy_services.web import feed; feed._KEPT_SECONDS = 0.0"

# The layout of a sample: so many numbers for the link, then so many per sender, of which one, at
# index _RECEIVED, is the number of packets received.
_LINK_NUMBERS, _SENDER_NUMBERS, _RECEIVED = 4, 13, 5

_IN_THE_BROWSER = """async ([wasm, table, network, senders, untilMs, rounds]) => {
  const bytes = Uint8Array.from(atob(wasm), each => each.charCodeAt(0));
  const nothing = new Proxy({}, { get: () => () => 8 });
  const imports = { wasi_snapshot_preview1: nothing };
  const made = await WebAssembly.instantiate(await WebAssembly.compile(bytes), imports);
  const live = made.exports;
  live._initialize();
  const put = numbers => {
    const input = live.remy_live_input_buffer(numbers.length);
    new Float64Array(live.memory.buffer, input, numbers.length).set(numbers);
    return numbers.length;
  };
  live.remy_live_add_table(put(table));
  const times = [];
  for (let round = 0; round < rounds; ++round) {
    live.remy_live_start(put(network));
    for (let sender = 0; sender < senders; ++sender) live.remy_live_switch(sender, 1);
    const began = performance.now();
    live.remy_live_run(untilMs, untilMs);
    times.push((performance.now() - began) / 1000);
    await new Promise(done => setTimeout(done, 100));
  }
  return [times, BigInt.asUintN(64, live.remy_live_digest()).toString(16)];
}"""
_FRAMES = """seconds => new Promise(done => {
  const times = [];
  const frame = now => {
    times.push(now);
    if (now - times[0] < 1000 * seconds) requestAnimationFrame(frame);
    else done(times);
  };
  requestAnimationFrame(frame);
})"""
# Sets `window.interactive` when the browser has drawn the first row and is idle again.
_INTERACTIVE = """() => {
  new MutationObserver((_, watched) => {
    if (!document.querySelector("tr[data-job]")) return;
    watched.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.interactive = performance.now(); }));
  }).observe(document, { childList: true, subtree: true });
}"""


def measure() -> list[Row]:
    """Returns one row per measured quantity."""
    if CHROMIUM is None:
        raise Unavailable("Chromium is not installed (package chromium); CHROMIUM may name one.")
    with chromium() as browser:
        rows = [*_measure_packets(browser), _measure_frames(browser)]
    for evaluator in ("workers", "local"):
        with chromium() as browser:
            rows += _measure_job_list(browser, evaluator)
    return rows


def _measure_packets(browser: Any) -> Iterator[Row]:
    wasm = base64.b64encode((BUILT / "simulator.wasm").read_bytes()).decode()
    page = browser.new_page()
    queue = float(_names("queues").index("drop-tail"))
    for what, number in (("RemyCC", 0), ("cubic", -1 - _names("protocols").index("cubic"))):
        network = [*_LINK, queue, *_TRAFFIC, float(_SENDERS), *[float(number)] * _SENDERS]
        ratios, rates = [], []
        for _ in range(_ROUNDS):
            arguments = [wasm, table_numbers(_TABLE), network, _SENDERS, _SIMULATED_MS, _RUNS]
            times, digest = page.evaluate(_IN_THE_BROWSER, arguments)
            seconds, packets, native_digest = _native(network)
            assert digest.zfill(16) == native_digest
            ratios.append(seconds / times[-1])
            rates.append(packets / times[-1])
        yield {
            "what": f"packets/s, {_SENDERS} x {what}",
            "value": statistics.median(rates),
            "goal": "a third of native",
            "of native": statistics.median(ratios),
        }
    page.close()


def _names(of: str) -> list[str]:
    return [line.split("\t")[0] for line in WasmStage().text(of).splitlines()]


def _native(network: list[float]) -> tuple[float, float, str]:
    """Runs the network twice natively; returns the second run's seconds, packets and digest."""
    stage = NativeStage()
    first = stage.call("add_table", stage.put(table_numbers(_TABLE)))
    runs = [each + first if each >= 0 else each for each in network[-_SENDERS:]]
    seconds = 0.0
    for _ in range(2):
        stage.call("start", stage.put([*network[:-_SENDERS], *runs]))
        for sender in range(_SENDERS):
            stage.call("switch", sender, 1)
        began = time.perf_counter()
        stage.call("run", _SIMULATED_MS, _SIMULATED_MS)
        seconds = time.perf_counter() - began
    sample = stage.numbers("samples", _LINK_NUMBERS + _SENDERS * _SENDER_NUMBERS)
    received = sample[_LINK_NUMBERS + _RECEIVED :: _SENDER_NUMBERS]
    return seconds, sum(received), f"{stage.call('digest') & (2**64 - 1):016x}"


def _measure_frames(browser: Any) -> Row:
    server = page_server(live_network_page({"table": read_remycc(_TABLE)}), 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    page = browser.new_page(viewport={"width": 1400, "height": 880})
    page.set_default_timeout(_TIMEOUT_MS)
    page.goto(f"http://127.0.0.1:{server.server_port}/")
    page.get_by_label("Preset").select_option("Dumbbell of 8")
    rate = page.get_by_role("slider", name="Link rate")
    rate.focus()
    for _ in range(400):
        if float(rate.get_attribute("aria-valuetext").split()[0]) >= 100:
            break
        rate.press("ArrowRight")
    page.wait_for_timeout(5_000)
    times = page.evaluate(_FRAMES, _FRAME_SECONDS)
    gaps = [after - before for before, after in itertools.pairwise(times)]
    server.shutdown()
    thread.join()
    server.server_close()
    page.close()
    return {
        "what": "frames/s, 100 Mbit/s, 8 flows (median)",
        "value": 1000 / statistics.median(gaps),
        "goal": "60",
        "of native": None,
    }


def _measure_job_list(browser: Any, evaluator: str) -> Iterator[Row]:
    """Measures how fast the list of jobs loads.

    With the evaluator "local" the coordinator also simulates on this machine's CPUs; with
    "workers" it waits for workers that never come.
    """
    where = {"local": "simulating here", "workers": "simulating elsewhere"}[evaluator]
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_for(Path(folder), evaluator=evaluator)
        farm = replace(settings.farm, jobs=QueueLimits(1, 1))
        assert isinstance(farm, FarmSettings)
        with RunningServer(replace(settings, farm=farm)) as coordinator:
            client = coordinator.client()
            # The first job runs for the whole measurement; the others are queued.
            spec = small_joint_spec(
                steps=1_000_000, simulated_seconds=1, edition=2, signals="rtt_ratio"
            )
            for number in range(_JOBS):
                client.submit(spec, name=f"job-{number}")
            shown = client.call("ListJobs", messages.ListJobsRequest(page_size=_JOBS)).jobs
            assert len(shown) == _JOBS
            first_loads_ms = []
            for cache, program in (("cached", []), ("not cached", [_EXPIRE_AT_ONCE])):
                with _page_server(coordinator.address, program) as address:
                    first_ms, *loads_ms = _load_repeatedly(browser, address)
                first_loads_ms.append(first_ms)
                yield _row(
                    f"ms until a list of {_JOBS} jobs is interactive, {cache}, {where}", loads_ms
                )
            yield _row(f"ms of the first load, which signs in, {where}", first_loads_ms)


def _row(what: str, values_ms: list[float]) -> Row:
    return {"what": what, "value": statistics.median(values_ms), "goal": "300", "of native": None}


@contextmanager
def _page_server(coordinator: str, program: list[str]) -> Iterator[str]:
    """Runs `remy-farm ui`, after the statements of `program`, and yields the page's address."""
    command = [sys.executable, "-c", "; ".join([*program, _UI]), "ui", "--no-browser"]
    command += ["--coordinator", coordinator, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def _load_repeatedly(browser: Any, address: str) -> list[float]:
    """Loads the page several times in one browser; returns each load's ms until interactive."""
    context = browser.new_context()
    context.add_init_script(f"({_INTERACTIVE})()")
    loads_ms = []
    for _ in range(1 + _LOADS):
        page = context.new_page()
        page.set_default_timeout(_TIMEOUT_MS)
        page.goto(address)
        page.wait_for_function("() => window.interactive")
        loads_ms.append(page.evaluate("window.interactive"))
        page.get_by_text(f"{_JOBS} of {_JOBS} jobs").wait_for()
        page.close()
        time.sleep(_AWAY_SECONDS)
    context.close()
    return loads_ms


BENCHMARK = Benchmark(
    name="pages",
    title="The live network and the farm's page in a browser",
    method=(
        "Headless Chromium. Packets: 60 s of 8 senders on 100 Mbit/s and 80 ms, simulated "
        "alternately natively and in the browser, 7 times; each time the last of several runs "
        "counts, because a browser optimizes code that has run for a while. Values and ratios are "
        "medians; the digests are equal. Frames: intervals between the animation frames of the "
        "whole page over 10 s. Jobs: time from the navigation to the first drawn row, with 1,000 "
        "jobs at a real coordinator, of which one runs. It runs on workers elsewhere, or in the "
        "coordinator on this machine. Medians of 5 loads by a user who is signed in, 12 s apart, "
        "and of 2 first loads, which sign in. The page's server caches the jobs for ten minutes "
        "after the last user has left and refreshes them in the background; 'not cached' means "
        "that it forgets them at once."
    ),
    measure=measure,
)
