"""Records of a table's rules as columns: their uses, and the memory that triggered them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from remy_proto.v1 import evaluation_pb2, rule_table_pb2
from remy_simulator import _native, messages

RECORDS_MEMORY = (evaluation_pb2.RECORDING_MEMORY, evaluation_pb2.RECORDING_SHARES)
COUNTS_USES = (evaluation_pb2.RECORDING_USES, *RECORDS_MEMORY)


def rule_count(table: rule_table_pb2.RuleTable) -> int:
    """Rules of a table."""
    return [node.HasField("action") for node in table.nodes].count(True)


def memory_columns(places: Sequence[int], counts: Sequence[int]) -> evaluation_pb2.MemoryColumns:
    """Counts by place, in the places' order: each place is told by its distance to the one
    before."""
    before = [0, *places]
    return evaluation_pb2.MemoryColumns(
        places=[place - last for last, place in zip(before, places, strict=False)], counts=counts
    )


def memory_counts(columns: evaluation_pb2.MemoryColumns) -> Iterator[tuple[int, int]]:
    """The inverse of memory_columns: places and their counts."""
    place = 0
    for step, count in zip(columns.places, columns.counts, strict=True):
        place += step
        yield place, count


def memory_summaries(
    outcome: evaluation_pb2.EvaluationOutcome,
) -> dict[tuple[int, int], tuple[list[int], list[int]]]:
    """Memory that triggered the rules, by (rule, axis): (buckets, counts), as
    `remy_simulator.summary_median` takes them."""
    summaries: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    usual_rows = len(outcome.rule_uses) * messages.USUAL_AXES
    for place, count in memory_counts(outcome.memory):
        row, bucket = divmod(place, _native.MEMORY_BUCKETS)
        if row < usual_rows:
            rule, axis = divmod(row, messages.USUAL_AXES)
        else:
            rule, axis = divmod(row - usual_rows, messages.AXES - messages.USUAL_AXES)
            axis += messages.USUAL_AXES
        buckets, counts = summaries.setdefault((rule, axis), ([], []))
        buckets.append(bucket)
        counts.append(count)
    return summaries
