"""Tests `remy-farm simulate` without --network, and the native command `remy-simulate`."""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from remy_cli.failures import ExitCode
from remy_farm.evaluation import simulation
from remy_farm.remycc import RemyCC, write_remycc
from remy_simulator import RuleTable
from tests.children import killed_with_parent
from tests.waiting import wait_until

RunJson = Callable[..., dict[str, Any]]

BIN = Path(sys.executable).parent
NETWORK = (
    "--senders 3 --rate-mbps 12 --rtt-ms 100 --on-ms 1000 --off-ms 500 --seconds 20 --seed 7"
).split()
SENDER_KEYS = {
    "throughput_mbps",
    "throughput_equal_share_mbps",
    "delay_ms",
    "packets_received",
    "packets_lost",
    "on_ms",
}
PACKET_KEYS = {
    "loss",
    "packets_retransmitted",
    "rtt_p50_ms",
    "rtt_p95_ms",
    "rtt_p99_ms",
    "completion_p50_ms",
    "completion_p95_ms",
    "completion_p99_ms",
}


def write_paced_remycc(path: Path, intersend_ms: float) -> Path:
    """Writes a RemyCC that always sends at the same rate."""
    table = RuleTable([0], [([], (1.0, 100.0, intersend_ms))])
    write_remycc(path, RemyCC(table))
    return path


def test_json_has_the_documented_keys(run_json: RunJson, remycc_file: Path) -> None:
    output = run_json("simulate", "--remycc", remycc_file, *NETWORK)
    assert set(output) == {
        "senders",
        "throughput_over_link_rate",
        "delay_over_rtt",
        "normalized_score_per_sender",
        "senders_left_out",
        "packets_received",
        "simulated_seconds",
        "seed",
        "cpu_seconds",
        "digest",
        *PACKET_KEYS,
    }
    assert [set(sender) for sender in output["senders"]] == [SENDER_KEYS | PACKET_KEYS] * 3
    assert output["simulated_seconds"] == 20
    assert output["seed"] == 7


def test_percentiles_are_beside_the_means(run_json: RunJson, remycc_file: Path) -> None:
    flags = ["--on-bytes", 30_000, "--off-ms", 100]
    output = run_json(
        *("simulate", "--remycc", remycc_file, "--senders", 2, "--rate-mbps", 12, "--rtt-ms", 100),
        *(*flags, "--buffer-packets", 5, "--seconds", 20),
    )
    for row in (*output["senders"], output):
        assert row["rtt_p50_ms"] <= row["rtt_p95_ms"] <= row["rtt_p99_ms"]
        assert row["completion_p50_ms"] <= row["completion_p95_ms"] <= row["completion_p99_ms"]
        assert row["completion_p50_ms"] > row["rtt_p50_ms"] > 100
    lost = sum(sender["packets_lost"] for sender in output["senders"])
    assert lost > 0
    assert 0 < output["loss"] <= max(sender["loss"] for sender in output["senders"])
    first = output["senders"][0]
    assert first["delay_ms"] == pytest.approx(first["rtt_p50_ms"], rel=0.2)


def test_means_are_computed_from_the_senders(run_json: RunJson, remycc_file: Path) -> None:
    output = run_json("simulate", "--remycc", remycc_file, *NETWORK)
    shares = [sender["throughput_equal_share_mbps"] / 12 for sender in output["senders"]]
    delays = [sender["delay_ms"] / 100 for sender in output["senders"]]
    scores = [math.log2(share / delay) for share, delay in zip(shares, delays, strict=True)]
    assert output["throughput_over_link_rate"] == pytest.approx(math.fsum(shares) / 3)
    assert output["delay_over_rtt"] == pytest.approx(math.fsum(delays) / 3)
    assert output["normalized_score_per_sender"] == pytest.approx(math.fsum(scores) / 3)
    assert output["packets_received"] == sum(s["packets_received"] for s in output["senders"])


#: Maps flags of the native command to the equivalent settings.
_CLOCKS = {
    "--jitter-ms": "measurement.jitter.exponential_mean_ms",
    "--timestamp-resolution-ms": "measurement.timestamp_resolution_ms",
    "--bunch-packets": "measurement.bunch_packets",
    "--delayed-ack-ms": "measurement.delayed_ack_ms",
    "--rtt-offset-ms": "measurement.rtt_offset_maximum_ms",
    "--reordering-probability": "measurement.reordering.probability",
    "--reordering-delay-ms": "measurement.reordering.delay_ms",
}


def _settings(clocks: dict[str, Any]) -> list[str]:
    """Returns the --set options that are equivalent to flags of the native command."""
    settings = {_CLOCKS[flag]: value for flag, value in clocks.items() if flag in _CLOCKS}
    if "--measurement" in clocks:
        # The native command uses bunches of two packets.
        settings = {"measurement": "realistic", "measurement.bunch_packets": 2, **settings}
    if "--jitter-percentile-99-ms" in clocks:
        median = settings.pop(_CLOCKS["--jitter-ms"])
        settings["measurement.jitter.log_normal.median_ms"] = median
        percentile = clocks["--jitter-percentile-99-ms"]
        settings["measurement.jitter.log_normal.percentile_99_ms"] = percentile
    return [item for path, value in settings.items() for item in ("--set", f"{path}={value}")]


