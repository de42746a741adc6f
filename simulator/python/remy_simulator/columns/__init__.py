"""Requests and outcomes as columns, without an object for each simulation.

A request's specimens are columns (`pack_specimens`), and so is an outcome: one score per simulation
if there is an objective, otherwise the results of every sender. Requests can be split into slices,
and the outcomes of slices assembled to exactly the same bytes, whatever the slices and their order.
Columns of numbers are bytes: little-endian, 8 bytes per number (`numpy.frombuffer` and
`memoryview.cast` read them).
"""

from remy_simulator.columns.assembly import assemble
from remy_simulator.columns.checks import ImpossibleOutcome, check
from remy_simulator.columns.evaluation import (
    InvalidRequest,
    PreparedRequest,
    evaluate_columns,
    native_tables,
)
from remy_simulator.columns.gradient import gradient_moments
from remy_simulator.columns.network_recording import record, recorded_outcome
from remy_simulator.columns.outcomes import digest, score_rows, specimen_outcomes
from remy_simulator.columns.recordings import memory_summaries, rule_count
from remy_simulator.columns.slices import Slice, Slicing, shared_part, slice_request, whole
from remy_simulator.columns.specimens import (
    pack_specimens,
    packed,
    specimen_count,
    unpack_specimens,
)

__all__ = [
    "ImpossibleOutcome",
    "InvalidRequest",
    "PreparedRequest",
    "Slice",
    "Slicing",
    "assemble",
    "check",
    "digest",
    "evaluate_columns",
    "gradient_moments",
    "memory_summaries",
    "native_tables",
    "pack_specimens",
    "packed",
    "record",
    "recorded_outcome",
    "rule_count",
    "score_rows",
    "shared_part",
    "slice_request",
    "specimen_count",
    "specimen_outcomes",
    "unpack_specimens",
    "whole",
]
