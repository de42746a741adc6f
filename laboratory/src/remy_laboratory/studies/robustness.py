"""Robustness requirements: sets of networks on which a table must reach a score.

A requirement is a set of the league with `at_least` or `at_most`. Its networks and random draws are
the same for every table and are not used in any design. A certificate lists a table's results.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from remy_farm.analysis import wording
from remy_farm.files import FileError, read_file
from remy_farm.specification import SpecError, Violation
from remy_laboratory.studies.cells import CellRunner
from remy_laboratory.studies.draws import Draws, Half
from remy_laboratory.studies.league import (
    SCORE,
    Bound,
    Entrant,
    LeagueSet,
    NetworkResult,
    SetResult,
    network_files,
    plan_set,
    read_set,
    run_set,
    set_files,
    simulate_command,
)
from remy_laboratory.studies.networks import SEED
from remy_proto.v1 import rule_table_pb2
from remy_simulator import fingerprint, protocols_fingerprint

_MAX_FILE_BYTES = 1_000_000
#: The draws of requirements; no set of the league has these networks.
REQUIRED_DRAWS: Final = Draws(Half.JUDGING, seed=2)
#: Number of the worst networks that a page lists per requirement.
_MAX_LISTED = 3


@dataclass(frozen=True)
class Requirement:
    """A set of networks with bounds, and the SHA-256 of the set's files."""

    league: LeagueSet
    sha256: str

    @property
    def bounds(self) -> Sequence[Bound]:
        """Bounds on the score and on measures that each network must meet."""
        return self.league.bounds

    def holds(self, network: NetworkResult, entrant: str) -> bool:
        """Returns whether the entrant is within all bounds on a network."""
        return all(each.allows(network.value(entrant, each.quantity)) for each in self.bounds)


#: The name of all installed requirements together.
SAFE_TO_RUN: Final = "safe-to-run"


def read_requirements(folder: Path, only: Sequence[str] = ()) -> list[Requirement]:
    """Reads the requirements in a directory, or those named in `only`, sorted by name.

    SAFE_TO_RUN names all of them. Raises SpecError or FileError.
    """
    paths = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    for name in only:
        if name not in (SAFE_TO_RUN, *paths):
            raise FileError(
                f"requirement {name} does not exist; the requirements are "
                f"{', '.join(paths)}, and {SAFE_TO_RUN} for all of them"
            )
    is_all = not only or SAFE_TO_RUN in only
    requirements = []
    for path in (path for name, path in paths.items() if is_all or name in only):
        league = read_set(path)
        if not league.bounds:
            problem = "is missing, and so is at_most: what a table must reach"
            raise SpecError(str(path), [Violation("at_least", problem)])
        contents = [read_file(each, limit=_MAX_FILE_BYTES) for each in set_files(path)]
        sha256 = hashlib.sha256(b"".join(contents)).hexdigest()
        requirements.append(Requirement(league, sha256))
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

    def failures(self) -> list[tuple[Requirement, Bound, list[NetworkResult]]]:
        """Returns the bounds that are not met, with the networks that fail, worst first."""
        failures = []
        for requirement, result in self.results:
            for bound in requirement.bounds:
                failed = [
                    each
                    for each in self.worst_first(bound, result)
                    if not bound.allows(self.value(each, bound))
                ]
                if failed:
                    failures.append((requirement, bound, failed))
        return failures

    def value(self, network: NetworkResult, bound: Bound) -> float | None:
        """Returns the bounded quantity of the table on a network."""
        return network.value(self.entrant.name, bound.quantity)

    def worst_first(self, bound: Bound, result: SetResult) -> list[NetworkResult]:
        """Returns the networks, those that are farthest beyond the bound first."""
        return sorted(result.networks, key=lambda each: -bound.shortfall(self.value(each, bound)))

    def rows(self) -> list[tuple[Requirement, Bound, float | None, int, int]]:
        """Returns each bound with its worst value, the number of networks, and of those beyond."""
        return [
            (
                requirement,
                bound,
                self.value(self.worst_first(bound, result)[0], bound),
                len(result.networks),
                sum(not bound.allows(self.value(each, bound)) for each in result.networks),
            )
            for requirement, result in self.results
            for bound in requirement.bounds
        ]

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
            f"{requirement.league.name}: {quantity_name(requirement, bound)} is "
            f"{value_text(self.value(networks[0], bound))} on {networks[0].name}, but must be "
            f"{bound.words} ({wording.plural(len(networks), 'network')} beyond)"
            for requirement, bound, networks in failures
        )
        return f"{name} is refused: {reasons}"


