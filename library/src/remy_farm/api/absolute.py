"""Converts a scale-free table to absolute rules, and measures the loss in score."""

from __future__ import annotations

from typing import Any

from remy_farm.analysis import wording
from remy_farm.analysis.export import ExportLoss, best_export, measure_loss
from remy_farm.analysis.wording import format_estimate, number, percentage
from remy_farm.api.scoring import local_evaluator
from remy_farm.api.showing import Rows, Tabular, rows_of
from remy_farm.api.spec import Spec
from remy_farm.api.table import Table
from remy_farm.remycc import RemyCC
from remy_farm.specification.checking import check_single_table


class AbsoluteTable(Tabular):
    """The absolute table of a scale-free one, and the scores of both."""

    def __init__(self, scale_free: Table, table: Table, loss: ExportLoss) -> None:
        """Is called by `Table.absolute`."""
        self.scale_free = scale_free
        #: The table with absolute rules, which `Table.save` writes as .dna.
        self.table = table
        #: Results of both tables, and the mean difference in score over networks.
        self.loss = loss

    def rows(self) -> Rows:
        """Returns a row per table: rules, mean score and loss, median throughput and delay."""
        kinds = {
            "table": str,
            "rules": int,
            "networks": int,
            "score_mean": float,
            "score_standard_error": float,
            "throughput_over_link_rate_median": float,
            "delay_over_rtt_median": float,
            "loss_mean": float,
        }
        return rows_of(kinds, [self._row(is_exported) for is_exported in (False, True)])

    def _row(self, is_exported: bool) -> dict[str, Any]:
        summary = self.loss.exported if is_exported else self.loss.scale_free
        known = summary.score
        return {
            "table": "exported" if is_exported else "scale-free",
            "rules": len(self.table if is_exported else self.scale_free),
            "networks": summary.specimens,
            "score_mean": None if known is None else known.mean,
            "score_standard_error": None if known is None else known.standard_error,
            "throughput_over_link_rate_median": summary.throughput_over_link_rate,
            "delay_over_rtt_median": summary.delay_over_rtt,
            "loss_mean": summary.packets.loss,
        }

    def __repr__(self) -> str:
        cells = [
            (
                row["table"],
                str(row["rules"]),
                format_estimate(summary.score),
                number(row["throughput_over_link_rate_median"]),
                number(row["delay_over_rtt_median"]),
                percentage(row["loss_mean"]),
            )
            for row, summary in zip(
                self.rows().to_dicts(), (self.loss.scale_free, self.loss.exported), strict=True
            )
        ]
        head = ("", "rules", "score", "throughput / link rate", "delay / RTT", "loss")
        change = format_estimate(self.loss.difference, signed=True)
        title = f"{self.table.name} with absolute rules: the score changed by {change}"
        return "\n".join([title, *wording.aligned(head, cells)])


def absolute_table(
    table: Table,
    spec: Spec,
    *,
    cells: int,
    climb_steps: int,
    networks: int,
    seed: int,
    threads: int | None,
) -> AbsoluteTable:
    """Converts a scale-free table to absolute rules; see `Table.absolute`."""
    check_single_table(spec.message, source=spec.source)
    scale_free = table.rule_table
    with local_evaluator(threads) as evaluator:
        absolute = best_export(
            scale_free,
            spec.message,
            cells,
            seed=seed ^ 1,
            specimens=networks,
            evaluate=evaluator.evaluate,
            climb_steps=climb_steps,
        )
        loss = measure_loss(
            spec.message,
            scale_free,
            absolute,
            seed=seed,
            specimens=networks,
            evaluate=evaluator.evaluate,
        )
    kept = Table(RemyCC(absolute, table.remycc.dna_metadata), table.name)
    return AbsoluteTable(table, kept, loss)