@pytest.mark.parametrize(
    "clocks",
    [
        {"--jitter-ms": 0.4, "--timestamp-resolution-ms": 0.3},
        {"--jitter-ms": 0.1, "--jitter-percentile-99-ms": 0.5, "--bunch-packets": 3},
        {"--measurement": "realistic"},
        {"--measurement": "realistic", "--jitter-ms": 0.4, "--delayed-ack-ms": 0},
        {"--measurement": "realistic", "--bunch-packets": 4, "--timestamp-resolution-ms": 0},
        {"--rtt-offset-ms": 2, "--reordering-probability": 0.02, "--reordering-delay-ms": 7},
    ],
    ids=str,
)
def test_native_command_gives_the_same_results(
    clocks: dict[str, Any], run_json: RunJson, tmp_path: Path
) -> None:
    fast, slow = (
        write_paced_remycc(tmp_path / "fast.dna", 0.7),
        write_paced_remycc(tmp_path / "slow.dna", 5),
    )
    shared: list[str | Path] = ["--remycc", fast, "--remycc", slow, *NETWORK]
    shared += ["--loss-probability", "0.02", "--buffer-packets", "9"]
    flags = [*shared, *(str(each) for pair in clocks.items() for each in pair)]
    native = json.loads(
        subprocess.run(
            [BIN / "remy-simulate", *flags, "--json"],
            check=True,
            capture_output=True,
            timeout=60,
        ).stdout
    )
    output = run_json("simulate", *shared, *_settings(clocks))
    assert output["digest"] == native["digest"]
    for key in native.keys() - {"cpu_seconds", "senders", "digest"}:
        assert output[key] == pytest.approx(native[key]), key
    for sender, native_sender in zip(output["senders"], native["senders"], strict=True):
        assert {key: sender[key] for key in native_sender} == pytest.approx(native_sender)


def test_native_command_reads_files_and_pipes_and_refuses_others(tmp_path: Path) -> None:
    file, pipe = write_paced_remycc(tmp_path / "file.dna", 0.7), tmp_path / "pipe"
    os.mkfifo(pipe)

    def simulate(remycc: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BIN / "remy-simulate", "--remycc", remycc, *NETWORK, "--json"],
            capture_output=True,
            text=True,
            timeout=60,
        )

    def digest(remycc: Path) -> object:
        return json.loads(simulate(remycc).stdout)["digest"]

    with ThreadPoolExecutor() as others:
        writer = others.submit(lambda: pipe.write_bytes(file.read_bytes()))
        assert digest(pipe) == digest(file)
        writer.result()
    for path, why in (
        (pipe, "is a pipe that nobody writes to"),
        (tmp_path, "is a directory, but must be a .dna file"),
        (Path("/dev/zero"), "is larger than 64 MiB, but a rule table must be smaller"),
        (tmp_path / "absent", "No such file or directory"),
    ):
        refused = simulate(path)
        assert refused.returncode == 2
        assert refused.stderr.strip().endswith(f"{path}: {why}")


def test_several_remyccs_are_assigned_in_rotation(run_json: RunJson, tmp_path: Path) -> None:
    fast, slow = (
        write_paced_remycc(tmp_path / "fast.json", 4),
        write_paced_remycc(tmp_path / "slow.json", 40),
    )
    output = run_json("simulate", "--remycc", fast, "--remycc", slow, *NETWORK)
    rates = [sender["throughput_mbps"] for sender in output["senders"]]
    assert rates[0] > 5 * rates[1]
    assert rates[2] > 5 * rates[1]


def test_seed_determines_the_draws(run_json: RunJson, remycc_file: Path) -> None:
    def digest(seed: int) -> str:
        return str(
            run_json("simulate", "--remycc", remycc_file, *NETWORK, "--seed", seed)["digest"]
        )

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


def test_means_exclude_senders_without_packets(run_json: RunJson, remycc_file: Path) -> None:
    output = run_json("simulate", "--remycc", remycc_file, *NETWORK, "--off-ms", 1e9)
    idle = {
        "throughput_mbps": 0.0,
        "throughput_equal_share_mbps": 0.0,
        "delay_ms": None,
        "packets_received": 0,
        "packets_lost": 0,
        "on_ms": 0.0,
        **dict.fromkeys(PACKET_KEYS),
        "packets_retransmitted": 0,
    }
    assert output["senders"] == [idle] * 3
    assert output["senders_left_out"] == 3
    assert output["throughput_over_link_rate"] is None
    assert output["delay_over_rtt"] is None
    assert output["normalized_score_per_sender"] is None


def test_simulation_can_be_interrupted(remycc_file: Path) -> None:
    process = subprocess.Popen(
        killed_with_parent(
            BIN / "remy-farm", "simulate", "--remycc", remycc_file, *NETWORK, "--seconds", "1e9"
        ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: is_simulating(process.pid))
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED
    assert stderr.strip() == b"remy-farm: interrupted"


def is_simulating(pid: int) -> bool:
    """Returns whether the process has used 3 s of CPU time, so that it has started to simulate."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11]
    return int(ticks) / os.sysconf("SC_CLK_TCK") >= 3


def test_text_output_has_a_row_per_sender_and_the_means(run: Any, remycc_file: Path) -> None:
    result = run("simulate", "--remycc", remycc_file, *NETWORK)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    heads = (
        "sender Mbit/s equal share Mbit/s delay ms 50 % 95 % 99 % received lost loss retransmitted "
        "on s"
    )
    assert lines[0].split() == heads.split()
    assert [line.split()[0] for line in lines[1:4]] == ["0", "1", "2"]
    assert "throughput / link rate" in result.stdout


@pytest.mark.parametrize("more", [[], ["--transport", "tcp"], ["--queue", "codel"]], ids=str)
def test_recording_gives_the_same_results_from_a_single_simulation(
    more: list[str],
    run_json: RunJson,
    remycc_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flags = ["simulate", "--remycc", remycc_file, *NETWORK, *more]
    plain = run_json(*flags)
    monkeypatch.delattr(simulation, "evaluate_columns")
    recorded = run_json(*flags, "--record", tmp_path / "rows.csv")
    for output in (plain, recorded):
        del output["cpu_seconds"]
    assert recorded == plain
