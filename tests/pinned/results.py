"""Records the results of designs, evaluations and simulations as digests."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path
from typing import Any, Final

import remy_simulator
from benchmarks.programs import ROOT
from remy_proto.v1 import rule_table_pb2
from remy_simulator import registry
from remy_simulator.registry import Registry
from tests.pinned.command_line import call_json
from tests.pinned.records import Record, digest, digest_of_json

_NETWORK: Final = """\
name: tiny
network:
  rate_mbps: {uniform: [10, 20]}
  rtt_ms: {uniform: [20, 60]}
  senders: {integer_uniform: [1, 3]}
"""
_TROUBLED_NETWORK: Final = """\
name: troubled
network:
  rate_mbps: {log_uniform: [5, 50]}
  rtt_ms: {uniform: [20, 60]}
  senders: [1, 2, 4]
  buffer: {packets: {integer_uniform: [20, 200]}}
  loss_probability: [0, 0.01]
  measurement: {jitter: {exponential_mean_ms: 2}, timestamp_resolution_ms: 1}
"""
_TWO_TABLES: Final = """\
name: pair
network:
  rate_mbps: {uniform: [10, 20]}
  rtt_ms: {uniform: [20, 60]}
  senders:
  - {design: quick, count: [1, 2], objective: {delta: 0.1}}
  - {design: gentle, objective: {delta: 10}}
"""
_BESIDE_CUBIC: Final = """\
name: company
models:
- network:
    rate_mbps: {uniform: [10, 20]}
    rtt_ms: {uniform: [20, 60]}
    buffer: {packets: 60}
    senders: [{design: remycc, transport: tcp, count: [1, 2]}, {protocol: cubic, weight: 0}]
    traffic: {exponential_time: {mean_ms: 500}, mean_off_ms: 500}
- weight: 2
  network:
    links: [{rate_mbps: {uniform: [10, 20]}, delay_ms: 10, buffer: {packets: 40}, queue: codel}]
    rtt_ms: 20
    senders: [{design: remycc, transport: tcp, count: 2}]
    traffic: {exponential_time: {mean_ms: 500}, mean_off_ms: 500}
"""
_TRAFFIC: Final = """\
  traffic:
    exponential_time: {mean_ms: 500}
    mean_off_ms: 500
"""
_TRAFFIC_BY_BYTES: Final = """\
  traffic:
    exponential_bytes: {mean_bytes: 100000}
    mean_off_ms: 200
objective: {alpha: 1.5, beta: 0.7, delta: 0.3, throughput: on_time, minimum_on_ms: 10}
"""
_TRAFFIC_BY_FLOW_LENGTHS: Final = """\
  traffic:
    flow_lengths: {maximum_bytes: 1e7}
    mean_off_ms: 200
"""
_PAPER: Final = """\
search:
  mode: paper
  simulated_seconds: 2
  paper:
    epochs_per_split: 1
    validation_specimens: 8
    window_increment: {first_step: 20, steps: 1}
    window_multiple: {steps: 0}
    intersend_ms: {first_step: 1, steps: 1}
stop: {epochs: 3}
"""
_PATTERN: Final = """\
search:
  mode: pattern
  seed: 3
  simulated_seconds: 2
  pattern:
    steps: 40
    maximum_rules: 4
    race_specimens: 8
    validation_specimens: 8
"""
_JOINT: Final = """\
search:
  mode: joint
  simulated_seconds: 2
  joint:
    steps: 14
    starts: 2
    start_steps: 2
    first_split: 3
    steps_per_split: 2
    steps_per_epoch: 4
    step_size: 0.15
    validation_specimens: 8