def quantity_name(requirement: Requirement, bound: Bound) -> str:
    """Returns the name of a bounded quantity; that of the set's score for the score."""
    name = requirement.league.score if bound.quantity == SCORE else bound.quantity
    return name.replace("_", " ")


def value_text(value: float | None) -> str:
    """Returns a number with three digits."""
    return "unknown" if value is None else f"{value:.3g}"


def certify(
    requirements: Sequence[Requirement],
    entrant: Entrant,
    table: rule_table_pb2.RuleTable,
    runner: CellRunner,
    on_progress: Callable[[float], None],
) -> Certificate:
    """Simulates missing cells and certifies. `on_progress` gets the fraction of the work done."""
    plans = [plan_set(each.league, [entrant], REQUIRED_DRAWS, quick=False) for each in requirements]
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
                "bounds": [
                    {
                        "quantity": bound.quantity,
                        "at_most" if bound.is_maximum else "at_least": bound.value,
                    }
                    for bound in requirement.bounds
                ],
                "seconds": result.seconds,
                "networks_drawn": result.drawn_from,
                "runs": list(range(result.runs)),
                "networks": [
                    {
                        "network": network.name,
                        "values": {
                            bound.quantity: certificate.value(network, bound)
                            for bound in requirement.bounds
                        },
                        "holds": requirement.holds(network, certificate.entrant.name),
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
    worst = [
        (result, certificate.entrant, network.on)
        for requirement, result in certificate.results
        for network in _worst_networks(certificate, requirement, result)
    ]
    return {
        **network_files(worst),
        "certificate.json": certificate_text(fields),
        "certificate.html": _page(certificate, fields),
    }


def _worst_networks(
    certificate: Certificate, requirement: Requirement, result: SetResult
) -> list[NetworkResult]:
    """Returns the worst networks of each bound in turn, without repetitions."""
    orders = [certificate.worst_first(bound, result) for bound in requirement.bounds]
    by_name = {each.name: each for rank in zip(*orders, strict=True) for each in rank}
    return [*by_name.values()][:_MAX_LISTED]


def _page(certificate: Certificate, fields: dict[str, Any]) -> str:
    """Returns a self-contained HTML page."""
    sections = [
        "<h1>Certificate of robustness</h1>",
        wording.paragraph(f"{certificate.sentence()}.", "lead"),
        wording.table(
            "Requirements and results",
            ("requirement", "quantity", "required", "met", "worst", "networks", "beyond"),
            [
                (
                    requirement.league.title,
                    quantity_name(requirement, bound),
                    bound.words,
                    "no" if beyond else "yes",
                    value_text(worst),
                    str(networks),
                    str(beyond),
                )
                for requirement, bound, worst, networks, beyond in certificate.rows()
            ],
            text=4,
        ),
    ]
    for requirement, result in certificate.results:
        league = requirement.league
        worst = _worst_networks(certificate, requirement, result)
        sections += [
            f'<h2 id="{league.name}">{wording.escape(league.title)}</h2>',
            wording.paragraph(league.about),
            wording.paragraph(
                f"Source: {league.source}. {wording.plural(result.runs, 'run')} of "
                f"{result.seconds:g} s on each network.",
                "soft",
            ),
            wording.table(
                f"Networks with the worst values ({result.drawn_from})",
                (
                    "network",
                    *(quantity_name(requirement, bound) for bound in requirement.bounds),
                ),
                [
                    (
                        network.name,
                        *(
                            value_text(certificate.value(network, bound))
                            for bound in requirement.bounds
                        ),
                    )
                    for network in worst
                ],
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
