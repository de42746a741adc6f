"""Simulates tables and protocols on one network, with results by sender and over time."""

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
from remy_farm.analysis.capture import Capture, capture_of_simulation
from remy_farm.analysis.recording import (
    Recording,
    SenderPoint,
    draw_recording,
    recording_of_simulation,
)
from remy_farm.analysis.wording import number, percentage, plural
from remy_farm.api.showing import Plot, Rows, Tabular, rows_like, rows_of
from remy_farm.api.spec import plain
from remy_farm.api.table import Table
from remy_farm.evaluation.measures import (
    PERCENTS,
    SenderMeasures,
    TransportMeasures,
    measure_columns,
)
from remy_farm.evaluation.simulation import check_sender, simulate_topology
from remy_farm.files import FileError, read_file, write_file
from remy_farm.remycc import read_remycc
from remy_farm.specification import load_tree
from remy_farm.specification.network_files import Topology, topology_of
from remy_farm.specification.reading import Tree
from remy_simulator import RuleTable

_MAX_BYTES = 1 << 30
_MS_PER_SECOND = 1000.0

#: A kind of sender: a table, a text such as "cubic=2" or "bbr,variant=v3", or a mapping with
#: `table` (a Table or a file) or `protocol`, and optionally `count`, `transport`, `traffic`,
#: `rtt_ms`, `route` and others.
Sender: TypeAlias = "Table | str | Mapping[str, Any]"


class Network:
    """A network: its links and senders. It is immutable.

    The keys are those of a network file (docs/reference/networks.md); their names include the
    units.
    """

    def __init__(self, *, senders: Sequence[Sender], **keys: Any) -> None:
        """Makes a network.

        Args:
            senders: The senders.
            **keys: `rtt_ms`; for a single link `rate_mbps`, `buffer` (such as `{"packets": 100}`;
                infinite by default), `loss_probability` and `queue`, or else `links`; `traffic`
                (always on by default); `transport`, the transport of tables; and others.

        Raises:
            SpecError: Keys are unknown, or values are not allowed; the message lists them all.
            FileError: A file that the network refers to cannot be read.
        """
        self._tables: dict[str, Table] = {}
        self._keys: Mapping[str, Any] = {**keys, "senders": senders}
        named = [self._with_named_tables(each) for each in senders]
        self._topology = topology_of(plain({**keys, "senders": named}), Path.cwd(), "the network")

    @classmethod
    def of_tree(cls, tree: Tree, folder: Path, source: str) -> Network:
        """Makes the network of a tree that was read from `source`; files are in `folder`."""
        network = cls.__new__(cls)
        network._topology = topology_of(tree, folder, source)
        network._tables, network._keys = {}, tree if isinstance(tree, dict) else {}
        return network

    def _with_named_tables(self, sender: Sender) -> Any:
        """Replaces a sender's table in memory by a name, under which the network stores it."""
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
        """Returns the keys as they were given."""
        return dict(self._keys)

    def topology(self) -> Topology:
        """Returns the network in the form that the simulation takes."""
        return self._topology

    def rule_tables(self) -> dict[str, RuleTable]:
        """Returns the senders' tables by their names in the topology. Raises FileError."""
        named = (each.remycc for each in self._topology.sender_specs if each.remycc is not None)
        return {
            name: self._tables[name].rule_table if name in self._tables else read_remycc(name).table
            for name in dict.fromkeys(named)
        }

    def __repr__(self) -> str:
        keys = ", ".join(f"{key}={value!r}" for key, value in self._keys.items())
        return f"Network({keys})"


def load_network(path: str | os.PathLike[str]) -> Network:
    """Loads a network from a YAML or JSON file, as `remy-farm simulate --network` does.

    Raises:
        SpecError: A key is unknown, or a value is not allowed.
        FileError: The file, or a file that it refers to, cannot be read.
    """
    return Network.of_tree(load_tree(path), Path(path).parent, os.fspath(path))


