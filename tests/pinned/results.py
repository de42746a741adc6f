"""What designs and evaluations come to: the numbers that everything else is for."""

from __future__ import annotations

import json
import re
from contextlib import chdir
from pathlib import Path
from typing import Any, Final

import remy_simulator
from remy_proto.v1 import rule_table_pb2
from remy_simulator import registry
from remy_simulator.registry import Registry
from tests.pinned.command_line import call_json
from tests.pinned.records import Record, digest, digest_of_tree

_NETWORK: Final = """\
name: tiny
edition: 1
network:
  rate_mbps: {uniform: [10, 20]}
  rtt_ms: {uniform: [20, 60]}
  senders: {integer_uniform: [1, 3]}
"""
_TROUBLED_NETWORK: Final = """\
name: troubled
edition: 1
network:
  rate_mbps: {log_uniform: [5, 50]}
  rtt_ms: {uniform: [20, 60]}
  senders: [1, 2, 4]
  buffer: {packets: {integer_uniform: [20, 200]}}
  loss_probability: [0, 0.01]
  measurement: {jitter: {exponential_mean_ms: 2}, timestamp_resolution_ms: 1}
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
_SMALL_JOINT: Final = """\
  joint:
    steps: 14
    starts: 2
    start_steps: 2
    first_split: 3
    steps_per_split: 2
    steps_per_epoch: 4
    step_size: 0.15
    validation_specimens: 8
    splits: SPLITS
"""
_JOINT: Final = """\
signals: [send_ewma, rtt_ratio]
search:
  mode: joint
  simulated_seconds: 2
""" + _SMALL_JOINT.replace("SPLITS", "orthants")
_DISAGREEMENT: Final = """\
search:
  simulated_seconds: 2
  seed: 7
""" + _SMALL_JOINT.replace("SPLITS", "disagreement")

#: Specifications whose designs take a fraction of a second, every kind of step among them. They are
#: of the first edition, whose results stay what they are.
SPECIFICATIONS: Final = {
    "paper": _NETWORK
    + _TRAFFIC
    + """\
signals: [rtt_ratio]
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
""",
    "pattern": _NETWORK
    + _TRAFFIC
    + """\
signals: [rec_ewma, rtt_ratio]
search:
  mode: pattern
  seed: 3
  simulated_seconds: 2
  pattern:
    steps: 40
    maximum_rules: 4
    race_specimens: 8
    validation_specimens: 8
