"""Evaluators: who simulates what a designer asks for.

An evaluation is a pure function of its request. An evaluator is a transport around it: it may split
a request into tasks, repeat and reorder them, and the outcome is the same, bit for bit.
"""

from remy_services.evaluation.evaluator import EvaluationProgress, Evaluator, OnProgress
from remy_services.evaluation.local import LocalEvaluator
from remy_services.evaluation.shared import (
    Evaluation,
    ResultsDiffer,
    Share,
    SharedEvaluator,
    TaskQuarantined,
)

__all__ = [
    "Evaluation",
    "EvaluationProgress",
    "Evaluator",
    "LocalEvaluator",
    "OnProgress",
    "ResultsDiffer",
    "Share",
    "SharedEvaluator",
    "TaskQuarantined",
]