class Run(Tabular):
    """The results of one simulated network: by sender, kind of sender, link, and over time."""

    def __init__(
        self,
        tree: Mapping[str, Any],
        recording: Recording | None = None,
        capture: Capture | None = None,
    ) -> None:
        """`tree` is the dictionary that `remy-farm simulate --json` prints."""
        self._tree = tree
        self._recording = recording
        self._capture = capture

    @property
    def senders(self) -> list[SenderMeasures]:
        """Results of each sender, in the network's order."""
        return [msgspec.convert(_own(each), SenderMeasures) for each in self._tree["senders"]]

    @property
    def sender_names(self) -> list[str]:
        """Name of each sender's table or protocol."""
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
        """Mean over senders of log2(throughput / link rate) - log2(delay / RTT).

        This is the score of Figure 11 of TCP ex Machina. None if nothing was received.
        """
        return self._number("normalized_score_per_sender")

    @property
    def seconds(self) -> float:
        """Simulated time, s."""
        return float(self._tree["simulated_seconds"])

    @property
    def digest(self) -> str:
        """A digest of every sender's exact results."""
        return str(self._tree["digest"])

    def _number(self, key: str) -> float | None:
        value = self._tree[key]
        return None if value is None else float(value)

    def to_dict(self) -> dict[str, Any]:
        """Returns all results but those over time, as `remy-farm simulate --json` prints them."""
        return dict(self._tree)

    def rows(self) -> Rows:
        """Returns a row per sender."""
        kinds = {"sender": int, "kind": str, **_SENDER_COLUMNS}
        if "goodput_mbps" in self._tree["senders"][0]:
            kinds |= _TRANSPORT_COLUMNS
        return rows_of(
            kinds,
            [
                {name: each.get(name) for name in kinds} | {"sender": number}
                for number, each in enumerate(self._tree["senders"])
            ],
        )

    def by_kind(self) -> Rows:
        """Returns a row per kind of sender, with means over its senders."""
        return rows_like(self._tree["kinds"])

    def by_link(self) -> Rows:
        """Returns a row per named link: packets transmitted, dropped, lost and waiting."""
        return rows_like(self._tree.get("links", []))

    def over_time(self) -> Rows:
        """Returns a row per sender and time: window, rate, RTT, and the queues.

        Raises ValueError if nothing was recorded.
        """
        recording = self._recorded()
        return Rows(recording.columns(), recording.rows())

    def plot(self) -> Plot:
        """Draws queues and windows over time, and throughput against delay.

        Raises ValueError if nothing was recorded.
        """
        points = [
            SenderPoint(name, sender.throughput_mbps, sender.delay_ms)
            for name, sender in zip(self.sender_names, self.senders, strict=True)
            if sender.delay_ms is not None
        ]
        return Plot(draw_recording(self._recorded(), points))

    def _recorded(self) -> Recording:
        if self._recording is None:
            raise ValueError("the run has no recording; simulate with record_every_ms=10")
        return self._recording

    def save_pcapng(self, path: str | os.PathLike[str]) -> None:
        """Writes the captured packets and ACKs as a pcapng file, for Wireshark.

        Raises ValueError if nothing was captured, and FileError.
        """
        write_file(path, self._captured().to_pcapng())

    def save_qlog(self, path: str | os.PathLike[str]) -> None:
        """Writes the captured packets, ACKs, losses and windows as a qlog file, for qvis.

        Raises ValueError if nothing was captured, and FileError.
        """
        write_file(path, self._captured().to_qlog())

    def _captured(self) -> Capture:
        if self._capture is None:
            raise ValueError("the run has no capture; simulate with capture_sender=0")
        return self._capture

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the run as JSON without its capture, for `load_run`. Raises FileError."""
        tree = dict(self._tree)
        if self._recording is not None:
            tree["recording"] = {
                field.name: _plain(getattr(self._recording, field.name))
                for field in fields(Recording)
            }
        write_file(path, json.dumps(tree, indent=1, allow_nan=False) + "\n")

    def _head_and_cells(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        head = (
            "",
            "senders",
            "Mbit/s",
            "delay ms",
            "p50",
            "p95",
            "p99",
            "received",
            "lost",
            "loss",
        )
        cells = [
            (
                each["kind"],
                str(each["senders"]),
                number(each["throughput_mbps"]),
                number(each["delay_ms"]),
                *(number(each.get(f"rtt_p{percent}_ms")) for percent in PERCENTS),
                str(each["packets_received"]),
                str(each["packets_lost"]),
                percentage(each.get("loss")),
            )
            for each in self._tree["kinds"]
        ]
        return head, cells

    def _title(self) -> str:
        rate, delay = number(self.throughput_over_link_rate), number(self.delay_over_rtt)
        loss = percentage(self._tree.get("loss"))
        senders = plural(len(self.senders), "sender")
        return (
            f"{senders} for {self.seconds:g} s: throughput / link rate {rate}, "
            f"delay / RTT {delay}, loss {loss}"
        )

    def __repr__(self) -> str:
        head, cells = self._head_and_cells()
        return "\n".join([self._title(), *wording.aligned(head, cells)])

    def _repr_html_(self) -> str:
        head, cells = self._head_and_cells()
        return wording.table(self._title(), head, cells)


_SENDER_COLUMNS = measure_columns(SenderMeasures)
_TRANSPORT_COLUMNS = measure_columns(TransportMeasures)


def _own(sender: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a sender's own measures; runs that earlier versions saved lack some."""
    return {name: sender[name] for name in _SENDER_COLUMNS if name in sender}


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else list(value)


