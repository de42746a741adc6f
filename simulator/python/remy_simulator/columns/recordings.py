"""Recordings of rules as columns: their uses, and the memory values that triggered them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from remy_proto.v1 import evaluation_pb2, rule_table_pb2
from remy_simulator import _native, messages

RECORDS_MEMORY = (evaluation_pb2.RECORDING_MEMORY, evaluation_pb2.RECORDING_SHARES)
COUNTS_USES = (evaluation_pb2.RECORDING_USES, *RECORDS_MEMORY)


def rule_count(table: rule_table_pb2.RuleTable) -> int:
    """Returns the number of rules of a table."""
    return [node.HasField("action") for node in table.nodes].count(True)


def memory_columns(indices: Sequence[int], counts: Sequence[int]) -> evaluation_pb2.MemoryColumns:
    """Encodes counts by index, sorted by index. Each index is stored as the difference to the one
    before."""
    before = [0, *indices]
    return evaluation_pb2.MemoryColumns(
        places=[index - last for last, index in zip(before, indices, strict=False)], counts=counts
    )


def memory_counts(columns: evaluation_pb2.MemoryColumns) -> Iterator[tuple[int, int]]:
    """Inverse of memory_columns: yields indices and their counts."""
    index = 0
    for step, count in zip(columns.places, columns.counts, strict=True):
        index += step
        yield index, count


def memory_summaries(
    outcome: evaluation_pb2.EvaluationOutcome,
) -> dict[tuple[int, int], tuple[list[int], list[int]]]:
    """Returns the memory values that triggered rules, by (rule, axis), as (buckets, counts) for
    `remy_simulator.summary_median`."""
    summaries: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    basic_rows = len(outcome.rule_uses) * messages.BASIC_AXES
    for index, count in memory_counts(outcome.memory):
        row, bucket = divmod(index, _native.MEMORY_BUCKETS)
        if row < basic_rows:
            rule, axis = divmod(row, messages.BASIC_AXES)
        else:
            rule, axis = divmod(row - basic_rows, messages.AXES - messages.BASIC_AXES)
            axis += messages.BASIC_AXES
        buckets, counts = summaries.setdefault((rule, axis), ([], []))
        buckets.append(bucket)
        counts.append(count)
    return summaries
