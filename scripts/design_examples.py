"""Designs a table for each example specification and keeps it in examples/remyccs.

Each table comes with the specification and seed that made it (spec.yaml), the versions
(provenance.json) and its score on networks that no design draws from (held-out.json).

    .venv/bin/python scripts/design_examples.py [--steps N] [NAME ...]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REMY_FARM = ROOT / ".venv" / "bin" / "remy-farm"
EXAMPLES = ROOT / "examples"
KEPT = ("remycc.dna", "remycc.json", "spec.yaml", "provenance.json")
# A design's own networks are named by its seed and small numbers; evaluation by this seed alone.
HELD_OUT_SEED = 20130812
HELD_OUT_SPECIMENS = 256


def main() -> None:
    """Designs the examples named on the command line, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, help="length of each design, in steps")
    parser.add_argument("names", nargs="*", metavar="NAME", help="examples, without .yaml")
    arguments = parser.parse_args()
    for name in arguments.names or _names():
        _design(name, arguments.steps)


def _names() -> list[str]:
    return sorted(path.stem for path in EXAMPLES.glob("*.yaml") if path.stem != "demo-paper")


def _design(name: str, steps: int | None) -> None:
    work = ROOT / "build" / "examples" / name
    shutil.rmtree(work, ignore_errors=True)
    work.parent.mkdir(parents=True, exist_ok=True)
    spec = EXAMPLES / f"{name}.yaml"
    arguments = ["design", str(spec), "--out", str(work), "--quiet"]
    if steps is not None:
        arguments += ["--steps", str(steps)]
    _run(arguments)
    kept = EXAMPLES / "remyccs" / name
    kept.mkdir(parents=True, exist_ok=True)
    for file in KEPT:
        shutil.copyfile(work / file, kept / file)
    scored = _run(
        [
            "evaluate",
            *("--remycc", str(kept / "remycc.dna"), "--spec", str(spec), "--json"),
            *("--specimens", str(HELD_OUT_SPECIMENS), "--seed", str(HELD_OUT_SEED)),
        ]
    )
    scores = json.loads(scored)
    (kept / "held-out.json").write_text(json.dumps(scores, indent=2) + "\n")
    print(f"{name}: {scores['score_mean']:.4f} +- {scores['score_stderr']:.4f}", flush=True)


def _run(arguments: list[str]) -> str:
    done = subprocess.run(
        [str(REMY_FARM), *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


if __name__ == "__main__":
    main()
