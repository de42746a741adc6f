"""Scores tables and protocols on networks drawn from a specification."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from remy_farm.analysis import wording
from remy_farm.analysis.wording import format_estimate, number, percentage, plural
from remy_farm.api.showing import Plot, Rows, Tabular, rows_of
from remy_farm.api.spec import Spec
from remy_farm.api.table import Table
from remy_farm.evaluation.local import LocalEvaluator
from remy_farm.evaluation.measures import (
    PACKET_MEASURES,
    Estimate,
    PacketMeasures,
    SpecimenMeasures,
    SpecimenResult,
    Summary,
    Trial,
    estimate,
    evaluate_table,
    link_rate_mbps,
    measure_columns,
    packets_row,
)
from remy_farm.files import FileError, read_file, write_file
from remy_farm.specification import SpecError, Violation
from remy_farm.specification.senders import (
    REMYCC,
    SenderSpec,
    check_default_transport,
    parse_sender,
)
from remy_proto.v1 import evaluation_pb2
from remy_simulator import registry
from remy_simulator.cpus import allowed_cpus
from remy_simulator.registry import Registry

if TYPE_CHECKING:
    from remy_farm.api.designing import Design

#: Something to score: a table, a design, a protocol as `remy-farm protocols` lists them, or a tuple
#: of tables that were designed together, in the specification's order.
Contender: TypeAlias = "Table | Design | str | tuple[Table, ...]"

_MAX_BYTES = 1 << 30


def local_evaluator(threads: int | None) -> AbstractContextManager[LocalEvaluator]:
    """Returns an evaluator on threads of this process; by default one per allowed CPU."""
    return closing(LocalEvaluator(threads or allowed_cpus()))


@dataclass(frozen=True)
class ContenderScore:
    """The results of one contender on all networks."""

    name: str
    trial: Trial
    #: Name of the result that counts as throughput: "packets_received" or "packets_in_order".
    throughput_of: str

    def summary(self) -> Summary:
        """Returns the mean score with its standard error, and medians of throughput and delay."""
        return self.trial.summary()

    @property
    def digest(self) -> str:
        """A digest of every sender's exact results."""
        return self.trial.digest


