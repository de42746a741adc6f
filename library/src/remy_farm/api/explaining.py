"""Explaining: what a table's rules do, what signals are worth, which rules can be done without."""

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
    unheard,
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
    """The findings about a table, as rows and as JSON."""

    def __init__(self, found: _Found, tree: dict[str, Any], rows: str) -> None:
        """Wraps findings and their JSON tree, whose key `rows` holds the rows."""
        self.found: _Found = found
        self._tree = tree
        self._rows = rows

    def to_dict(self) -> dict[str, Any]:
        """All of it, as `remy-farm inspect --json` prints it."""
        return dict(self._tree)

    def rows(self) -> Rows:
        """A row for each signal, merge or change; what stands below a key has it in its name, as
        `region.rtt_ratio.lower`."""
        return rows_like([dict(_flat(each)) for each in self._tree[self._rows]])

    def __repr__(self) -> str:
        told = {key: value for key, value in self._tree.items() if key != self._rows}
        return f"Explained({len(self._tree[self._rows])} {self._rows}, {told})"


class Explanation(Tabular):
    """A table, on networks that are drawn from a specification where there is one."""

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
        """Wraps a table for `explain`. Nothing is simulated before a method needs it."""
        self._given = table
        self._spec = spec
        self._networks = networks
        self._seed = seed
        self._threads = threads
        self._on_progress = on_progress

    @cached_property
    def table(self) -> Table:
        """The table, with how often each rule is used where there are networks."""
        if self._spec is None:
            return self._given
        return self._given.with_uses(self._sample().trial(self._given.rule_table).rule_uses)

    def rows(self) -> Rows:
        """A row for each rule; see `Table.rows`."""
        return self.table.rows()

    def to_dict(self) -> dict[str, Any]:
        """The rules, as `remy-farm inspect --json` prints them."""
        table = self.table
        return explained.rules_tree(table.rule_table, table.rules, table.uses)

    def plot(self) -> Plot:
        """Draws the rules; see `Table.plot`."""
        return self.table.plot()

    def signal_worth(self) -> Explained[SignalStudy]:
        """The loss of score without each signal, the largest loss first.

        Raises:
            SpecError: There is no specification.
            ExplainError: The table's cells are too fine or too deep.
        """
        study = worth_of_signals(self._given.rule_table, self._sample(), self._on_progress)
        return Explained(study, explained.signal_worth_tree(study), "signals")

    def merged(self, *, price: float | None = None) -> Explained[Merging]:
        """Which sibling rules can be merged without loss, and the table with these merged.

        Args:
            price: What a rule must be worth to stay, in the objective's unit.

        Raises:
            SpecError: There is no specification.
            ExplainError: The table's cells are too fine or too deep.
        """
        table = self._given.rule_table
        merging = merge_siblings(table, self._sample(), self._on_progress, price)
        return Explained(merging, explained.merging_tree(table, merging), "merges")

    def merged_table(self, *, price: float | None = None) -> Table:
        """The table with these rules merged; see `merged`."""
        merging = self.merged(price=price).found
        return Table(RemyCC(merging.table, self._given.remycc.dna_metadata), self._given.name)

    def difference(self, other: Table) -> Explained[Difference]:
        """Where another table acts otherwise, and how much look-ups and score differ where there
        are networks. Raises ExplainError for tables that cannot be laid over each other."""
        sample = None if self._spec is None else self._sample()
        found = compare_tables(self._given.rule_table, other.rule_table, sample)
        return Explained(found, explained.difference_tree(found), "changes")

    def _sample(self) -> NetworkSample:
        if self._spec is None:
            problem = "is missing: scores are measured on the networks of a specification"
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
    on_progress: OnProgress = unheard,
) -> Explanation:
    """Explains a table: its rules as sentences and rows, and more on networks of a specification.

    Args:
        table: What is explained.
        spec: Whose networks rules are used on, and scores are measured on; none: rules alone.
        networks: How many networks are drawn.
        seed: Names them, and all other random draws.
        threads: Threads to simulate with; the CPUs allowed unless given.
        on_progress: Is called with (part, tables tried, tables in all) before each table that is
            tried.

    Returns:
        The explanation; what is asked of it simulates what it needs.

    Raises:
        SpecError: Only when something is simulated: the specification designs several tables.
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
