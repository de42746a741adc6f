"""Robustness requirements: sets of networks on which a table must reach a score.

A requirement is a set of the league with `at_least`. Its networks and random draws are the same for
every table and are not used in any design. A certificate lists a table's results.
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
from remy_laboratory.studies.draws import Draws, Half
from remy_laboratory.studies.league import (
    Entrant,
    LeagueSet,
    NetworkResult,
    SetResult,
    network_files,
    plan_set,
    read_set,
    run_set,
    simulate_command,
)
from remy_laboratory.studies.networks import SEED
from remy_proto.v1 import rule_table_pb2
from remy_simulator import fingerprint, protocols_fingerprint

_MAX_FILE_BYTES = 1_000_000
# No table may be tuned on the networks that it must hold on.
_DRAWS = Draws(Half.JUDGING)
#: Number of the worst networks that a page lists per requirement.
_MAX_LISTED = 3


@dataclass(frozen=True)
class Requirement:
    """A set of networks, the required score, and the SHA-256 of the set's file."""

    league: LeagueSet
    at_least: float
    sha256: str


def read_requirements(folder: Path) -> list[Requirement]:
    """Reads the .yaml files of a directory, sorted by name. Raises SpecError or FileError."""
    requirements = []
    for path in sorted(folder.glob("*.yaml")):
        league = read_set(path)
        if league.at_least is None:
            raise SpecError(
                str(path), [Violation("at_least", "is missing, the score that a table must reach")]
            )
        sha256 = hashlib.sha256(read_file(path, limit=_MAX_FILE_BYTES)).hexdigest()
        requirements.append(Requirement(league, league.at_least, sha256))
    return requirements


@dataclass(frozen=True)
class Certificate:
    """A table's results on all requirements."""

    entrant: Entrant
    table_sha256: str
    """SHA-256 of the table's canonical message; equal for its .dna and .json files."""
    rules: int
    """The kind of the table's rules, a value of the enum Rules."""
    results: Sequence[tuple[Requirement, SetResult]]

    def failures(self) -> list[tuple[Requirement, list[NetworkResult]]]:
        """Returns the requirements that are not met, with the networks that fail, worst first."""
        failures = []
        for requirement, result in self.results:
            networks = sorted(result.networks, key=self.score)
            failed = [each for each in networks if self.score(each) < requirement.at_least]
            if failed:
                failures.append((requirement, failed))
        return failures

    def score(self, network: NetworkResult) -> float:
        """Returns the table's score on a network."""
        return network.scores[self.entrant.name]

    @property
    def holds(self) -> bool:
        """Whether the table meets all requirements."""
        return not self.failures()

    def sentence(self) -> str:
        """Returns the verdict as a sentence."""
        count = sum(len(result.networks) for _, result in self.results)
        name = self.entrant.name
        failures = self.failures()
        if not failures:
            return (
                f"{name} meets {wording.plural(len(self.results), 'requirement')} on "
                f"{wording.plural(count, 'network')}"
            )
        reasons = "; ".join(
            f"{requirement.league.name}: {_score_name(requirement)} is "
            f"{self.score(networks[0]):.3g} on {networks[0].name}, but must be at least "
            f"{requirement.at_least:g} ({wording.plural(len(networks), 'network')} below)"
            for requirement, networks in failures
        )
        return f"{name} is refused: {reasons}"


def _score_name(requirement: Requirement) -> str:
    return requirement.league.score.replace("_", " ")


def certify(
    requirements: Sequence[Requirement],
    entrant: Entrant,
    table: rule_table_pb2.RuleTable,
    runner: CellRunner,
    on_progress: Callable[[float], None],
) -> Certificate:
    """Simulates missing cells and certifies. `on_progress` gets the fraction of the work done."""
    plans = [plan_set(each.league, [entrant], _DRAWS, quick=False) for each in requirements]
    total = sum(runner.weight(plan.batches) for plan in plans) or 1.0
    results = [
        (requirement, run_set(plan, runner, lambda done: on_progress(done / total)))
        for requirement, plan in zip(requirements, plans, strict=True)
    ]
    message = table.SerializeToString(deterministic=True)
    return Certificate(entrant, hashlib.sha256(message).hexdigest(), table.rules, results)