""",
    "joint": _NETWORK + _TRAFFIC + _JOINT,
    "joint, disagreement": _NETWORK + _TRAFFIC + _DISAGREEMENT,
    "joint, troubled network": _TROUBLED_NETWORK + _TRAFFIC + _JOINT,
    "joint, by bytes": _NETWORK + _TRAFFIC_BY_BYTES + _JOINT,
    "joint, by packets": _NETWORK
    + _TRAFFIC
    + _JOINT.replace("steps: 14", "simulated_packets: 2000000", 1),
    "joint, wide steps": _NETWORK
    + _TRAFFIC
    + _JOINT.replace("  simulated_seconds: 2", "  simulated_seconds: 2\n  specimens: 32").replace(
        "    splits: orthants", "    splits: orthants\n    tuned_for_specimens: 16"
    ),
    "joint, four signals": _NETWORK
    + _TRAFFIC_BY_FLOW_LENGTHS
    + _JOINT.replace("[send_ewma, rtt_ratio]", "[send_ewma, rec_ewma, rtt_ratio, slow_rec_ewma]"),
}


def _of_newest_edition(text: str) -> str:
    """The same specification with the rules and the search of one that names none of them."""
    return re.sub(r"^(edition|signals): .*\n", "", text, flags=re.MULTILINE)


def _of_edition_2(text: str) -> str:
    """The same, of the edition before, whose results stay what they are."""
    return f"{text}edition: 2\n"


#: Those whose results may change while their edition is not released.
NEWEST_SPECIFICATIONS: Final = {
    **{
        name: _of_newest_edition(SPECIFICATIONS[name])
        for name in ("pattern", "joint", "joint, disagreement", "joint, troubled network")
    },
    "joint, absolute rules": _of_newest_edition(SPECIFICATIONS["joint"]) + "rules: absolute\n",
}


def read_history(path: Path) -> list[dict[str, Any]]:
    """The events of a design without what their clocks say."""
    events = []
    for line in path.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        events.append({k: v for k, v in event.items() if k not in ("wall_seconds", "cpu_seconds")})
    return events


def _line(event: dict[str, Any]) -> str:
    """One event in short: where it is, and what tells it from any other."""
    (kind,) = event.keys() - {"sequence", "step", "epoch"}
    words = [f"step {event.get('step', 0)}", kind]
    if "purpose" in event[kind]:
        words.append(event[kind]["purpose"].removeprefix("STEP_PURPOSE_").lower())
    if "score" in event[kind]:
        words.append(repr(event[kind]["score"]["mean"]))
    return " ".join([*words, digest_of_tree(event)])


def _design(folder: Path, name: str, text: str, *flags: str) -> dict[str, Any]:
    spec, out = folder / f"{name}.yaml", folder / name
    spec.write_text(text, encoding="utf-8")
    done = call_json("design", spec, "--out", out, "--quiet", *flags)
    return {
        **{key: done[key] for key in ("reason", "steps", "epochs", "rules", "gain")},
        **{
            file: digest((out / file).read_bytes())
            for file in ("remycc.dna", "remycc.json", "pareto.csv", "spec.yaml")
            if (out / file).exists()
        },
        "spec_digest": json.loads((out / "provenance.json").read_text())["spec_digest"],
        "history": [_line(event) for event in read_history(out / "progress.jsonl")],
    }


def _designs(folder: Path) -> Any:
    made = {
        name: _design(folder, name, text, "--threads", "2") for name, text in SPECIFICATIONS.items()
    }
    first = folder / "paper" / "remycc.json"
    for name in ("paper", "pattern", "joint"):
        made[f"{name}, from a table"] = _design(
            folder, f"{name}, from", SPECIFICATIONS[name], "--from", str(first), "--seed", "11"
        )
    return made


def _scale_free_designs(folder: Path, specifications: dict[str, str]) -> Any:
    found = {"fingerprint": remy_simulator.fingerprint(rule_table_pb2.RULES_SCALE_FREE)}
    return found | {
        name: _design(folder, name, text, "--threads", "2") for name, text in specifications.items()
    }


def _newest_designs(folder: Path) -> Any:
    return _scale_free_designs(folder, NEWEST_SPECIFICATIONS)


def _edition_2_designs(folder: Path) -> Any:
    second = {name: _of_edition_2(text) for name, text in NEWEST_SPECIFICATIONS.items()}
    return _scale_free_designs(folder, second)


def write_table(path: Path) -> Path:
    """Three signals, eight rules: grows below 1.2 times the RTT and shrinks above."""
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
    found: dict[str, Any] = {"fingerprint": remy_simulator.fingerprint()}
    network = "--senders 3 --rate-mbps 15 --rtt-ms 60 --on-ms 800 --off-ms 400 --seconds 20".split()
    noise = "--jitter-ms 2 --timestamp-resolution-ms 1"
    trouble = f"--buffer-packets 40 --loss-probability 0.01 {noise}".split()
    with chdir(folder):
        for of, start in networks.items():
            for by, load in traffics.items():
                Path("spec.yaml").write_text(start + load, encoding="utf-8")
                words = "--remycc eight.dna --spec spec.yaml --specimens 20 --seed 3".split()
                found[f"evaluate, {of}, {by}"] = call_json("evaluate", *words)
        found["simulate"] = call_json("simulate", "--remycc", "eight.dna", *network)
        found["simulate, troubled"] = call_json(
            "simulate", "--remycc", "eight.dna", *network, *trouble, "--seed", "9"
        )
        found["simulate, realistic"] = call_json(
            "simulate", "--remycc", "eight.dna", *network, "--measurement", "realistic"
        )
        found["benchmark-search"] = call_json(
            *("benchmark-search", "--remycc", "eight.dna", "--specimens", "8", "--delta", "0.1")
        )
    for tree in found.values():
        if isinstance(tree, dict):
            tree.pop("cpu_seconds", None)
            tree.pop("wall_seconds", None)
    return found


def _networks(folder: Path) -> Any:
    """Digests of protocols, bodies and queues in all variants, beside CUBIC where that may be."""
    write_table(folder / "eight.dna")
    network = "--rate-mbps 12 --rtt-ms 60 --buffer-packets 40 --off-ms 300 --seconds 10".split()
    network += ["--on-bytes", "150e3"]
    runs: dict[str, list[str]] = {}
    for kind in Registry:
        for entry in registry.entries(kind).values():
            for variant in entry.variants:
                what = f"{entry.name},variant={variant.name}"
                beside = ["--sender", "cubic"]
                if kind == Registry.PROTOCOL:
                    words = ["--sender", f"{what}=2", "--packet-bytes", "1260"]
                    if registry.IS_ALONE in entry.traits:
                        beside = []
                    if registry.NEEDS_XCP_ROUTER in entry.traits:
                        beside += ["--queue", "xcp", "--ack-bytes", "50"]
                elif kind == Registry.BODY:
                    words = ["--remycc", "eight.dna", "--senders", "2", "--body", what]
                else:
                    words = ["--sender", "newreno=3", "--queue", what, "--ack-bytes", "50"]
                runs[" ".join([*words, *beside])] = [*words, *beside, *network]
    with chdir(folder):
        return {name: call_json("simulate", *words)["digest"] for name, words in runs.items()}


RECORDS: Final = (
    Record("designs", _designs),
    Record("edition-2-designs", _edition_2_designs),
    Record("newest-designs", _newest_designs),
    Record("evaluations", _evaluations),
    Record("networks", _networks),
)
