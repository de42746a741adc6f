"""How numbers and events are worded for people, on the command line and on the page."""

from __future__ import annotations

from remy_farm.v1 import progress_pb2
from remy_services.report.trial import Estimate

_PLUS_MINUS = "\N{PLUS-MINUS SIGN}"

_STOP_REASONS = {
    progress_pb2.STOP_REASON_EPOCHS: "the specification's number of epochs has passed",
    progress_pb2.STOP_REASON_RULES: "the table holds the specification's number of rules",
    progress_pb2.STOP_REASON_STEPS: "the number of steps allowed was made",
    progress_pb2.STOP_REASON_CPU_SECONDS: "the CPU time allowed was used",
    progress_pb2.STOP_REASON_WALL_SECONDS: "the wall time allowed has passed",
    progress_pb2.STOP_REASON_EPOCHS_WITHOUT_GAIN: "several epochs in a row brought no gain",
    progress_pb2.STOP_REASON_CANCELLED: "somebody asked for it",
    progress_pb2.STOP_REASON_SCHEDULE_COMPLETE: "the search has walked its whole schedule",
}


def stop_reason(reason: progress_pb2.StopReason) -> str:
    """Why a design is finished, to follow "finished because"."""
    return _STOP_REASONS.get(reason, "of an unknown reason")


def finished_sentence(finished: progress_pb2.DesignFinished) -> str:
    """How a design ended."""
    sentence = f"finished after {several(finished.epochs, 'epoch')} because "
    sentence += stop_reason(finished.reason)
    if finished.HasField("closing"):
        verdict = "kept" if finished.closing.accepted else "dropped"
        gain = with_error(finished.closing.gain, signed=True)
        sentence += f"; the changes of the unfinished epoch were {verdict} (gain {gain})"
    return sentence


def number(value: float | None, digits: int = 4) -> str:
    """A number to a few significant digits; a dash for none."""
    return "-" if value is None else f"{value:.{digits}g}"


def with_error(value: Estimate | progress_pb2.Estimate | None, *, signed: bool = False) -> str:
    """A mean and its standard error, with the digits that the error makes worth showing."""
    if value is None:
        return "-"
    sign = "+" if signed else ""
    error = _error(value)
    if not error:
        return f"{value.mean:{sign}.4g}"
    decimals = max(0, _decimals(error))
    return f"{value.mean:{sign}.{decimals}f} {_PLUS_MINUS} {error:.{decimals}f}"


def count(value: float) -> str:
    """A large count with a unit prefix."""
    for limit, divisor, suffix in ((1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if value >= limit:
            return f"{value / divisor:.3g}{suffix}"
    return f"{value:.0f}"


def several(amount: int, noun: str) -> str:
    """An amount of things."""
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def duration(seconds: float) -> str:
    """A time span for people."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def _error(value: Estimate | progress_pb2.Estimate) -> float | None:
    if isinstance(value, Estimate):
        return value.standard_error
    return value.standard_error if value.HasField("standard_error") else None


def _decimals(error: float) -> int:
    """Digits after the point up to the error's second significant one."""
    exponent = int(f"{error:e}".partition("e")[2])
    return 1 - exponent