"""
_ABSOLUTE: Final = "rules: absolute\n"
_TWO_SIGNALS: Final = "signals: [send_ewma, rtt_ratio]\n"

#: Specifications whose designs take a fraction of a second; together they have every kind of step.
SPECIFICATIONS: Final = {
    "paper": _NETWORK + _TRAFFIC + _PAPER + "signals: [rtt_ratio]\n",
    "paper, three signals": _NETWORK + _TRAFFIC + _PAPER,
    "pattern": _NETWORK + _TRAFFIC + _PATTERN,
    "pattern, absolute": _NETWORK + _TRAFFIC + _PATTERN + _ABSOLUTE,
    "joint": _NETWORK + _TRAFFIC + _JOINT,
    "joint, absolute": _NETWORK + _TRAFFIC + _JOINT + _ABSOLUTE + _TWO_SIGNALS,
    "joint, remembering": _NETWORK + _TRAFFIC + _JOINT + "rules: scale_free_remembering\n",
    "joint, disagreement": _NETWORK + _TRAFFIC + _JOINT + "    splits: disagreement\n",
    "joint, troubled network": _TROUBLED_NETWORK + _TRAFFIC + _JOINT,
    "joint, by bytes": _NETWORK + _TRAFFIC_BY_BYTES + _JOINT,
    "joint, flow lengths": _NETWORK + _TRAFFIC_BY_FLOW_LENGTHS + _JOINT,
    "joint, by packets": _NETWORK
    + _TRAFFIC
    + _JOINT.replace("steps: 14", "simulated_packets: 2000000"),
    "joint, wide steps": _NETWORK
    + _TRAFFIC
    + _JOINT.replace("mode: joint", "mode: joint\n  specimens: 32")
    + "    tuned_for_specimens: 16\n",
    "joint, steps in flight": _NETWORK + _TRAFFIC + _JOINT + "    steps_in_flight: 3\n",
    "joint, two tables": _TWO_TABLES + _TRAFFIC + _JOINT,
    "joint, beside Cubic": _BESIDE_CUBIC + _JOINT,
    "pattern, two tables": _TWO_TABLES + _TRAFFIC + _PATTERN,
}
EDITIONS: Final = (2, 3)


def read_history(path: Path) -> list[dict[str, Any]]:
    """Returns the events of a design without their times."""
    events = []
    for line in path.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        events.append({k: v for k, v in event.items() if k not in ("wall_seconds", "cpu_seconds")})
    return events


def _design(folder: Path, name: str, text: str, *flags: str) -> dict[str, Any]:
    spec, out = folder / f"{name}.yaml", folder / name
    spec.write_text(text, encoding="utf-8")
    done = call_json("design", spec, "--out", out, "--quiet", "--threads", "2", *flags)
    tables = sorted(path for path in out.glob("*") if path.name.startswith("remycc"))
    return {
        "steps": done["steps"],
        "rules": done["rules"],
        **{path.name: digest(path.read_bytes()) for path in tables},
        "history": digest_of_json(read_history(out / "progress.jsonl")),
    }


def _designs(folder: Path) -> Any:
    made: dict[str, Any] = {
        "fingerprint": remy_simulator.fingerprint(rule_table_pb2.RULES_SCALE_FREE)
    }
    for edition in EDITIONS:
        for name, text in SPECIFICATIONS.items():
            made[f"{edition}: {name}"] = _design(
                folder, f"{edition}-{name}", f"{text}edition: {edition}\n"
            )
        first = folder / f"{edition}-paper" / "remycc.json"
        for name in ("paper", "pattern, absolute", "joint, absolute"):
            text = f"{SPECIFICATIONS[name]}edition: {edition}\n"
            if "signals:" not in text:
                text += "signals: [rtt_ratio]\n"
            made[f"{edition}: {name}, from a table"] = _design(
                folder, f"{edition}-{name}-from", text, "--from", str(first), "--seed", "11"
            )
    return made


def write_table(path: Path) -> Path:
    """Writes a .dna file of eight rules over three signals; returns its path.

    The window grows while the RTT is below 1.2 times the minimum RTT and shrinks above.
    """
    grow, grow_gently, shrink = (1.0, 1.0, 0.25), (1.0, 1.0, 1.0), (0.9, 1.0, 2.0)
    table = remy_simulator.RuleTable([0, 1, 2], [([], grow)])
    table = table.split(0, [(0, 1.0), (1, 2.0), (2, 1.2)])
    path.write_bytes(
        table.with_actions([grow, grow, grow_gently, grow_gently, *[shrink] * 4]).to_dna()
    )
    return path


def _evaluations(folder: Path) -> Any:
    write_table(folder / "eight.dna")
    networks = {
        "plain": _NETWORK,
        "troubled": _TROUBLED_NETWORK,
        "realistic": f"{_NETWORK}  measurement: realistic\n",
    }
    traffics = {
        "by time": _TRAFFIC,
        "by bytes": _TRAFFIC_BY_BYTES,
        "flow lengths": _TRAFFIC_BY_FLOW_LENGTHS,
    }
    printed: dict[str, Any] = {}
    network = "--senders 3 --rate-mbps 15 --rtt-ms 60 --on-ms 800 --off-ms 400 --seconds 20".split()
    trouble = "--buffer-packets 40 --loss-probability 0.01".split()
    trouble += ["--set", "measurement.jitter.exponential_mean_ms=2"]
    trouble += ["--set", "measurement.timestamp_resolution_ms=1"]
    realistic = "--set measurement=realistic --set measurement.bunch_packets=2".split()
    with chdir(folder):
        for network_name, network_text in networks.items():
            for traffic_name, traffic_text in traffics.items():
                Path("spec.yaml").write_text(network_text + traffic_text, encoding="utf-8")
                flags = "--remycc eight.dna --spec spec.yaml --specimens 20 --seed 3".split()
                name = f"evaluate, {network_name}, {traffic_name}"
                printed[name] = call_json("evaluate", *flags)
        printed["simulate"] = call_json("simulate", "--remycc", "eight.dna", *network)
        printed["simulate, troubled"] = call_json(
            "simulate", "--remycc", "eight.dna", *network, *trouble, "--seed", "9"
        )
        printed["simulate, realistic"] = call_json(
            "simulate", "--remycc", "eight.dna", *network, *realistic
        )
        scale_free = ROOT / "data" / "remyccs" / "generalist" / "rules.json"
        Path("spec.yaml").write_text(_TROUBLED_NETWORK + _TRAFFIC, encoding="utf-8")
        flags = "--spec spec.yaml --specimens 20 --seed 3".split()
        printed["evaluate, scale-free"] = call_json("evaluate", "--remycc", scale_free, *flags)
    fingerprint = {"fingerprint": remy_simulator.fingerprint()}
    return fingerprint | {name: output["digest"] for name, output in printed.items()}


def _networks(folder: Path) -> Any:
    """Returns digests of all variants of protocols, transports and queues, mostly beside CUBIC."""
    write_table(folder / "eight.dna")
    network = "--rate-mbps 12 --rtt-ms 60 --buffer-packets 40 --off-ms 300 --seconds 10".split()
    network += ["--on-bytes", "150e3"]
    runs: dict[str, list[str]] = {}
    for kind in Registry:
        for entry in registry.entries(kind).values():
            for variant in entry.variants:
                choice = f"{entry.name},variant={variant.name}"
                beside = ["--sender", "cubic"]
                if kind == Registry.PROTOCOL:
                    flags = ["--sender", f"{choice}=2", "--set", "packet_bytes=1260"]
                    if registry.IS_ALONE in entry.traits:
                        beside = []
                    if registry.NEEDS_XCP_ROUTER in entry.traits:
                        beside += ["--queue", "xcp", "--set", "ack_bytes=50"]
                elif kind == Registry.TRANSPORT:
                    flags = ["--remycc", "eight.dna", "--senders", "2", "--transport", choice]
                else:
                    flags = ["--sender", "newreno=3", "--queue", choice, "--set", "ack_bytes=50"]
                runs[" ".join([*flags, *beside])] = [*flags, *beside, *network]
    with chdir(folder):
        return {name: call_json("simulate", *flags)["digest"] for name, flags in runs.items()}


RECORDS: Final = (
    Record("designs", _designs),
    Record("evaluations", _evaluations),
    Record("networks", _networks),
)
