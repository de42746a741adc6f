"""Explaining rule tables: what signals are worth, which rules can be merged, how two tables differ.

Trees and actions are pure values; whatever is measured goes through a `Bench`, which is given the
evaluator.
"""

from remy_services.explain.bench import Bench
from remy_services.explain.difference import Change, Difference, compare_tables
from remy_services.explain.errors import ExplainError
from remy_services.explain.merging import Merge, Merging, is_without_loss, merge_siblings
from remy_services.explain.progress import OnProgress, Progress
from remy_services.explain.signals import SignalStudy, SignalWorth, worth_of_signals

__all__ = [
    "Bench",
    "Change",
    "Difference",
    "ExplainError",
    "Merge",
    "Merging",
    "OnProgress",
    "Progress",
    "SignalStudy",
    "SignalWorth",
    "compare_tables",
    "is_without_loss",
    "merge_siblings",
    "worth_of_signals",
]
