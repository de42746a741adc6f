"""Designs a table for each example specification and stores it in data/remyccs.

Beside each table are its specification and seed (spec.yaml), the versions (provenance.json) and its
score on networks that no design uses (held-out.json). With several seeds, the table with the best
score on another set of fresh networks is kept. Designs run in build/examples; an interrupted design
is resumed, and a finished one is not repeated.

    .venv/bin/python scripts/design_examples.py [--set PATH=VALUE ...] [--seeds K,L,...] [NAME ...]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from remy_farm.driver.directory import OutDirectory
from remy_farm.specification import load_spec, load_tree, spec_from_tree, to_yaml, vary
from remy_farm.specification.models import designed_tables
from remy_farm.specification.reading import read_yaml

ROOT = Path(__file__).resolve().parent.parent
REMY_FARM = ROOT / ".venv" / "bin" / "remy-farm"
EXAMPLES = ROOT / "examples"
BUILD = ROOT / "build" / "examples"
# The .dna format has no scale-free rules, so that few designs have such a file.
KEPT = ("remycc*.json", "remycc*.dna", "spec.yaml", "provenance.json")
# No design draws the networks of this seed: the key of a design's random streams has small counters
# beside its seed, and the key of an evaluation's streams is its seed alone.
HELD_OUT_SEED = 20130812
HELD_OUT_SPECIMENS = 256
# The best of several scores is biased upwards: the networks that choose a table differ from those
# of its published score.
CHOICE_SEED = HELD_OUT_SEED + 1


def main() -> None:
    """Designs the examples named on the command line, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="change a key of the specification, for example search.joint.steps=3600",
    )
    parser.add_argument(
        "--seeds", default="1", metavar="K,L,...", help="keep the best table of these"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="examples, without .yaml")
    arguments = parser.parse_args()
    for name in arguments.names or _names():
        folders = [_design(name, seed, arguments.settings) for seed in arguments.seeds.split(",")]
        _keep(name, _best(name, folders))


def _names() -> list[str]:
    return sorted(path.stem for path in EXAMPLES.glob("*.yaml") if path.stem != "demo-paper")


def _design(name: str, seed: str, settings: Sequence[str]) -> Path:
    """Returns the finished design's folder."""
    tree = load_tree(EXAMPLES / f"{name}.yaml")
    for setting in (*settings, f"search.seed={seed}"):
        path, _, value = setting.partition("=")
        tree = vary(tree, path, read_yaml(value, "--set"), source="--set")
    folder = BUILD / name / f"seed-{seed}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    spec = folder.with_suffix(".yaml")
    spec.write_text(to_yaml(spec_from_tree(tree, "--set", files=EXAMPLES)))
    resume = ["--resume"] if (folder / "checkpoint.bin").exists() else []
    _run("design", str(spec), "--out", str(folder), *resume, "--quiet")
    return folder


def _best(name: str, folders: Sequence[Path]) -> Path:
    if len(folders) == 1:
        return folders[0]
    return max(folders, key=lambda each: float(_scores(name, each, CHOICE_SEED)["score_mean"]))


def _keep(name: str, design: Path) -> None:
    kept = ROOT / "data" / "remyccs" / name
    kept.mkdir(parents=True, exist_ok=True)
    for pattern in KEPT:
        for old in kept.glob(pattern):
            old.unlink()
        for file in design.glob(pattern):
            shutil.copyfile(file, kept / file.name)
    scores = _scores(name, kept, HELD_OUT_SEED)
    (kept / "held-out.json").write_text(json.dumps(scores, indent=2) + "\n")
    mean, error = scores["score_mean"], scores["score_stderr"]
    print(f"{name}, {design.name}: {mean:.4f} +- {error:.4f}", flush=True)


def _scores(name: str, folder: Path, seed: int) -> dict[str, Any]:
    spec = load_spec(EXAMPLES / f"{name}.yaml")
    tables = [OutDirectory(folder).table_file(spec, table) for table in designed_tables(spec)]
    scores: dict[str, Any] = json.loads(
        _run(
            "evaluate",
            *(f"--remycc={table}" for table in tables),
            *("--spec", str(EXAMPLES / f"{name}.yaml"), "--json"),
            *("--specimens", str(HELD_OUT_SPECIMENS), "--seed", str(seed)),
        )
    )
    return scores


def _run(*arguments: str) -> str:
    done = subprocess.run(
        [str(REMY_FARM), *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


if __name__ == "__main__":
    main()