class Scores(Tabular):
    """The scores of contenders on the same networks, in total and network by network."""

    def __init__(
        self, spec_name: str, seed: int, scores: Sequence[ContenderScore], cpu_seconds: float
    ):
        self.spec_name = spec_name
        #: Seed of the networks and of all other random draws.
        self.seed = seed
        self._scores = {score.name: score for score in scores}
        #: CPU time of all simulations.
        self.cpu_seconds = cpu_seconds

    def __getitem__(self, name: str) -> ContenderScore:
        """Returns a contender's results by its name. Raises KeyError."""
        return self._scores[name]

    def __iter__(self) -> Iterator[ContenderScore]:
        return iter(self._scores.values())

    def __len__(self) -> int:
        return len(self._scores)

    @property
    def names(self) -> list[str]:
        """Names of the contenders, in the order in which they were given."""
        return [*self._scores]

    @property
    def networks(self) -> int:
        """The number of networks on which each contender was simulated."""
        return max((len(score.trial.results) for score in self), default=0)

    def difference(self, name: str, other: str) -> Estimate | None:
        """Returns the mean over networks of the score of `name` minus that of `other`.

        Returns None if no network has both scores. Raises KeyError.
        """
        pairs = zip(self[name].trial.results, self[other].trial.results, strict=True)
        return estimate(
            [
                None if first.score is None or second.score is None else first.score - second.score
                for first, second in pairs
            ]
        )

    def rows(self) -> Rows:
        """Returns a row per contender: mean score and loss, median throughput and delay."""
        kinds = {
            "name": str,
            "score_mean": float,
            "score_standard_error": float,
            "throughput_over_link_rate_median": float,
            "delay_over_rtt_median": float,
            "networks": int,
            "networks_scored": int,
            "digest": str,
            **dict.fromkeys(packets_row(PacketMeasures()), float),
            "packets_retransmitted": int,
        }
        return rows_of(kinds, [_summary_row(score) for score in self])

    def by_network(self) -> Rows:
        """Returns a row per contender and network."""
        kinds = {
            "name": str,
            "network": int,
            "rate_mbps": float,
            "rtt_ms": float,
            "senders": int,
            "score": float,
            "throughput_over_link_rate": float,
            "delay_over_rtt": float,
            "normalized_score_per_sender": float,
            **measure_columns(PacketMeasures),
        }
        return rows_of(
            kinds,
            [
                {
                    "name": score.name,
                    "network": number,
                    "rate_mbps": link_rate_mbps(result.specimen),
                    "rtt_ms": result.specimen.rtt_ms,
                    "senders": result.measures.senders,
                    "score": result.score,
                    "throughput_over_link_rate": result.measures.throughput_over_link_rate,
                    "delay_over_rtt": result.measures.delay_over_rtt,
                    "normalized_score_per_sender": result.measures.normalized_score_per_sender,
                    **{name: getattr(result.measures, name) for name in PACKET_MEASURES},
                }
                for score in self
                for number, result in enumerate(score.trial.results)
            ],
        )

    def plot(self) -> Plot:
        """Draws throughput against delay (TCP ex Machina, Figure 4).

        Shows a point per network, the medians, and ellipses of one standard deviation.
        """
        from remy_farm.analysis.plots import COLORS, Cloud, draw_throughput_delay

        clouds = [
            Cloud(score.name, COLORS[number % len(COLORS)], _points(score.trial))
            for number, score in enumerate(self)
        ]
        return Plot(draw_throughput_delay(clouds, title=f"{self.spec_name}: each network"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the scores as JSON, for `load_scores`. Raises FileError."""
        tree = {
            "spec": self.spec_name,
            "seed": self.seed,
            "cpu_seconds": self.cpu_seconds,
            "scores": [_score_tree(score) for score in self],
        }
        write_file(path, json.dumps(tree, indent=1, allow_nan=False) + "\n")

    def _head_and_cells(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        head = ("", "score", "throughput / link rate", "delay / RTT", "loss")
        cells = []
        for score in self:
            summary = score.summary()
            cells.append(
                (
                    score.name,
                    format_estimate(summary.score),
                    number(summary.throughput_over_link_rate),
                    number(summary.delay_over_rtt),
                    percentage(summary.packets.loss),
                )
            )
        return head, cells

    def __repr__(self) -> str:
        head, cells = self._head_and_cells()
        return "\n".join([self._title(), *wording.aligned(head, cells)])

    def _title(self) -> str:
        return (
            f"{self.spec_name}: {plural(len(self), 'contender')} on "
            f"{plural(self.networks, 'network')} (means of score and loss, medians)"
        )

    def _repr_html_(self) -> str:
        head, cells = self._head_and_cells()
        return wording.table(self._title(), head, cells)


def _summary_row(score: ContenderScore) -> dict[str, Any]:
    summary = score.summary()
    known = summary.score
    return {
        "name": score.name,
        "score_mean": None if known is None else known.mean,
        "score_standard_error": None if known is None else known.standard_error,
        "throughput_over_link_rate_median": summary.throughput_over_link_rate,
        "delay_over_rtt_median": summary.delay_over_rtt,
        "networks": summary.specimens,
        "networks_scored": 0 if known is None else known.count,
        "digest": score.digest,
        **packets_row(summary.packets),
    }


def _points(trial: Trial) -> list[tuple[float, float]]:
    return [
        (result.measures.delay_over_rtt, result.measures.throughput_over_link_rate)
        for result in trial.results
        if result.measures.delay_over_rtt is not None
        and result.measures.throughput_over_link_rate is not None
    ]


def evaluate(
    contenders: Contender | list[Contender],
    spec: Spec,
    *,
    networks: int = 128,
    seed: int = 1,
    transport: str | evaluation_pb2.Choice | None = None,
    threads: int | None = None,
) -> Scores:
    """Scores tables and protocols on networks drawn from a specification.

    The same seed draws the same networks for all contenders, so that they can be compared network
    by network. The throughput of RemyCCs on datagrams counts received packets; that of protocols
    counts packets received in order.

    Args:
        contenders: One contender or a list: tables, designs, and protocols such as "cubic" or
            "bbr,variant=v3".
        spec: The networks, traffic, objective and simulated time.
        networks: Number of networks to draw.
        seed: Seed of the networks and of all other random draws.
        transport: Transport of RemyCCs, such as "tcp,variant=linux"; datagrams by default.
        threads: Number of threads that simulate; by default one per allowed CPU.

    Returns:
        The scores by contender.

    Raises:
        SpecError: A contender has not as many tables as the specification designs.
        ValueError: A protocol or transport is unknown, or `networks` is not positive.
        TypeError: A contender has another type.
        InvalidRequest: A contender cannot run on these networks: protocols do not support senders
            with noisy clocks.
    """
    if not networks >= 1:
        raise ValueError(f"networks is {networks}, but must be at least 1")
    given = contenders if isinstance(contenders, list) else [contenders]
    default_transport = (
        registry.parse(Registry.TRANSPORT, transport) if isinstance(transport, str) else transport
    )
    entrants = _with_unique_names([_entrant(each) for each in given])
    for name, _, tables in entrants:
        _check_table_count(name, tables, spec)
    check_default_transport([sender for _, sender, _ in entrants], default_transport)
    started = time.process_time()
    scores = []
    with local_evaluator(threads) as evaluator:
        for name, sender, tables in entrants:
            trial = evaluate_table(
                spec.message,
                tables[0].rule_table if tables else None,
                seed=seed,
                specimens=networks,
                evaluate=evaluator.evaluate,
                senders=sender.sender_group(default_transport),
                companions=[table.rule_table for table in tables[1:]],
                distributions=True,
            )
            throughput_of = sender.throughput_measure(default_transport)
            scores.append(ContenderScore(name, trial, throughput_of))
    return Scores(spec.name, seed, scores, time.process_time() - started)


#: Name, sender and tables of a contender; a protocol has no tables.
_Entrant: TypeAlias = tuple[str, SenderSpec, list[Table]]


def _entrant(contender: Contender) -> _Entrant:
    if isinstance(contender, str):
        sender = parse_sender(contender)
        if sender.count != 1 or sender.rtt_ms is not None or sender.remycc is not None:
            raise ValueError(
                f"'{contender}' must be a protocol with its settings only; the specification has "
                "the number of senders and their RTTs, and load_table reads files"
            )
        return sender.name, sender, []
    if isinstance(contender, Table):
        tables = [contender]
    elif isinstance(contender, tuple):
        tables = [*contender]
    else:
        tables = [*getattr(contender, "tables", {}).values()]
    if not tables or not all(isinstance(table, Table) for table in tables):
        raise TypeError(
            f"{contender!r} must be a table, a design, the name of a protocol, or a tuple of "
            "tables that were designed together; several contenders must be a list"
        )
    name = " and ".join(table.name for table in tables)
    return name, parse_sender(f"{REMYCC}{name}=1"), tables


def _with_unique_names(entrants: list[_Entrant]) -> list[_Entrant]:
    """Adds numbers to names that occur more than once."""
    seen: dict[str, int] = {}
    named = []
    for name, sender, tables in entrants:
        seen[name] = seen.get(name, 0) + 1
        unique = name if seen[name] == 1 else f"{name} ({seen[name]})"
        named.append((unique, sender, tables))
    return named


def _check_table_count(name: str, tables: Sequence[Table], spec: Spec) -> None:
    """Raises SpecError unless there are as many tables as the specification designs.

    A protocol counts as one table.
    """
    needed = spec.designs
    if max(len(tables), 1) != len(needed):
        problem = (
            f"designs {plural(len(needed), 'table')} ({', '.join(needed)}), but {name} is "
            f"{len(tables) or 'a protocol'}"
        )
        raise SpecError(spec.name, [Violation("", problem)])


def _score_tree(score: ContenderScore) -> dict[str, Any]:
    trial = score.trial
    return {
        "name": score.name,
        "throughput_of": score.throughput_of,
        "digest": trial.digest,
        "packets_received": trial.packets_received,
        "rule_uses": [*trial.rule_uses],
        "networks": [
            {
                "link_rate_packets_per_ms": result.specimen.link_rate_packets_per_ms,
                "rtt_ms": result.specimen.rtt_ms,
                "packet_bytes": result.specimen.bottleneck.packet_bytes,
                "score": result.score,
                "measures": asdict(result.measures),
            }
            for result in trial.results
        ],
    }


def load_scores(path: str | os.PathLike[str]) -> Scores:
    """Loads the scores that `Scores.save` wrote. Raises FileError."""
    try:
        tree = json.loads(read_file(path, limit=_MAX_BYTES))
        scores = [_score_of(each) for each in tree["scores"]]
        return Scores(tree["spec"], tree["seed"], scores, tree["cpu_seconds"])
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{os.fspath(path)} is not a file that Scores.save wrote") from error


def _score_of(tree: Mapping[str, Any]) -> ContenderScore:
    results = []
    for each in tree["networks"]:
        specimen = evaluation_pb2.Specimen(
            link_rate_packets_per_ms=each["link_rate_packets_per_ms"], rtt_ms=each["rtt_ms"]
        )
        if each["packet_bytes"]:
            specimen.bottleneck.packet_bytes = each["packet_bytes"]
        measures = msgspec.convert(each["measures"], SpecimenMeasures)
        results.append(SpecimenResult(specimen, each["score"], measures))
    trial = Trial(results, tree["digest"], tree["packets_received"], tree["rule_uses"])
    return ContenderScore(tree["name"], trial, tree["throughput_of"])
