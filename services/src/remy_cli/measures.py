"""Table cells of measures that several commands print."""

from __future__ import annotations

from typing import Final

from remy_farm.analysis import number
from remy_farm.evaluation import PERCENTS, PacketMeasures

#: Column heads of `rtt_cells`.
PERCENT_HEADS: Final = tuple(f"{percent} %" for percent in PERCENTS)


def rtt_cells(measures: PacketMeasures) -> list[str]:
    """Returns table cells of the percentiles of the RTT, in ms."""
    return [number(getattr(measures, f"rtt_p{percent}_ms")) for percent in PERCENTS]
