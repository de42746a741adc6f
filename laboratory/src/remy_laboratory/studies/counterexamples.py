"""The search for counter-examples as a call: the networks where a table loses most."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from remy_farm.analysis import wording
from remy_farm.analysis.wording import estimate_tree, with_error
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
    AttackResult,
    Effort,
    Space,
    attack_yaml,
    read_found,
)
from remy_proto.v1 import evaluation_pb2
from remy_simulator import registry
from remy_simulator.registry import Registry

_CUBIC: Final = "cubic,variant=linux"


class CounterExamples(Tabular):
    """Networks on which a table does worse than a protocol, the worst first, measured on draws that
    they were not chosen by."""

    def __init__(
        self, result: AttackResult, space: Space, table: Table, against: str, seed: int
    ) -> None:
        """Wraps a result; call `attack` to get one."""
        self.result = result
        #: The protocol that the table is compared with.
        self.against = against
        self.seed = seed
        self.table = table
        self._space = space

    @property
    def table_sha256(self) -> str:
        """The digest of the table's message, which is the same for all files of it."""
        message = self.table.remycc.to_message().SerializeToString(deterministic=True)
        return hashlib.sha256(message).hexdigest()

    def rows(self) -> Rows:
        """A row for each network: the loss, which is the protocol's score less the table's, and
        both scores, with standard errors."""
        kinds: dict[str, type] = {"network": str}
        rows: list[dict[str, Any]] = [{"network": each.words} for each in self.result.found]
        for name in ("loss", "score", "rival_score"):
            kinds |= {f"{name}_mean": float, f"{name}_standard_error": float}
            for row, each in zip(rows, self.result.found, strict=True):
                known = getattr(each, name)
                row[f"{name}_mean"] = None if known is None else known.mean
                row[f"{name}_standard_error"] = None if known is None else known.standard_error
        return rows_of(kinds, rows)

    def to_dict(self) -> dict[str, Any]:
        """All of it, as `remy-farm attack --json` prints it."""
        return {
            "table_sha256": self.table_sha256,
            "against": self.against,
            **estimate_tree(self.result.spread, "first_round_loss_mean"),
            "networks": [
                {
                    "network": each.words,
                    **estimate_tree(each.loss, "loss_mean"),
                    **estimate_tree(each.score),
                    **estimate_tree(each.rival_score, "rival_score_mean"),
                }
                for each in self.result.found
            ],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the networks as YAML, for `attack(on=)` and `remy-farm design --harden`. Raises
        FileError."""
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
        return len(self.result.found)

    def _head_and_cells(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        cells = [
            (each.words, *map(with_error, (each.loss, each.score, each.rival_score)))
            for each in self.result.found
        ]
        return ("network", "loss", "score", f"score of {self.against}"), cells

    def __repr__(self) -> str:
        return "\n".join([self._title(), *wording.aligned(*self._head_and_cells())])

    def _repr_html_(self) -> str:
        return wording.table(self._title(), *self._head_and_cells())

    def _title(self) -> str:
        return f"{self.table.name}: where it loses most against {self.against}"


def attack(
    table: Table,
    spec: Spec,
    *,
    against: str = _CUBIC,
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
    """Finds the networks of a specification where a table loses most against a protocol.

    Args:
        table: What is attacked.
        spec: Its networks are searched, with its load, objective and simulated time.
        against: A protocol in words; "omniscient" is the bound.
        transport: What carries the table, as "tcp"; as the specification says unless given.
        networks: Networks to try in all rounds.
        rounds: Rounds, each around the worst networks so far.
        runs: Runs of each network.
        find: Networks to report.
        fresh_runs: Runs of each of these, on fresh draws.
        on: A file of `CounterExamples.save`: searches nothing, but measures on its networks.
        seed: Names the search and all draws.
        threads: Threads to simulate with; the CPUs allowed unless given.
        on_round: Is called with the number of each round that is done, and the worst loss so far.

    Returns:
        The networks, the worst first.

    Raises:
        SpecError: The specification designs several tables, or has nothing that varies.
        FileError: The file `on` cannot be read.
        ValueError: A protocol or transport is unknown, or there are fewer networks than rounds.
    """
    check_single_table(spec.message, source=spec.source)
    rival = _protocol(against)
    for name, number in (("networks", networks), ("rounds", rounds), ("runs", runs)):
        if number < 1:
            raise ValueError(f"{name} is {number}, but must be at least 1")
    if networks < rounds:
        raise ValueError(f"{networks} networks are too few for {wording.several(rounds, 'round')}")
    carrier = (
        registry.parse(Registry.TRANSPORT, transport) if isinstance(transport, str) else transport
    )
    space = Space(spec.message, spec.source)
    senders = evaluation_pb2.SenderGroup(body=carrier)
    with local_evaluator(threads) as evaluator:
        message = table.remycc.to_message()
        search = Attack(space, message, senders, rival, evaluator.evaluate, seed=seed)
        if on is None:
            result = search.run(Effort(networks, rounds, runs, find, fresh_runs), on_round)
        else:
            tree: Any = spec.tree
            named = [
                (
                    each.pop("name"),
                    # Its network and load in place of the specification's.
                    spec_from_tree({**tree, **each}, os.fspath(on), files=Path(on).parent),
                )
                for each in read_found(Path(on))
            ]
            result = AttackResult(None, search.measure(named, fresh_runs))
    return CounterExamples(result, space, table, rival.name, seed)


def _protocol(words: str) -> SenderSpec:
    found = parse_sender(words)
    if found.remycc is not None or found.count != 1 or found.rtt_ms is not None:
        raise ValueError(f"against is {words!r}, but must be a protocol, and nothing else")
    return found
