"""Rule tables (RemyCCs): read, shown as rules, explained, drawn, saved."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remy_farm.analysis import sentences
from remy_farm.analysis.live_page import live_network_page
from remy_farm.analysis.wording import escape, framed, several
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
from remy_farm.shipped import shipped_table
from remy_farm.specification.schema import short_name
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable

if TYPE_CHECKING:
    from remy_farm.api.absolute import AbsoluteTable
    from remy_farm.api.spec import Spec

# In a notebook; all rules are in `explain()`.
_MOST_SENTENCES = 12


class Table(Tabular):
    """A RemyCC: rules from congestion signals to window and pacing; it never changes."""

    def __init__(self, remycc: RemyCC, name: str = "RemyCC", uses: Sequence[int] = ()) -> None:
        """A table that is called `name`; `load_table` and `design` make them.

        `uses` counts the look-ups of each rule where that is known.
        """
        self.remycc = remycc
        #: The name in results.
        self.name = name
        self._uses = list(uses)

    @property
    def rule_table(self) -> RuleTable:
        """The table as the simulator has it."""
        return self.remycc.table

    @property
    def rules(self) -> list[ReadableRule]:
        """The rules by number: region, action, and share of look-ups where it is known."""
        return readable_rules(self.rule_table, self._uses or None)

    @property
    def uses(self) -> list[int] | None:
        """Look-ups of each rule; None where they are not known."""
        return self._uses or None

    @property
    def kind(self) -> str:
        """The units of the rules: "absolute" (ms and packets), or a scale that senders measure."""
        kinds = rule_table_pb2.Rules.DESCRIPTOR.values_by_number
        return short_name(kinds[self.rule_table.rules])

    @property
    def signals(self) -> list[str]:
        """Names of the signals that the rules look at."""
        table = self.rule_table
        return [signal_name(axis, table.rules) for axis in table.signals]

    @property
    def digest(self) -> str:
        """The SHA-256, in hexadecimal, of the table as a .json file has it."""
        return hashlib.sha256(to_bytes(self.remycc, ".json")).hexdigest()

    def renamed(self, name: str) -> Table:
        """The table under another name."""
        return Table(self.remycc, name, self._uses)

    def with_uses(self, uses: Sequence[int]) -> Table:
        """The table with the number of look-ups of each rule. Raises ValueError for other numbers
        of rules."""
        readable_rules(self.rule_table, uses)
        return Table(self.remycc, self.name, uses)

    def explain(self) -> str:
        """The rules as sentences, the most-used first where uses are known."""
        return "\n".join(self._sentences())

    def _sentences(self) -> list[str]:
        ranked = sorted(self.rules, key=lambda rule: (-(rule.use_share or 0), rule.number))
        return [sentences.rule_sentence(rule, self.rule_table.domain_upper) for rule in ranked]

    def rows(self) -> Rows:
        """A row for each rule: the ends of its region by signal, its action and its use.

        An end that is not there is None. In scale-free rules the increment is in percent of the
        bandwidth-delay product and the interval a multiple of the measured one, as
        docs/reference/signals.md has it; the columns `..._packets` and `..._ms` are then None, and
        the other way round.
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
        """Draws the rules: what each does with the window, and how far apart it sends."""
        from remy_farm.analysis.plots import draw_rules

        return Plot(draw_rules(self.rules, self.name))

    def live_page(self) -> str:
        """A page, as HTML, on which the table runs in any browser (docs/how-to/play.md)."""
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
        """A scale-free table with absolute rules, which a .dna file can hold: its rules once for
        each cell of the interval between packets that senders measure.

        Args:
            spec: What it was designed for.
            cells: Cells of the measured interval to an octave.
            climb_steps: Steps of a climb of the new rules, the copies of one together.
            networks: Networks to measure what is lost on.
            seed: Names these networks, as `evaluate` does; the rules are chosen on others.
            threads: Threads to simulate with; the CPUs allowed unless given.

        Returns:
            The table, and the scores before and after.

        Raises:
            ValueError: The rules are absolute already, look at age, or would be too many.
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
        """Writes the table as .json, or as .dna for the reference tool, as the name says.

        Raises:
            FileError: The file cannot be written, or cannot hold the table: a .dna file has
                absolute rules only.
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
            f"Table({self.name!r}, {several(len(self), 'rule')}, {self.kind}, "
            f"signals: {', '.join(self.signals)})"
        )

    def _repr_html_(self) -> str:
        told = self._sentences()
        items = "".join(f"<li>{escape(each)}</li>" for each in told[:_MOST_SENTENCES])
        rest = len(told) - _MOST_SENTENCES
        more = f"<p>... and {rest} more: explain() has them all.</p>" if rest > 0 else ""
        return (
            f"<p><b>{escape(self.name)}</b>: {several(len(self), 'rule')}, {self.kind}</p>"
            f"<ul>{items}</ul>{more}{framed_live(self.live_page())}"
        )


def framed_live(page: str) -> str:
    """The live network within a notebook's cell."""
    frame = framed(page, title="The live network")
    return frame.replace("<iframe ", '<iframe width="100%" height="640" ', 1)


def load_table(source: str | os.PathLike[str], *, time_unit_ms: float = 1.0) -> Table:
    """The RemyCC in a .json or .dna file, or one that is installed with the library.

    Args:
        source: The file, or a name among `shipped_tables()`, as "generalist".
        time_unit_ms: The unit of time of a .dna file, ms, which does not say it.

    Returns:
        The table, called as the file or its folder.

    Raises:
        FileError: There is no such file, or it holds no RemyCC.
    """
    shipped = shipped_table(source) if isinstance(source, str) else None
    path = Path(source) if shipped is None else shipped
    place = path.resolve()
    name = place.parent.name if place.stem == "remycc" else place.stem
    return Table(read_remycc(path, time_unit_ms), name)
