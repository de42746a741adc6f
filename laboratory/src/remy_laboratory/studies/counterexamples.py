"""Library call that searches for the networks where a table loses most against a protocol."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from remy_farm.analysis import wording
from remy_farm.analysis.wording import estimate_fields, format_estimate
from remy_farm.api.scoring import local_evaluator
from remy_farm.api.showing import Rows, Tabular, rows_of
from remy_farm.api.spec import Spec
from remy_farm.api.table import Table
from remy_farm.files import write_file
from remy_farm.specification import spec_from_tree
from remy_farm.specification.checking import check_single_table
from remy_farm.specification.senders import SenderSpec, parse_sender
from remy_laboratory.studies.attack import (
    Attack,
    AttackEffort,
    AttackResult,
    AttackSpace,
    attack_yaml,
    read_attack_file,
)
from remy_proto.v1 import evaluation_pb2
from remy_simulator import registry
from remy_simulator.registry import Registry

_DEFAULT_RIVAL: Final = "cubic,variant=linux"


class CounterExamples(Tabular):
    """Networks on which a table scores worse than a protocol, worst first.

    They are measured with other random draws than those of the search.
    """

    def __init__(
        self, result: AttackResult, space: AttackSpace, table: Table, against: str, seed: int
    ) -> None:
        """Wraps a result; `attack` returns one."""
        self.result = result
        #: The rival protocol.
        self.against = against
        self.seed = seed
        self.table = table
        self._space = space

    @property
    def table_sha256(self) -> str:
        """SHA-256 of the table's message; equal for the .dna and .json files of a table."""
        message = self.table.remycc.to_message().SerializeToString(deterministic=True)
        return hashlib.sha256(message).hexdigest()

    def rows(self) -> Rows:
        """Returns a row per network with the loss and both scores, each with standard error.

        The loss is the protocol's score minus the table's.
        """
        kinds: dict[str, type] = {"network": str}
        rows: list[dict[str, Any]] = [{"network": each.name} for each in self.result.networks]
        for name in ("loss", "score", "rival_score"):
            kinds |= {f"{name}_mean": float, f"{name}_standard_error": float}
            for row, each in zip(rows, self.result.networks, strict=True):
                value = getattr(each, name)
                row[f"{name}_mean"] = None if value is None else value.mean
                row[f"{name}_standard_error"] = None if value is None else value.standard_error
        return rows_of(kinds, rows)

    def to_dict(self) -> dict[str, Any]:
        """Returns the result as `remy-farm attack --json` prints it."""
        return {
            "table_sha256": self.table_sha256,
            "against": self.against,
            **estimate_fields(self.result.spread, "first_round_loss_mean"),
            "networks": [
                {
                    "network": each.name,
                    **estimate_fields(each.loss, "loss_mean"),
                    **estimate_fields(each.score),
                    **estimate_fields(each.rival_score, "rival_score_mean"),
                }
                for each in self.result.networks
            ],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the networks as YAML, for `attack(on=)` and `remy-farm design --harden`.

        Raises FileError.
        """
        text = attack_yaml(
            self.result,
            self._space,
            table=self.table.name,
            table_sha256=self.table_sha256,
            rival=self.against,
            seed=self.seed,
        )
        write_file(path, text)

    def __len__(self) -> int:
        return len(self.result.networks)

    def _columns_and_cells(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        cells = [
            (each.name, *map(format_estimate, (each.loss, each.score, each.rival_score)))
            for each in self.result.networks
        ]
        return ("network", "loss", "score", f"score of {self.against}"), cells

    def __repr__(self) -> str:
        return "\n".join([self._title(), *wording.aligned(*self._columns_and_cells())])

    def _repr_html_(self) -> str:
        return wording.table(self._title(), *self._columns_and_cells())

    def _title(self) -> str:
        return f"{self.table.name}: networks with the largest loss against {self.against}"


def attack(
    table: Table,
    spec: Spec,
    *,
    against: str = _DEFAULT_RIVAL,
    transport: str | evaluation_pb2.Choice | None = None,
    networks: int = 512,
    rounds: int = 8,
    runs: int = 4,
    find: int = 4,
    fresh_runs: int = 32,
    on: str | os.PathLike[str] | None = None,
    seed: int = 1,
    threads: int | None = None,
    on_round: Callable[[int, float], None] = lambda _number, _worst: None,
) -> CounterExamples:
    """Finds the networks of a specification where a table scores worst against a protocol.

    Args:
        table: The table to attack.
        spec: The specification whose networks, traffic, objective and simulated time are used.
        against: The rival, e.g. "cubic"; "omniscient" is an upper bound.
        transport: The table's transport, e.g. "tcp"; by default the specification's.
        networks: Number of networks to evaluate, over all rounds.
        rounds: Number of rounds; each searches near the worst networks so far.
        runs: Number of runs on each network.
        find: Number of networks to report.
        fresh_runs: Number of runs, with fresh random draws, on each reported network.
        on: A file from `CounterExamples.save`; skips the search and measures on its networks.
        seed: Seed of the search and of all random draws.
        threads: Number of simulation threads; by default the CPUs allowed.
        on_round: Called with the number of each finished round and the worst loss so far.

    Returns:
        The networks, worst first.

    Raises:
        SpecError: The specification designs several tables, or no quantity varies in it.
        FileError: The file `on` cannot be read.
        ValueError: A protocol or transport is unknown, or there are fewer networks than rounds.
    """
    check_single_table(spec.message, source=spec.source)
    rival = _parse_rival(against)
    for name, number in (("networks", networks), ("rounds", rounds), ("runs", runs)):
        if number < 1:
            raise ValueError(f"{name} is {number}, but must be at least 1")
    if networks < rounds:
        raise ValueError(f"networks is {networks}, but must be at least the {rounds} rounds")
    carrier = (
        registry.parse(Registry.TRANSPORT, transport) if isinstance(transport, str) else transport
    )
    space = AttackSpace(spec.message, spec.source)
    senders = evaluation_pb2.SenderGroup(transport=carrier)
    with local_evaluator(threads) as evaluator:
        message = table.remycc.to_message()
        search = Attack(space, message, senders, rival, evaluator.evaluate, seed=seed)
        if on is None:
            result = search.run(AttackEffort(networks, rounds, runs, find, fresh_runs), on_round)
        else:
            tree: Any = spec.tree
            named_specs = [
                (
                    each.pop("name"),
                    # The network replaces the specification's network and traffic.
                    spec_from_tree({**tree, **each}, os.fspath(on), files=Path(on).parent),
                )
                for each in read_attack_file(Path(on))
            ]
            result = AttackResult(None, search.measure(named_specs, fresh_runs))
    return CounterExamples(result, space, table, rival.name, seed)


def _parse_rival(text: str) -> SenderSpec:
    rival = parse_sender(text)
    if rival.remycc is not None or rival.count != 1 or rival.rtt_ms is not None:
        raise ValueError(
            f"against is {text!r}, but must be a protocol without a number of senders or an RTT"
        )
    return rival
