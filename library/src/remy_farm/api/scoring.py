"""Scoring: tables and protocols on networks drawn from a specification."""

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
from remy_farm.analysis.wording import number, several, with_error
from remy_farm.api.showing import Plot, Rows, Tabular, rows_of
from remy_farm.api.spec import Spec
from remy_farm.api.table import Table
from remy_farm.evaluation.local import LocalEvaluator
from remy_farm.evaluation.measures import (
    Estimate,
    SpecimenMeasures,
    SpecimenResult,
    Summary,
    Trial,
    estimate,
    evaluate_table,
    link_rate_mbps,
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

#: What can be scored: a table, a design, a protocol in words as `remy-farm protocols` lists them,
#: or a tuple of tables that were designed together, in the specification's order.
Contender: TypeAlias = "Table | Design | str | tuple[Table, ...]"

_MOST_BYTES = 1 << 30


def local_evaluator(threads: int | None) -> AbstractContextManager[LocalEvaluator]:
    """An evaluator on threads of this process, the CPUs allowed unless given."""
    return closing(LocalEvaluator(threads or allowed_cpus()))


@dataclass(frozen=True)
class ContenderScore:
    """The results of one contender on all networks."""

    name: str
    trial: Trial
    #: Which packets count as throughput: "packets_received" or "packets_in_order".
    throughput_of: str

    def summary(self) -> Summary:
        """The mean score with its standard error, and medians of throughput and delay."""
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
        #: Names the networks and all other random draws.
        self.seed = seed
        self._scores = {score.name: score for score in scores}
        #: CPU time of all simulations.
        self.cpu_seconds = cpu_seconds

    def __getitem__(self, name: str) -> ContenderScore:
        """A contender's score by its name. Raises KeyError."""
        return self._scores[name]

    def __iter__(self) -> Iterator[ContenderScore]:
        return iter(self._scores.values())

    def __len__(self) -> int:
        return len(self._scores)

    @property
    def names(self) -> list[str]:
        """The contenders' names, in the order in which they were given."""
        return [*self._scores]

    @property
    def networks(self) -> int:
        """The number of networks on which each contender was simulated."""
        return max((len(score.trial.results) for score in self), default=0)

    def difference(self, name: str, other: str) -> Estimate | None:
        """The mean over networks of the score of `name` minus that of `other`, with its standard
        error; None where no network could be scored under both. Raises KeyError."""
        pairs = zip(self[name].trial.results, self[other].trial.results, strict=True)
        return estimate(
            [
                None if first.score is None or second.score is None else first.score - second.score
                for first, second in pairs
            ]
        )

    def rows(self) -> Rows:
        """A row for each contender: its mean score, and medians of throughput and delay."""
        kinds = {
            "name": str,
            "score_mean": float,
            "score_standard_error": float,
            "throughput_over_link_rate_median": float,
            "delay_over_rtt_median": float,
            "networks": int,
            "networks_scored": int,
            "digest": str,
        }
        return rows_of(kinds, [_summary_row(score) for score in self])

    def by_network(self) -> Rows:
        """A row for each contender on each network."""
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
        }
        return rows_of(
            kinds,
            [
                {
                    "name": score.name,
                    "network": place,
                    "rate_mbps": link_rate_mbps(result.specimen),
                    "rtt_ms": result.specimen.rtt_ms,
                    "senders": result.measures.senders,
                    "score": result.score,
                    "throughput_over_link_rate": result.measures.throughput_over_link_rate,
                    "delay_over_rtt": result.measures.delay_over_rtt,
                    "normalized_score_per_sender": result.measures.normalized_score_per_sender,
                }
                for score in self
                for place, result in enumerate(score.trial.results)
            ],
        )

    def plot(self) -> Plot:
        """Draws throughput against delay: every network, medians, ellipses of one standard
        deviation, as the papers do (TCP ex Machina, Figure 4)."""
        from remy_farm.analysis.plots import COLORS, Cloud, draw_throughput_delay

        clouds = [
            Cloud(score.name, COLORS[place % len(COLORS)], _points(score.trial))
            for place, score in enumerate(self)
        ]
        return Plot(draw_throughput_delay(clouds, title=f"{self.spec_name}: each network"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all of it as JSON, for `load_scores`. Raises FileError."""
        tree = {
            "spec": self.spec_name,
            "seed": self.seed,
            "cpu_seconds": self.cpu_seconds,
            "scores": [_score_tree(score) for score in self],
        }
        write_file(path, json.dumps(tree, indent=1, allow_nan=False) + "\n")

    def _head_and_cells(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        head = ("", "score", "throughput / link rate", "delay / RTT")
        cells = []
        for score in self:
            summary = score.summary()
            cells.append(
                (
                    score.name,
                    with_error(summary.score),
                    number(summary.throughput_over_link_rate),
                    number(summary.delay_over_rtt),
                )
            )
        return head, cells

    def __repr__(self) -> str:
        head, cells = self._head_and_cells()
        return "\n".join([self._title(), *wording.aligned(head, cells)])

    def _title(self) -> str:
        return (
            f"{self.spec_name}: {several(len(self), 'contender')} on "
            f"{several(self.networks, 'network')} (mean score, medians)"
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

    The same seed draws the same networks whatever is scored, so that contenders compare network by
    network. Packets count as throughput when they are received, for protocols when in order.

    Args:
        contenders: One, or a list: tables, designs, protocols in words ("cubic", "bbr,variant=v3").
        spec: The networks, load, objective and simulated time.
        networks: How many networks are drawn.
        seed: Names them, and all other random draws.
        transport: What carries RemyCCs, as "tcp,variant=linux"; datagrams unless given.
        threads: Threads to simulate with; the CPUs allowed unless given.

    Returns:
        The scores by contender.

    Raises:
        SpecError: The specification designs several tables, and a contender is not as many.
        ValueError: A protocol or transport is unknown, or `networks` is not positive.
        TypeError: A contender is something else.
        InvalidRequest: A contender cannot run on such networks, as protocols cannot where senders
            have noisy clocks.
    """
    if not networks >= 1:
        raise ValueError(f"networks is {networks}, but must be at least 1")
    given = contenders if isinstance(contenders, list) else [contenders]
    usual = (
        registry.parse(Registry.TRANSPORT, transport) if isinstance(transport, str) else transport
    )
    entrants = _with_names([_entrant(each) for each in given])
    for name, words, tables in entrants:
        _check(name, words, tables, spec)
    check_default_transport([words for _, words, _ in entrants], usual)
    started = time.process_time()
    scores = []
    with local_evaluator(threads) as evaluator:
        for name, words, tables in entrants:
            trial = evaluate_table(
                spec.message,
                tables[0].rule_table if tables else None,
                seed=seed,
                specimens=networks,
                evaluate=evaluator.evaluate,
                senders=words.sender_group(usual),
                companions=[table.rule_table for table in tables[1:]],
            )
            scores.append(ContenderScore(name, trial, words.throughput_measure(usual)))
    return Scores(spec.name, seed, scores, time.process_time() - started)


_Entrant: TypeAlias = tuple[str, SenderSpec, list[Table]]


def _entrant(contender: Contender) -> _Entrant:
    if isinstance(contender, str):
        words = parse_sender(contender)
        if words.count != 1 or words.rtt_ms is not None or words.remycc is not None:
            raise ValueError(
                f"'{contender}' must be a protocol and its settings; the specification has the "
                "number of senders and their RTTs, and load_table reads files"
            )
        return words.name, words, []
    if isinstance(contender, Table):
        tables = [contender]
    elif isinstance(contender, tuple):
        tables = [*contender]
    else:
        tables = [*getattr(contender, "tables", {}).values()]
    if not tables or not all(isinstance(table, Table) for table in tables):
        raise TypeError(
            f"{contender!r} must be a table, a design, a protocol in words, or a tuple of tables "
            "that were designed together; several contenders are a list"
        )
    name = " and ".join(table.name for table in tables)
    return name, parse_sender(f"{REMYCC}{name}=1"), tables


def _with_names(entrants: list[_Entrant]) -> list[_Entrant]:
    """The entrants by names that tell them apart."""
    seen: dict[str, int] = {}
    named = []
    for name, words, tables in entrants:
        seen[name] = seen.get(name, 0) + 1
        unique = name if seen[name] == 1 else f"{name} ({seen[name]})"
        named.append((unique, words, tables))
    return named


def _check(name: str, words: SenderSpec, tables: Sequence[Table], spec: Spec) -> None:
    """Raises SpecError unless there is a table for each that the specification designs."""
    needed = spec.designs
    if len(tables or [words]) != len(needed):
        problem = (
            f"designs {several(len(needed), 'table')} ({', '.join(needed)}), but {name} is "
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
    """The scores that `Scores.save` wrote. Raises FileError."""
    try:
        tree = json.loads(read_file(path, limit=_MOST_BYTES))
        scores = [_score_of(each) for each in tree["scores"]]
        return Scores(tree["spec"], tree["seed"], scores, tree["cpu_seconds"])
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{os.fspath(path)} holds no scores as Scores.save writes them") from error


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
