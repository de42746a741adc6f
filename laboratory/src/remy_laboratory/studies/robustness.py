"""Robustness as a gate: sets of networks apart from training, on each of which a table must have a
score, and the certificate of who has it.

A requirement is a set of the league with `at_least`. Its networks and draws are the same for every
table and in no design, so that none is chosen on them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from remy_farm.analysis import wording
from remy_farm.files import read_file
from remy_farm.specification import SpecError, Violation
from remy_laboratory.studies.cells import CellRunner
from remy_laboratory.studies.league import (
    Entrant,
    LeagueSet,
    Place,
    SetResult,
    network_files,
    plan_set,
    play_set,
    read_set,
    simulate_words,
)
from remy_laboratory.studies.networks import SEED
from remy_proto.v1 import rule_table_pb2
from remy_simulator import fingerprint, protocols_fingerprint

_LARGEST_FILE = 1_000_000
_SHOWN = 3


@dataclass(frozen=True)
class Requirement:
    """A set, the score that it asks for, and the digest of its file."""

    league: LeagueSet
    at_least: float
    sha256: str


def read_requirements(folder: Path) -> list[Requirement]:
    """The files of a folder, by name. Raises SpecError or FileError; none where there are none."""
    found = []
    for path in sorted(folder.glob("*.yaml")):
        league = read_set(path)
        if league.at_least is None:
            raise SpecError(
                str(path), [Violation("at_least", "is missing, the score that a table must have")]
            )
        content = read_file(path, limit=_LARGEST_FILE)
        found.append(Requirement(league, league.at_least, hashlib.sha256(content).hexdigest()))
    return found


@dataclass(frozen=True)
class Certificate:
    """How a table did on each requirement."""

    entrant: Entrant
    table_sha256: str
    """Of its message in canonical form: the same for a .dna and a .json file of the same table."""
    rules: int
    """The kind of its rules."""
    results: Sequence[tuple[Requirement, SetResult]]

    def failures(self) -> list[tuple[Requirement, list[Place]]]:
        """Requirements that do not hold, each with the networks where it fails, worst first."""
        found = []
        for requirement, result in self.results:
            places = sorted(result.places, key=self.score)
            failed = [place for place in places if self.score(place) < requirement.at_least]
            if failed:
                found.append((requirement, failed))
        return found

    def score(self, place: Place) -> float:
        """Of the table on a network."""
        return place.scores[self.entrant.name]

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the table."""
        return not self.failures()

    def sentence(self) -> str:
        """The verdict."""
        count = sum(len(result.places) for _, result in self.results)
        name = self.entrant.name
        failures = self.failures()
        if not failures:
            return (
                f"{name} holds {wording.several(len(self.results), 'requirement')} on "
                f"{wording.several(count, 'network')}"
            )
        reasons = "; ".join(
            f"{requirement.league.name}: {_score_words(requirement)} "
            f"{self.score(places[0]):.3g} on {places[0].name}, but must be at least "
            f"{requirement.at_least:g} ({wording.several(len(places), 'network')} below it)"
            for requirement, places in failures
        )
        return f"{name} is refused: {reasons}"


def _score_words(requirement: Requirement) -> str:
    return requirement.league.score.replace("_", " ")


def certify(
    requirements: Sequence[Requirement],
    entrant: Entrant,
    table: rule_table_pb2.RuleTable,
    runner: CellRunner,
    on_done: Callable[[float], None],
) -> Certificate:
    """Simulates what is missing. `on_done` hears which share of all is done."""
    plans = [plan_set(each.league, [entrant], quick=False) for each in requirements]
    total = sum(runner.weight(plan.batches) for plan in plans) or 1.0
    results = [
        (requirement, play_set(plan, runner, lambda done: on_done(done / total)))
        for requirement, plan in zip(requirements, plans, strict=True)
    ]
    message = table.SerializeToString(deterministic=True)
    return Certificate(entrant, hashlib.sha256(message).hexdigest(), table.rules, results)


# What is written.


