"""Rule tables (RemyCCs): loads, prints, plots and saves them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remy_farm.analysis import sentences
from remy_farm.analysis.explained import path_model_dict
from remy_farm.analysis.live_page import live_network_page
from remy_farm.analysis.wording import escape, framed, plural
from remy_farm.api.showing import Plot, Rows, Tabular, rows_of
from remy_farm.remycc import (
    ReadableRule,
    RemyCC,
    read_remycc,
    readable_rules,
    signal_name,
    to_bytes,
    write_remycc,
)
from remy_farm.shipped import shipped_table, table_name
from remy_farm.specification.schema import short_name
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable

if TYPE_CHECKING:
    from remy_farm.api.absolute import AbsoluteTable
    from remy_farm.api.spec import Spec

# Maximum number of rules shown in a notebook; `explain()` has all of them.
_MAX_SENTENCES = 12


class Table(Tabular):
    """A RemyCC: rules that map congestion signals to window and pacing. It is immutable."""

    def __init__(self, remycc: RemyCC, name: str = "RemyCC", uses: Sequence[int] = ()) -> None:
        """Is called by `load_table` and `design`.

        `uses` holds the number of look-ups of each rule, or nothing if it is unknown.
        """
        self.remycc = remycc
        #: Name of the table in results.
        self.name = name
        self._uses = list(uses)

    @property
    def rule_table(self) -> RuleTable:
        """The simulator's table."""
        return self.remycc.table

    @property
    def rules(self) -> list[ReadableRule]:
        """The rules by number: region, action, and share of look-ups if known."""
        return readable_rules(self.rule_table, self._uses or None)

    @property
    def uses(self) -> list[int] | None:
        """Number of look-ups of each rule; None if unknown."""
        return self._uses or None

    @property
    def kind(self) -> str:
        """Kind of the rules: "absolute" (in ms and packets), or a kind relative to the path."""
        kinds = rule_table_pb2.Rules.DESCRIPTOR.values_by_number
        return short_name(kinds[self.rule_table.rules])

    @property
    def signals(self) -> list[str]:
        """Names of the signals that the rules depend on."""
        table = self.rule_table
        return [signal_name(axis, table.rules) for axis in table.signals]

    @property
    def path_model(self) -> dict[str, float] | None:
        """Constants of the senders' path model by name; None if they have none, as in Remy."""
        return path_model_dict(self.rule_table)

    @property
    def digest(self) -> str:
        """SHA-256 of the table's .json file, in hexadecimal."""
        return hashlib.sha256(to_bytes(self.remycc, ".json")).hexdigest()

    def renamed(self, name: str) -> Table:
        """Returns the table with another name."""
        return Table(self.remycc, name, self._uses)

    def with_uses(self, uses: Sequence[int]) -> Table:
        """Returns the table with the number of look-ups of each rule.

        Raises ValueError if there are not as many numbers as rules.
        """
        readable_rules(self.rule_table, uses)
        return Table(self.remycc, self.name, uses)

    def with_path_model(self, **constants: float) -> Table:
        """Returns the same rules with a path model, which replaces one that they have.

        Constants that are not given by name have their defaults (docs/reference/spec.md). Raises
        ValueError for a name that is none of theirs or a value out of range.
        """
        return Table(self.remycc.with_path_model(**constants), self.name, self._uses)

    def with_competition(self, rtt_ratio: float) -> Table:
        """Returns the same table, which competes beside senders that fill queues.

        `rtt_ratio` is `competition_rtt_ratio` of the path model; 0 ends the competitive mode.
        Raises ValueError for a table without a path model, and for a ratio out of range.
        """
        return Table(self.remycc.with_competition(rtt_ratio), self.name, self._uses)

    def without_path_model(self) -> Table:
        """Returns the rules alone, for formats and programs that have no path model."""
        rules = self.rule_table.with_path_model(None)
        return Table(RemyCC(rules, self.remycc.dna_metadata), self.name, self._uses)

    def explain(self) -> str:
        """Returns the rules as sentences, the most-used first if uses are known."""
        return "\n".join(self._sentences())

    def _sentences(self) -> list[str]:
        ranked = sorted(self.rules, key=lambda rule: (-(rule.use_share or 0), rule.number))
        return [sentences.rule_sentence(rule, self.rule_table.domain_upper) for rule in ranked]

    def rows(self) -> Rows:
        """Returns a row per rule: the bounds of its region by signal, its action and its use.

        A missing bound is None. Relative rules have the increment in percent of the bandwidth-delay
        product and the interval as a multiple of the measured one (docs/reference/signals.md);
        their columns `..._packets` and `..._ms` are None. Absolute rules have None in the other
        columns.
        """
        kinds: dict[str, type] = {"rule": int}
        for signal in self.signals:
            kinds |= {f"{name}": float for name in sentences.end_columns(signal)}
        kinds |= {
            "window_multiple": float,
            "window_increment_packets": float,
            "window_increment_percent": float,
            "intersend_ms": float,
            "intersend_ratio": float,
            "use_share": float,
        }
        return rows_of(kinds, [self._row(rule) for rule in self.rules])

    def _row(self, rule: ReadableRule) -> dict[str, Any]:
        row: dict[str, Any] = {"rule": rule.number}
        for signal, (low, high) in rule.region.items():
            first, last = sentences.end_columns(signal)
            row[first] = low or None
            row[last] = None if high == self.rule_table.domain_upper else high
        relative = rule.is_relative
        return {
            **row,
            "window_multiple": rule.window_multiple,
            "window_increment_packets": None if relative else rule.window_increment,
            "window_increment_percent": rule.window_increment if relative else None,
            "intersend_ms": None if relative else rule.intersend_ms,
            "intersend_ratio": rule.intersend_ms if relative else None,
            "use_share": rule.use_share,
        }

    def plot(self) -> Plot:
        """Draws the window change and the pacing of each rule."""
        from remy_farm.analysis.plots import draw_rules

        return Plot(draw_rules(self.rules, self.name))

    def live_page(self) -> str:
        """Returns an HTML page that simulates the table in a browser (docs/how-to/play.md)."""
        return live_network_page({self.name: self.remycc})

    def absolute(
        self,
        spec: Spec,
        *,
        cells: int = 2,
        climb_steps: int = 0,
        networks: int = 64,
        seed: int = 1,
        threads: int | None = None,
    ) -> AbsoluteTable:
        """Converts a scale-free table to absolute rules, which a .dna file can hold.

        The absolute table has a copy of all rules for each cell of the packet interval that senders
        measure.

        Args:
            spec: Specification of the networks that the table was designed for.
            cells: Number of cells per octave of the packet interval.
            climb_steps: Number of steps of a search that improves the absolute table; it moves all
                copies of a rule together.
            networks: Number of networks on which the loss is measured.
            seed: Seed of these networks, as in `evaluate`; the search uses other networks.
            threads: Number of threads that simulate; by default one per allowed CPU.

        Returns:
            The absolute table, and the scores of both tables.

        Raises:
            ValueError: The rules are already absolute or use the signal age, the table has a path
                model, or there would be too many cells.
            SpecError: The specification designs several tables.
        """
        from remy_farm.api.absolute import absolute_table

        return absolute_table(
            self,
            spec,
            cells=cells,
            climb_steps=climb_steps,
            networks=networks,
            seed=seed,
            threads=threads,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as .json, or as .dna of the reference tool, depending on the extension.

        Raises:
            FileError: The file cannot be written, or cannot hold the table; a .dna file holds
                absolute rules without a path model only.
        """
        write_remycc(path, self.remycc)

    def __len__(self) -> int:
        return self.rule_table.rule_count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.rule_table == other.rule_table

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return (
            f"Table({self.name!r}, {plural(len(self), 'rule')}, {self.kind}, "
            f"signals: {', '.join(self.signals)}{self._with_path_model})"
        )

    @property
    def _with_path_model(self) -> str:
        return "" if self.path_model is None else ", with a path model"

    def _repr_html_(self) -> str:
        rules = self._sentences()
        items = "".join(f"<li>{escape(each)}</li>" for each in rules[:_MAX_SENTENCES])
        rest = len(rules) - _MAX_SENTENCES
        more = f"<p>... and {rest} more: explain() has them all.</p>" if rest > 0 else ""
        return (
            f"<p><b>{escape(self.name)}</b>: {plural(len(self), 'rule')}, {self.kind}"
            f"{self._with_path_model}</p>"
            f"<ul>{items}</ul>{more}{framed_live(self.live_page())}"
        )


def framed_live(page: str) -> str:
    """Returns a frame with the live network, sized for a notebook's cell."""
    frame = framed(page, title="The live network")
    return frame.replace("<iframe ", '<iframe width="100%" height="640" ', 1)


def load_table(source: str | os.PathLike[str], *, time_unit_ms: float = 1.0) -> Table:
    """Loads a RemyCC from a .json or .dna file, or one that is installed with the library.

    Args:
        source: The file, or one of `shipped_tables()`, such as "generalist".
        time_unit_ms: Time unit of a .dna file, ms; the file itself does not state it.

    Returns:
        The table, with the name of the file or of its folder.

    Raises:
        FileError: The file does not exist, or is not a RemyCC.
    """
    shipped = shipped_table(source) if isinstance(source, str) else None
    path = Path(source) if shipped is None else shipped
    return Table(read_remycc(path, time_unit_ms), table_name(path.resolve()))
