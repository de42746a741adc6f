"""Explains tables: their rules, the value of signals, mergeable rules, and differences."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Generic, TypeVar

from remy_farm.analysis import explained
from remy_farm.analysis.explain import (
    Difference,
    NetworkSample,
    OnProgress,
    SignalStudy,
    compare_tables,
    no_progress,
    worth_of_signals,
)
from remy_farm.analysis.merging import Merging, merge_siblings
from remy_farm.api.scoring import local_evaluator
from remy_farm.api.showing import Plot, Rows, Tabular, rows_like
from remy_farm.api.spec import Spec
from remy_farm.api.table import Table
from remy_farm.remycc import RemyCC
from remy_farm.specification import SpecError, Violation, check_single_table
from remy_proto.v1 import evaluation_pb2

_Found = TypeVar("_Found", SignalStudy, Merging, Difference)


class Explained(Tabular, Generic[_Found]):
    """The result of a study of a table, as rows and as a dictionary."""

    def __init__(self, found: _Found, tree: dict[str, Any], rows: str) -> None:
        """`tree` is the result as a dictionary, and `rows` the key of the list of rows in it."""
        self.found: _Found = found
        self._tree = tree
        self._rows = rows

    def to_dict(self) -> dict[str, Any]:
        """Returns the whole result, as `remy-farm inspect --json` prints it."""
        return dict(self._tree)

    def rows(self) -> Rows:
        """Returns a row per signal, merge or change.

        Nested keys are joined to column names such as `region.rtt_ratio.lower`.
        """
        return rows_like([dict(_flat(each)) for each in self._tree[self._rows]])

    def __repr__(self) -> str:
        rest = {key: value for key, value in self._tree.items() if key != self._rows}
        return f"Explained({len(self._tree[self._rows])} {self._rows}, {rest})"


class Explanation(Tabular):
    """An explanation of a table, with measurements on networks if there is a specification."""

    def __init__(
        self,
        table: Table,
        spec: Spec | None,
        *,
        networks: int,
        seed: int,
        threads: int | None,
        on_progress: OnProgress,
    ) -> None:
        """Is called by `explain`. Simulates nothing; methods simulate what they need."""
        self._given = table
        self._spec = spec
        self._networks = networks
        self._seed = seed
        self._threads = threads
        self._on_progress = on_progress

    @cached_property
    def table(self) -> Table:
        """The table, with the uses of its rules if there is a specification."""
        if self._spec is None:
            return self._given
        return self._given.with_uses(self._sample().trial(self._given.rule_table).rule_uses)

    def rows(self) -> Rows:
        """Returns a row per rule; see `Table.rows`."""
        return self.table.rows()

    def to_dict(self) -> dict[str, Any]:
        """Returns the rules, as `remy-farm inspect --json` prints them."""
        table = self.table
        return explained.rules_dict(table.rule_table, table.rules, table.uses)

    def plot(self) -> Plot:
        """Draws the rules; see `Table.plot`."""
        return self.table.plot()

    def signal_worth(self) -> Explained[SignalStudy]:
        """Measures the loss in score without each signal, the largest loss first.

        Raises:
            SpecError: There is no specification.
            ExplainError: The table has too many or too deep regions.
        """
        study = worth_of_signals(self._given.rule_table, self._sample(), self._on_progress)
        return Explained(study, explained.signal_worth_dict(study), "signals")

    def merged(self, *, price: float | None = None) -> Explained[Merging]:
        """Finds sibling rules that can be merged without loss, and the table after these merges.

        Args:
            price: Loss in score that is accepted per saved rule, in the objective's unit.

        Raises:
            SpecError: There is no specification.
            ExplainError: The table has too many or too deep regions.
        """
        table = self._given.rule_table
        merging = merge_siblings(table, self._sample(), self._on_progress, price)
        return Explained(merging, explained.merging_dict(table, merging), "merges")

    def merged_table(self, *, price: float | None = None) -> Table:
        """Returns the table after the merges that `merged` finds."""
        merging = self.merged(price=price).found
        return Table(RemyCC(merging.table, self._given.remycc.dna_metadata), self._given.name)

    def difference(self, other: Table) -> Explained[Difference]:
        """Finds the regions in which another table has different actions.

        With a specification it also measures the share of look-ups in them and the difference in
        score. Raises ExplainError if the tables cannot be overlaid.
        """
        sample = None if self._spec is None else self._sample()
        found = compare_tables(self._given.rule_table, other.rule_table, sample)
        return Explained(found, explained.difference_dict(found), "changes")

    def _sample(self) -> NetworkSample:
        if self._spec is None:
            problem = "is missing; it is needed to measure scores on its networks"
            raise SpecError("explain", [Violation("spec", problem)])
        spec = self._spec.message
        check_single_table(spec, source=self._spec.source)
        return NetworkSample(spec, self._seed, self._networks, self._evaluate)

    def _evaluate(
        self, request: evaluation_pb2.EvaluationRequest
    ) -> evaluation_pb2.EvaluationOutcome:
        with local_evaluator(self._threads) as evaluator:
            return evaluator.evaluate(request)

    def __repr__(self) -> str:
        return self.table.explain()

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def explain(
    table: Table,
    spec: Spec | None = None,
    *,
    networks: int = 16,
    seed: int = 1,
    threads: int | None = None,
    on_progress: OnProgress = no_progress,
) -> Explanation:
    """Explains a table: its rules as sentences and rows, and measurements with a specification.

    Args:
        table: The table to explain.
        spec: Specification of the networks on which uses and scores are measured; None: rules only.
        networks: Number of networks to draw.
        seed: Seed of the networks and of all other random draws.
        threads: Number of threads that simulate; by default one per allowed CPU.
        on_progress: Called with (part, tables done, tables in total) before each table is
            evaluated.

    Returns:
        The explanation. Its methods simulate what they need.

    Raises:
        SpecError: From methods that simulate, if the specification designs several tables.
    """
    return Explanation(
        table, spec, networks=networks, seed=seed, threads=threads, on_progress=on_progress
    )


def _flat(tree: dict[str, Any], above: str = "") -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for key, value in tree.items():
        path = f"{above}{key}"
        leaves += _flat(value, f"{path}.") if isinstance(value, dict) else [(path, value)]
    return leaves
