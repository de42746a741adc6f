"""The congestion signals, each declared once: names, units, formulas and their sources."""

from dataclasses import dataclass
from typing import Final

from remy_proto.v1 import rule_table_pb2


@dataclass(frozen=True)
class Form:
    """A signal as rules of one kind look at it."""

    signal: rule_table_pb2.Signal
    #: Markdown, as docs/signals.md prints it.
    formula: str
    #: Of its value: ms, packets, or 1 for what has none.
    unit: str = "1"
    #: In which reports print its thresholds: ms, packets or %; empty prints the bare number.
    printed_in: str = ""
    #: Whether it may be 0 for ever, so that 0 does not tell who has measured nothing.
    may_stay_0: bool = False

    @property
    def name(self) -> str:
        """The name in specifications: SIGNAL_SEND_EWMA is send_ewma."""
        return rule_table_pb2.Signal.Name(self.signal).removeprefix("SIGNAL_").lower()


@dataclass(frozen=True)
class Axis:
    """One number of a sender's memory, and how rules of either kind look at it."""

    absolute: Form
    source: str
    scale_free: Form


def _ratio(form: Form, source: str) -> Axis:
    """An axis that is without a unit of time or packets, so that all rules look at it alike."""
    return Axis(form, source, form)


#: By native axis, whose order is that of Signal in simulator/src/table/rule_table.h.
AXES: Final = (
    Axis(
        Form(
            rule_table_pb2.SIGNAL_SEND_EWMA,
            "*a*(1/8, time between the sending times that the last two ACKs echo)",
            unit="ms",
        ),
        "4.1",
        Form(rule_table_pb2.SIGNAL_SEND_RATIO, "over `rec_ewma`"),
    ),
    Axis(
        Form(rule_table_pb2.SIGNAL_REC_EWMA, "*a*(1/8, time between the last two ACKs)", unit="ms"),
        "4.1",
        Form(
            rule_table_pb2.SIGNAL_AGE,
            "packets of this on period acknowledged after the first; 256 more for who "
            "[remembers](algorithm.md#age-and-memory) another",
            unit="packets",
            printed_in="packets",
        ),
    ),
    _ratio(
        Form(rule_table_pb2.SIGNAL_RTT_RATIO, "last RTT / smallest RTT of this on period"),
        "4.1",
    ),
    Axis(
        Form(
            rule_table_pb2.SIGNAL_SLOW_REC_EWMA,
            "*a*(1/256, time between the last two ACKs)",
            unit="ms",
        ),
        "learnability study, 3.2",
        Form(rule_table_pb2.SIGNAL_SLOW_REC_RATIO, "over `rec_ewma`"),
    ),
    Axis(
        Form(
            rule_table_pb2.SIGNAL_RTT_DIFF,
            "last RTT - smallest RTT of this on period",
            printed_in="ms",
            may_stay_0=True,
            unit="ms",
        ),
        "`.dna` format",
        Form(
            rule_table_pb2.SIGNAL_RTT_DIFF_RATIO,
            "over `rec_ewma`, packets of its own that a sender waits for; Vegas' *diff* "
            "(Brakmo and Peterson 1995, section 3.2)",
            unit="packets",
            printed_in="packets",
            may_stay_0=True,
        ),
    ),
    Axis(
        Form(
            rule_table_pb2.SIGNAL_QUEUEING_DELAY,
            "`rec_ewma` \N{MULTIPLICATION SIGN} packets that the last ACK accounts for, "
            "received or lost",
            printed_in="ms",
            unit="ms",
        ),
        "`.dna` format",
        Form(rule_table_pb2.SIGNAL_QUEUEING_DELAY_RATIO, "over the smallest RTT", printed_in="%"),
    ),
    _ratio(
        Form(
            rule_table_pb2.SIGNAL_LOSS_RATE,
            "*a*(1/256, 1 for a lost packet, 0 for one received), packet by packet",
            printed_in="%",
            may_stay_0=True,
        ),
        "R+",
    ),
    Axis(
        Form(
            rule_table_pb2.SIGNAL_QUEUE_LENGTH,
            "*a*(1/8, packets that the acknowledged one found at the bottleneck)",
            printed_in="packets",
            may_stay_0=True,
            unit="packets",
        ),
        "INT; R+",
        Form(
            rule_table_pb2.SIGNAL_QUEUE_RATIO,
            "times `rec_ewma` / smallest RTT, what the path holds at the measured rate",
            printed_in="%",
            may_stay_0=True,
        ),
    ),
    _ratio(
        Form(
            rule_table_pb2.SIGNAL_UTILIZATION,
            "*a*(1/8, share of the time since the last acknowledged packet left the bottleneck "
            "for which it was busy)",
            printed_in="%",
        ),
        "INT; HPCC, 3.2; R+",
    ),
    _ratio(
        Form(
            rule_table_pb2.SIGNAL_ECN_FRACTION,
            "*a*(1/16, share of the packets that the ACK is for which the queue marked)",
            printed_in="%",
            may_stay_0=True,
        ),
        "DCTCP (RFC 8257, 3.3); R+",
    ),
)
#: All forms by name.
FORMS: Final = {form.name: form for axis in AXES for form in (axis.absolute, axis.scale_free)}