# Output.


def certificate_dict(certificate: Certificate) -> dict[str, Any]:
    """Returns the certificate as a JSON object: requirements, simulator versions and results.

    Its last key `sha256` is the digest of the JSON text without that key.
    """
    fields: dict[str, Any] = {
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
                "seconds": result.seconds,
                "networks_drawn": result.drawn_from,
                "runs": list(range(result.runs)),
                "networks": [
                    {
                        "network": network.name,
                        "score": certificate.score(network),
                        "holds": certificate.score(network) >= requirement.at_least,
                    }
                    for network in result.networks
                ],
            }
            for requirement, result in certificate.results
        ],
    }
    return fields | {"sha256": hashlib.sha256(certificate_text(fields).encode()).hexdigest()}


def certificate_text(fields: dict[str, Any]) -> str:
    """Returns the text of certificate.json."""
    return json.dumps(fields, indent=2, allow_nan=False) + "\n"


def certificate_files(certificate: Certificate) -> dict[str, str]:
    """Returns the certificate's files by path: certificate.json, certificate.html, and the networks
    with links that the page's commands name."""
    fields = certificate_dict(certificate)
    name = certificate.entrant.name
    return {
        **network_files([result for _, result in certificate.results], [name]),
        "certificate.json": certificate_text(fields),
        "certificate.html": _page(certificate, fields),
    }


def _page(certificate: Certificate, fields: dict[str, Any]) -> str:
    """Returns a self-contained HTML page."""
    failed = {requirement.league.name for requirement, _ in certificate.failures()}
    sections = [
        "<h1>Certificate of robustness</h1>",
        wording.paragraph(f"{certificate.sentence()}.", "lead"),
        wording.table(
            "Requirements and results",
            ("requirement", "score", "met", "lowest", "required", "networks", "below"),
            [
                (
                    requirement.league.title,
                    _score_name(requirement),
                    "no" if requirement.league.name in failed else "yes",
                    f"{min(map(certificate.score, result.networks)):.3g}",
                    f"{requirement.at_least:g}",
                    str(len(result.networks)),
                    str(
                        sum(
                            certificate.score(each) < requirement.at_least
                            for each in result.networks
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
        worst = sorted(result.networks, key=certificate.score)[:_MAX_LISTED]
        sections += [
            f'<h2 id="{league.name}">{wording.escape(league.title)}</h2>',
            wording.paragraph(league.about),
            wording.paragraph(
                f"Source: {league.source}. {wording.plural(result.runs, 'run')} of "
                f"{result.seconds:g} s on each network.",
                "soft",
            ),
            wording.table(
                "Networks with the lowest scores",
                ("network", "score"),
                [(network.name, f"{certificate.score(network):.3g}") for network in worst],
            ),
            wording.preformatted(
                "\n".join(simulate_command(result, certificate.entrant, each.on) for each in worst)
            ),
        ]
    sections += [
        "<h2>Seal</h2>",
        wording.paragraph(
            "Networks and random draws are the same for every table and are used in no design. The "
            f"seed {SEED} and the number of the run determine the draws. Simulating this table on "
            "these sets with a simulator of these fingerprints reproduces certificate.json exactly."
        ),
        wording.table(
            "Digests",
            ("content", "SHA-256"),
            [
                ("the table", fields["table_sha256"]),
                *(
                    (f"the set {each['set']}", each["set_sha256"])
                    for each in fields["requirements"]
                ),
                (f"the simulator {fields['simulator']}: rules", fields["rules_fingerprint"]),
                ("the simulator: protocols", fields["protocols_fingerprint"]),
                ("certificate.json before its last line", fields["sha256"]),
            ],
            text=2,
        ),
    ]
    return wording.document(title="Certificate of robustness", sections=sections)
