"""Simulating: tables and protocols on one network, and what each sender came to."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np

from remy_farm.analysis import wording
from remy_farm.analysis.recording import (
    Recording,
    SenderPoint,
    draw_recording,
    recording_of_simulation,
)
from remy_farm.analysis.wording import number, several
from remy_farm.api.showing import Plot, Rows, Tabular, rows_like, rows_of
from remy_farm.api.spec import plain
from remy_farm.api.table import Table
from remy_farm.evaluation.measures import SenderMeasures, TransportMeasures
from remy_farm.evaluation.simulation import simulate_topology
from remy_farm.files import FileError, read_file, write_file
from remy_farm.remycc import read_remycc
from remy_farm.specification import load_tree
from remy_farm.specification.network_files import Topology, topology_of
from remy_farm.specification.reading import Tree
from remy_simulator import RuleTable

_MOST_BYTES = 1 << 30
_MS_PER_SECOND = 1000.0

#: Who sends: a table, words as in "cubic=2" or "bbr,variant=v3", or a mapping with `table` (a Table
#: or a file) or `protocol` (words), and `count`, `transport`, `traffic`, `rtt_ms`, `route`, ...
Sender: TypeAlias = "Table | str | Mapping[str, Any]"


class Network:
    """One network: links, and who sends over them; it never changes.

    Keys have their units in their names, and are those of a network's file
    (docs/reference/networks.md).
    """

    def __init__(self, *, senders: Sequence[Sender], **keys: Any) -> None:
        """The network with these keys.

        Args:
            senders: Who sends.
            **keys: `rtt_ms`, and of one link `rate_mbps`, `buffer` (`{"packets": 100}`, infinite
                unless given), `loss_probability` and `queue`, or `links` in their place;
                `traffic`, always on unless given; `transport`, which carries tables; and others.

        Raises:
            SpecError: A key is unknown, or a value is not allowed; all of them are named.
            FileError: A file that is named cannot be read.
        """
        self._tables: dict[str, Table] = {}
        self._keys: Mapping[str, Any] = {**keys, "senders": senders}
        named = [self._with_named_tables(each) for each in senders]
        self._topology = topology_of(plain({**keys, "senders": named}), Path.cwd(), "the network")

    @classmethod
    def of_tree(cls, tree: Tree, folder: Path, source: str) -> Network:
        """The network in a tree that was read from `source`, in whose `folder` files are."""
        network = cls.__new__(cls)
        network._topology = topology_of(tree, folder, source)
        network._tables, network._keys = {}, tree if isinstance(tree, dict) else {}
        return network

    def _with_named_tables(self, sender: Sender) -> Any:
        """A sender whose table, if it is one in memory, is called by a name."""
        given = {"table": sender} if isinstance(sender, Table) else sender
        if not isinstance(given, Mapping):
            return given
        keys = dict(given)
        table = keys.get("table")
        if isinstance(table, Table):
            name = f"table-{len(self._tables)}"
            self._tables[name] = table
            keys = {"name": table.name, **keys, "table": name}
        elif isinstance(table, os.PathLike):
            keys["table"] = os.fspath(table)
        return keys

    def to_dict(self) -> dict[str, Any]:
        """The keys as they were given."""
        return dict(self._keys)

    def topology(self) -> Topology:
        """The network as messages."""
        return self._topology

    def rule_tables(self) -> dict[str, RuleTable]:
        """The tables that senders run, by what the topology calls them. Raises FileError."""
        named = (each.remycc for each in self._topology.sender_specs if each.remycc is not None)
        return {
            name: self._tables[name].rule_table if name in self._tables else read_remycc(name).table
            for name in dict.fromkeys(named)
        }

    def __repr__(self) -> str:
        told = ", ".join(f"{key}={value!r}" for key, value in self._keys.items())
        return f"Network({told})"


def load_network(path: str | os.PathLike[str]) -> Network:
    """The network in a YAML or JSON file, as `remy-farm simulate --network` takes it.

    Raises:
        SpecError: A key is unknown, or a value is not allowed.
        FileError: The file, or one that it names, cannot be read.
    """
    return Network.of_tree(load_tree(path), Path(path).parent, os.fspath(path))


class Run(Tabular):
    """The results of one network: by sender, by kind of sender, by link, and over time."""

    def __init__(self, tree: Mapping[str, Any], recording: Recording | None = None) -> None:
        """A run that `remy-farm simulate --json` would print as this tree."""
        self._tree = tree
        self._recording = recording

    @property
    def senders(self) -> list[SenderMeasures]:
        """The results of each sender, in the network's order."""
        return [msgspec.convert(_own(each), SenderMeasures) for each in self._tree["senders"]]

    @property
    def sender_names(self) -> list[str]:
        """The table or protocol of each sender."""
        return [each["kind"] for each in self._tree["senders"]]

    @property
    def throughput_over_link_rate(self) -> float | None:
        """Mean equal-share throughput over the link rate; None if no packet was received."""
        return self._number("throughput_over_link_rate")

    @property
    def delay_over_rtt(self) -> float | None:
        """Mean delay over the RTT without queueing and service; None if nothing was received."""
        return self._number("delay_over_rtt")

    @property
    def normalized_score_per_sender(self) -> float | None:
        """Mean over senders of log2(throughput / link rate) - log2(delay / RTT), as in Figure 11 of
        TCP ex Machina; None if nothing was received."""
        return self._number("normalized_score_per_sender")

    @property
    def seconds(self) -> float:
        """Time that was simulated, s."""
        return float(self._tree["simulated_seconds"])

    @property
    def digest(self) -> str:
        """A digest of every sender's exact results."""
        return str(self._tree["digest"])

    def _number(self, key: str) -> float | None:
        value = self._tree[key]
        return None if value is None else float(value)

    def to_dict(self) -> dict[str, Any]:
        """Everything but what was seen over time, as `remy-farm simulate --json` prints it."""
        return dict(self._tree)

    def rows(self) -> Rows:
        """A row for each sender."""
        kinds = {"sender": int, "kind": str, **_SENDER_COLUMNS}
        if "goodput_mbps" in self._tree["senders"][0]:
            kinds |= _TRANSPORT_COLUMNS
        return rows_of(
            kinds,
            [
                {name: each.get(name, place) for name in kinds}
                for place, each in enumerate(self._tree["senders"])
            ],
        )

    def by_kind(self) -> Rows:
        """A row for each kind of sender, with means over its senders."""
        return rows_like(self._tree["kinds"])

    def by_link(self) -> Rows:
        """A row for each link that has a name: packets transmitted, dropped, lost and waiting."""
        return rows_like(self._tree.get("links", []))

    def over_time(self) -> Rows:
        """A row for each sender at each time: window, rate, RTT, and the queues.

        Raises ValueError where nothing was recorded.
        """
        recording = self._recorded()
        return Rows(recording.columns(), recording.rows())

    def plot(self) -> Plot:
        """Draws queues and windows over time, and throughput against delay.

        Raises ValueError where nothing was recorded.
        """
        points = [
            SenderPoint(name, sender.throughput_mbps, sender.delay_ms)
            for name, sender in zip(self.sender_names, self.senders, strict=True)
            if sender.delay_ms is not None
        ]
        return Plot(draw_recording(self._recorded(), points))

    def _recorded(self) -> Recording:
        if self._recording is None:
            raise ValueError("nothing was recorded over time; simulate with record_every_ms=10")
        return self._recording

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all of it as JSON, for `load_run`. Raises FileError."""
        tree = dict(self._tree)
        if self._recording is not None:
            tree["recording"] = {
                field.name: _plain(getattr(self._recording, field.name))
                for field in fields(Recording)
            }
        write_file(path, json.dumps(tree, indent=1, allow_nan=False) + "\n")

    def _head_and_cells(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        head = ("", "senders", "Mbit/s", "delay ms", "received", "lost")
        cells = [
            (
                each["kind"],
                str(each["senders"]),
                number(each["throughput_mbps"]),
                number(each["delay_ms"]),
                str(each["packets_received"]),
                str(each["packets_lost"]),
            )
            for each in self._tree["kinds"]
        ]
        return head, cells

    def _title(self) -> str:
        rate, delay = number(self.throughput_over_link_rate), number(self.delay_over_rtt)
        many = several(len(self.senders), "sender")
        return f"{many} for {self.seconds:g} s: throughput / link rate {rate}, delay / RTT {delay}"

    def __repr__(self) -> str:
        head, cells = self._head_and_cells()
        return "\n".join([self._title(), *wording.aligned(head, cells)])

    def _repr_html_(self) -> str:
        head, cells = self._head_and_cells()
        return wording.table(self._title(), head, cells)


_SENDER_COLUMNS: dict[str, type] = {
    field.name: int if field.type == "int" else float for field in fields(SenderMeasures)
}
_TRANSPORT_COLUMNS: dict[str, type] = {
    field.name: int if field.type == "int" else float for field in fields(TransportMeasures)
}


def _own(sender: Mapping[str, Any]) -> dict[str, Any]:
    return {name: sender[name] for name in _SENDER_COLUMNS}


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else list(value)


def simulate(
    network: Network,
    *,
    seconds: float,
    seed: int = 1,
    record_every_ms: float | None = None,
) -> Run:
    """Simulates one network, packet by packet.

    Args:
        network: Links and senders.
        seconds: Time to simulate, s.
        seed: Names the random draws.
        record_every_ms: How often windows, rates and queues are recorded for `Run.plot` and
            `Run.over_time`, ms; not at all unless given.

    Returns:
        What every sender came to.

    Raises:
        ValueError: A number is not positive.
        FileError: A table that the network names cannot be read.
        InvalidRequest: The simulator cannot simulate such a network.
    """
    for name, value in (("seconds", seconds), ("record_every_ms", record_every_ms)):
        if value is not None and not 0 < value < float("inf"):
            raise ValueError(f"{name} is {value:g}, but must be positive and finite")
    topology = network.topology()
    simulation = simulate_topology(
        topology,
        network.rule_tables(),
        seconds=seconds,
        seed=seed,
        record_every_ms=record_every_ms,
    )
    tree = simulation.tree()
    for name, sender in zip(simulation.kind_names, tree["senders"], strict=True):
        sender.setdefault("kind", name)
    if record_every_ms is None:
        return Run(tree)
    return Run(tree, recording_of_simulation(simulation, topology.links or [""]))


def load_run(path: str | os.PathLike[str]) -> Run:
    """The run that `Run.save` wrote. Raises FileError."""
    try:
        tree = json.loads(read_file(path, limit=_MOST_BYTES))
        seen = tree.pop("recording", None)
        run = Run(tree, None if seen is None else _recording_of(seen))
        repr(run)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{os.fspath(path)} holds no run as Run.save writes it") from error
    return run


def _recording_of(seen: Mapping[str, Any]) -> Recording:
    named = {"kinds", "links"}
    arrays: dict[str, Any] = {
        field.name: np.array(seen[field.name], dtype=float)
        for field in fields(Recording)
        if field.name not in named
    }
    return Recording(kinds=seen["kinds"], links=seen["links"], **arrays)
