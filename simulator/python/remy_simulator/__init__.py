"""Fast, deterministic packet simulator and evaluator of RemyCC rule tables.

`evaluate_columns` is a pure function of an EvaluationRequest message. The other
functions are what a search needs in addition: random numbers and arithmetic with the same bits on
every machine.
"""

from remy_simulator._native import (
    Cancellation,
    Cancelled,
    InvalidTable,
    RuleTable,
    exact_sum,
    exp,
    from_coordinates,
    log,
    log2,
    mix,
    mixed,
    normal,
    perturbation_noise,
    power,
    shuffled,
    to_coordinates,
    uniform,
    uniforms,
)
from remy_simulator._native import median as summary_median
from remy_simulator.columns import (
    ImpossibleOutcome,
    InvalidRequest,
    PreparedRequest,
    evaluate_columns,
    native_tables,
)
from remy_simulator.fingerprint import (
    fingerprint,
    network_signals_fingerprint,
    path_model_fingerprint,
    protocols_fingerprint,
    signals_fingerprint,
)

__all__ = [
    "Cancellation",
    "Cancelled",
    "ImpossibleOutcome",
    "InvalidRequest",
    "InvalidTable",
    "PreparedRequest",
    "RuleTable",
    "evaluate_columns",
    "exact_sum",
    "exp",
    "fingerprint",
    "from_coordinates",
    "log",
    "log2",
    "mix",
    "mixed",
    "native_tables",
    "network_signals_fingerprint",
    "normal",
    "path_model_fingerprint",
    "perturbation_noise",
    "power",
    "protocols_fingerprint",
    "shuffled",
    "signals_fingerprint",
    "summary_median",
    "to_coordinates",
    "uniform",
    "uniforms",
]
