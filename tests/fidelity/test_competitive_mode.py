"""The flagship with a competitive mode: beside others that fill queues, alone, and in crowds."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.programs import REMY_FARM, ROOT, run_json
from remy_laboratory.kernel.measuring import jain

_FLAGSHIP = ROOT / "data" / "remyccs" / "generalist-remembering" / "remycc.json"
_CUBIC = "cubic,variant=linux"


@pytest.fixture(scope="module")
def competes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The flagship with a competitive mode."""
    target = tmp_path_factory.mktemp("competes") / "competes.json"
    subprocess.run([REMY_FARM, "convert", _FLAGSHIP, target, "--compete", "1.2"], check=True)
    return target


def _simulate(
    *senders: str, rate_mbps: float, rtt_ms: float, seconds: float = 60, bdp: float | None = None
) -> dict[str, Any]:
    flags = [f"--sender={each}" for each in senders]
    if bdp is not None:
        flags.append(f"--set=buffer.bdp={bdp}")
    return run_json(
        *(REMY_FARM, "simulate"),
        *flags,
        *(f"--rate-mbps={rate_mbps}", f"--rtt-ms={rtt_ms}", f"--seconds={seconds}"),
        *("--starts-apart-ms=2000", "--transport=tcp,variant=linux", "--seed=1"),
    )


def _throughputs_mbps(result: dict[str, Any]) -> list[float]:
    return [each["throughput_mbps"] for each in result["senders"]]


@pytest.mark.parametrize("bdp", [1, 4])
@pytest.mark.parametrize(("rate_mbps", "rtt_ms"), [(12, 40), (48, 20), (48, 80), (96, 30)])
def test_it_has_a_share_beside_a_cubic_flow_that_was_there_first(
    rate_mbps: float, rtt_ms: float, bdp: float, competes: Path
) -> None:
    network = {"rate_mbps": rate_mbps, "rtt_ms": rtt_ms, "bdp": bdp}
    cubic, own = _throughputs_mbps(_simulate(_CUBIC, f"remycc:{competes}", **network))
    assert own >= 0.2 * rate_mbps
    assert cubic >= 0.2 * rate_mbps
    _, shipped = _throughputs_mbps(_simulate(_CUBIC, f"remycc:{_FLAGSHIP}", **network))
    assert shipped <= own / 2


@pytest.mark.parametrize(
    ("rate_mbps", "rtt_ms", "bdp"), [(50, 40, 2), (50, 40, 1), (100, 30, 4), (20, 80, 2)]
)
def test_beside_four_cubic_flows_it_has_half_to_one_and_a_half_of_a_fair_share(
    rate_mbps: float, rtt_ms: float, bdp: float, competes: Path
) -> None:
    throughputs = _throughputs_mbps(
        _simulate(f"{_CUBIC}=4", f"remycc:{competes}", rate_mbps=rate_mbps, rtt_ms=rtt_ms, bdp=bdp)
    )
    assert 0.5 <= throughputs[-1] / (sum(throughputs) / 5) <= 1.5


@pytest.mark.parametrize("bdp", [None, 1])
def test_alone_it_is_as_without_the_mode(bdp: float | None, competes: Path) -> None:
    with_mode, without = (
        _throughputs_mbps(_simulate(f"remycc:{file}", rate_mbps=30, rtt_ms=50, bdp=bdp))
        for file in (competes, _FLAGSHIP)
    )
    assert with_mode == without


def test_a_crowd_of_its_like_keeps_its_queue_short(competes: Path) -> None:
    result = _simulate(f"remycc:{competes}=16", rate_mbps=50, rtt_ms=60, seconds=110)
    assert jain(_throughputs_mbps(result)) >= 0.9
    assert all(each["rtt_p50_ms"] <= 1.4 * 60 for each in result["senders"])