def simulate(
    network: Network,
    *,
    seconds: float,
    seed: int = 1,
    record_every_ms: float | None = None,
    capture_sender: int | None = None,
) -> Run:
    """Simulates one network, packet by packet.

    Args:
        network: The links and senders.
        seconds: Time to simulate, s.
        seed: Seed of all random draws.
        record_every_ms: Interval at which windows, rates and queues are recorded for `Run.plot` and
            `Run.over_time`, ms; None: no recording.
        capture_sender: Index of the sender whose packets and ACKs are captured for
            `Run.save_pcapng` and `Run.save_qlog`; None: no capture.

    Returns:
        The results of every sender.

    Raises:
        ValueError: `seconds` or `record_every_ms` is not positive, or the network has no sender
            `capture_sender`.
        FileError: A table that the network refers to cannot be read.
        InvalidRequest: The simulator does not support such a network.
    """
    for name, value in (("seconds", seconds), ("record_every_ms", record_every_ms)):
        if value is not None and not 0 < value < float("inf"):
            raise ValueError(f"{name} is {value:g}, but must be positive and finite")
    topology = network.topology()
    if capture_sender is not None:
        check_sender(topology, capture_sender)
    simulation = simulate_topology(
        topology,
        network.rule_tables(),
        seconds=seconds,
        seed=seed,
        record_every_ms=record_every_ms,
        capture_sender=capture_sender,
    )
    tree = simulation.tree()
    for name, sender in zip(simulation.kind_names, tree["senders"], strict=True):
        sender.setdefault("kind", name)
    return Run(
        tree,
        None
        if record_every_ms is None
        else recording_of_simulation(simulation, topology.links or [""]),
        None if capture_sender is None else capture_of_simulation(simulation),
    )


def load_run(path: str | os.PathLike[str]) -> Run:
    """Loads the run that `Run.save` wrote. Raises FileError."""
    try:
        tree = json.loads(read_file(path, limit=_MAX_BYTES))
        seen = tree.pop("recording", None)
        run = Run(tree, None if seen is None else _recording_of(seen))
        repr(run)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{os.fspath(path)} is not a file that Run.save wrote") from error
    return run


def _recording_of(seen: Mapping[str, Any]) -> Recording:
    named = {"kinds", "links"}
    arrays: dict[str, Any] = {
        field.name: np.array(seen[field.name], dtype=float)
        for field in fields(Recording)
        if field.name not in named
    }
    return Recording(kinds=seen["kinds"], links=seen["links"], **arrays)