def certificate_tree(certificate: Certificate) -> dict[str, Any]:
    """As JSON: what was asked, of what, by which simulator, and what came out; sealed by `sha256`,
    which is the digest of all before it."""
    tree: dict[str, Any] = {
        "table": certificate.entrant.name,
        "table_sha256": certificate.table_sha256,
        "holds": certificate.holds,
        "seed": SEED,
        "simulator": version("remy-simulator"),
        "rules_fingerprint": fingerprint(certificate.rules),
        "protocols_fingerprint": protocols_fingerprint(),
        "requirements": [
            {
                "set": requirement.league.name,
                "set_sha256": requirement.sha256,
                "score": str(requirement.league.score),
                "at_least": requirement.at_least,
                "seconds": requirement.league.seconds,
                "runs": list(range(result.runs)),
                "networks": [
                    {
                        "network": place.name,
                        "score": certificate.score(place),
                        "holds": certificate.score(place) >= requirement.at_least,
                    }
                    for place in result.places
                ],
            }
            for requirement, result in certificate.results
        ],
    }
    return tree | {"sha256": hashlib.sha256(certificate_text(tree).encode()).hexdigest()}


def certificate_text(tree: dict[str, Any]) -> str:
    """As it is written, and sealed without `sha256`."""
    return json.dumps(tree, indent=2, allow_nan=False) + "\n"


def certificate_files(certificate: Certificate) -> dict[str, str]:
    """What is written, by path: certificate.json, certificate.html, and networks of links that it
    names."""
    tree = certificate_tree(certificate)
    name = certificate.entrant.name
    return {
        **network_files([result for _, result in certificate.results], [name]),
        "certificate.json": certificate_text(tree),
        "certificate.html": _page(certificate, tree),
    }


def _page(certificate: Certificate, tree: dict[str, Any]) -> str:
    """One page that loads nothing else."""
    failed = {requirement.league.name for requirement, _ in certificate.failures()}
    sections = [
        "<h1>Certificate of robustness</h1>",
        wording.paragraph(f"{certificate.sentence()}.", "lead"),
        wording.table(
            "What was asked, and what came out",
            ("requirement", "score", "holds", "least", "must be at least", "networks", "below"),
            [
                (
                    requirement.league.title,
                    _score_words(requirement),
                    "no" if requirement.league.name in failed else "yes",
                    f"{min(map(certificate.score, result.places)):.3g}",
                    f"{requirement.at_least:g}",
                    str(len(result.places)),
                    str(
                        sum(
                            certificate.score(each) < requirement.at_least for each in result.places
                        )
                    ),
                )
                for requirement, result in certificate.results
            ],
            text=3,
        ),
    ]
    for requirement, result in certificate.results:
        league = requirement.league
        worst = sorted(result.places, key=certificate.score)[:_SHOWN]
        sections += [
            f'<h2 id="{league.name}">{wording.escape(league.title)}</h2>',
            wording.paragraph(league.about),
            wording.paragraph(
                f"Source: {league.source}. {wording.several(result.runs, 'run')} of "
                f"{league.seconds:g} s on each network.",
                "soft",
            ),
            wording.table(
                "The networks where its score is lowest",
                ("network", "score"),
                [(place.name, f"{certificate.score(place):.3g}") for place in worst],
            ),
            wording.preformatted(
                "\n".join(simulate_words(league, certificate.entrant, place) for place in worst)
            ),
        ]
    sections += [
        "<h2>Seal</h2>",
        wording.paragraph(
            "Networks and draws are the same for every table, and those of no design: a run is "
            f"named by the seed {SEED} and its number. Who simulates this table on these sets with "
            "a simulator of these fingerprints gets certificate.json with these bytes."
        ),
        wording.table(
            "Digests",
            ("what", "SHA-256"),
            [
                ("the table", tree["table_sha256"]),
                *((f"the set {each['set']}", each["set_sha256"]) for each in tree["requirements"]),
                (f"the simulator {tree['simulator']}: rules", tree["rules_fingerprint"]),
                ("the simulator: protocols", tree["protocols_fingerprint"]),
                ("certificate.json before its last line", tree["sha256"]),
            ],
            text=2,
        ),
    ]
    return wording.document(title="Certificate of robustness", sections=sections)
