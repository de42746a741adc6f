"""Tests protocols, transports and queues on the command line."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remy_simulator import registry
from remy_simulator.registry import Registry

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "protocols.md"

RunJson = Callable[..., dict[str, Any]]

NETWORK = (
    "--rate-mbps 12 --rtt-ms 80 --off-ms 300 --buffer-packets 60 --seconds 10 --seed 7".split()
)
BY_BYTES = [*NETWORK, "--on-bytes", "200e3"]
BY_TIME = [*NETWORK, "--on-ms", "1000"]


def test_examples_of_the_protocols_page_run(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    introduction = PAGE.read_text(encoding="utf-8").partition("\n## ")[0]
    examples = re.findall(r"^ {4}remy-farm ((?:.*\\\n)*.*)$", introduction, re.MULTILINE)
    assert len(examples) == 3
    for example in examples:
        result = run(*shlex.split(example.replace("\\\n", "")))
        assert (result.exit_code, result.stderr) == (0, ""), example


def test_protocols_are_listed(run: Any, run_json: RunJson) -> None:
    output = run_json("protocols")
    assert set(output) == {"protocols", "transports", "queues"}
    assert [entry["name"] for entry in output["protocols"]] == list(
        registry.entries(Registry.PROTOCOL)
    )
    for entries in output.values():
        for entry in entries:
            assert set(entry) == {"name", "title", "variants", "traits"}
            assert entry["title"]
    listed = run("protocols").stdout
    for kind in Registry:
        for name in registry.entries(kind):
            assert name in listed


def test_results_are_printed_by_sender_and_by_kind(
    run: Any, run_json: RunJson, remycc_file: Path
) -> None:
    arguments = ("--sender", "cubic=2", "--sender", f"remycc:{remycc_file}=1", *BY_BYTES)
    output = run_json("simulate", *arguments)
    senders, kinds = output["senders"], output["kinds"]
    assert [sender["kind"] for sender in senders] == ["cubic", "cubic", f"remycc:{remycc_file}"]
    assert [sender["throughput_of"] for sender in senders] == [
        "packets_in_order",
        "packets_in_order",
        "packets_received",
    ]
    assert [(kind["kind"], kind["senders"]) for kind in kinds] == [
        ("cubic", 2),
        (f"remycc:{remycc_file}", 1),
    ]
    for name in ("retransmissions", "timeouts", "marks", "flows_completed", "packets_in_order"):
        assert kinds[0][name] == senders[0][name] + senders[1][name]
    assert set(kinds[0]) == set(senders[0]) - {"on_ms"} | {"senders"}
    cubic = senders[0]
    assert cubic["goodput_mbps"] == cubic["throughput_mbps"]
    assert cubic["packets_in_order"] <= cubic["packets_received"]
    assert cubic["flows_completed"] > 3
    assert 80 < cubic["completion_ms_median"] <= cubic["completion_ms_percentile_99"]
    for name in ("throughput_mbps", "sampled_rtt_ms", "sampled_rtt_over_time_ms"):
        assert kinds[0][name] == pytest.approx((senders[0][name] + senders[1][name]) / 2)
    assert min(cubic["sampled_rtt_ms"], cubic["sampled_rtt_over_time_ms"]) > 80
    # A sender on datagram takes no RTT samples.
    assert senders[2]["sampled_rtt_ms"] is senders[2]["sampled_rtt_over_time_ms"] is None
    text = run("simulate", *arguments).stdout
    assert "cubic" in text
    assert "completion ms" in text


def test_remycc_and_sender_options_are_equivalent(run_json: RunJson, remycc_file: Path) -> None:
    short = run_json("simulate", "--remycc", remycc_file, "--senders", 3, *BY_TIME)
    long = run_json("simulate", "--sender", f"remycc:{remycc_file}=3", *BY_TIME)
    assert set(long) - set(short) == {"kinds"}
    del long["kinds"], long["cpu_seconds"], short["cpu_seconds"]
    assert long == short


@pytest.mark.parametrize(
    "defaults",
    [
        ["--queue", "drop-tail"],
        ["--transport", "datagram"],
        ["--set", "packet_bytes=1500"],
        ["--set", "ack_bytes=0"],
        ["--queue", "drop-tail,variant=packets", "--transport", "datagram,variant=remy"],
    ],
    ids=" ".join,
)
def test_explicit_defaults_change_nothing(
    defaults: list[str], run_json: RunJson, remycc_file: Path
) -> None:
    arguments = ("simulate", "--remycc", remycc_file, "--senders", 2, *BY_TIME)
    explicit, implicit = run_json(*arguments, *defaults), run_json(*arguments)
    del explicit["cpu_seconds"], implicit["cpu_seconds"]
    assert explicit == implicit


def test_transport_and_queue_change_the_results(run_json: RunJson, remycc_file: Path) -> None:
    arguments = ("simulate", "--remycc", remycc_file, "--senders", 3, *BY_TIME)
    digests = {
        run_json(*arguments, *more)["digest"]
        for more in (
            [],
            ["--transport", "tcp"],
            ["--transport", "ns2"],
            ["--queue", "codel"],
            ["--set", "packet_bytes=1260"],
            ["--set", "ack_bytes=50"],
            ["--starts-apart-ms", "10"],
        )
    }
    assert len(digests) == 7


def test_ecn_marks_are_counted(run_json: RunJson) -> None:
    arguments = (
        "--sender",
        "dctcp=2",
        "--queue",
        "threshold-marking,threshold_packets=20",
        *BY_TIME,
    )
    (kind,) = run_json("simulate", *arguments)["kinds"]
    assert kind["marks"] > 0


def test_starts_apart_option_delays_senders(run_json: RunJson) -> None:
    arguments = ["--on-ms", "1e9", "--starts-apart-ms", "2000"]
    output = run_json("simulate", "--sender", "newreno=3", *NETWORK, *arguments)
    assert [sender["on_ms"] for sender in output["senders"]] == [10_000, 8_000, 6_000]


def test_recording_adds_up_to_the_results(run_json: RunJson, tmp_path: Path) -> None:
    file, picture = tmp_path / "run.csv", tmp_path / "run.png"
    arguments = ("--sender", "cubic=2", "--sender", "vegas", *BY_TIME)
    record = ("--record", file, "--record-every-ms", 50, "--plot", picture)
    recorded, plain = run_json("simulate", *arguments, *record), run_json("simulate", *arguments)
    assert recorded["digest"] == plain["digest"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) in (3 * 200, 3 * 201)
    assert [row["kind"] for row in rows[:3]] == ["cubic", "cubic", "vegas"]
    for number, sender in enumerate(recorded["senders"]):
        megabits = sum(
            float(row["rate_mbps"]) * 0.05 for row in rows if row["sender"] == str(number)
        )
        received = sender["packets_received"] * 0.012
        # The last interval may be shorter.
        assert received * 0.97 <= megabits <= received * (1 + 1e-9)
    assert max(int(row["queue_packets"]) for row in rows) <= 60
    assert all(float(row["rtt_ms"]) >= 80 for row in rows if row["rtt_ms"])
    windows = [float(row["window_packets"]) for row in rows if row["on"] == "True"]
    assert min(windows) >= 1


def test_recording_may_be_parquet(run_json: RunJson, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "run.parquet"
    run_json("simulate", "--sender", "newreno", *BY_TIME, "--record", file)
    table = parquet.read_table(file)
    assert table.num_rows in (1000, 1001)
    assert str(table.schema.field("queue_packets").type) == "int64"


def test_evaluate_scores_a_protocol(
    run: Any, run_json: RunJson, spec_file: Path, remycc_file: Path
) -> None:
    flags = ("--spec", spec_file, "--specimens", 12, "--seed", 5)
    outputs = [
        run_json("evaluate", "--sender", "cubic", *flags, "--threads", threads)
        for threads in (1, 2, 4)
    ]
    for output in outputs:
        del output["cpu_seconds"]
    assert outputs[0] == outputs[1] == outputs[2]
    assert outputs[0]["throughput_of"] == "packets_in_order"
    assert outputs[0]["score_mean"] is not None
    assert "in order" in run("evaluate", "--sender", "cubic", *flags).stdout
    table = run_json("evaluate", "--remycc", remycc_file, *flags)
    same = run_json("evaluate", "--sender", f"remycc:{remycc_file}", *flags)
    kernel = run_json("evaluate", "--remycc", remycc_file, "--transport", "tcp", *flags)
    assert same["digest"] == table["digest"]
    assert "throughput_of" not in table
    assert kernel["digest"] != table["digest"]
    assert kernel["throughput_of"] == "packets_in_order"
