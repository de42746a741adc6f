"""What the searches of editions do differently, switch by switch.

A specification names its edition (`proto/README.md`), and with it the search that it is for. Where
that search was mended since, a switch here says so, so that a design of an older edition goes on to
the bytes that it would have come to.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from remy_farm.completion import FIRST_EDITION, edition_of
from remy_farm.v1 import spec_pb2


@dataclass(frozen=True)
class SearchEdition:
    """The search that an edition stands for."""

    #: Tables begin with a rule for senders that have measured nothing, which is never divided and
    #: keeps no window; otherwise it is that of a whole region, and is applied again at each ACK of
    #: an earlier on period.
    has_start_rule: bool
    #: Uses count as shares of their network's, or a fast link would choose what is divided.
    counts_shares: bool
    #: Slopes are corrected for averages that began at zero.
    corrects_bias: bool
    #: Differences between antithetic scores count in units of their step's median, within limits:
    #: no freak specimen steers the climb, or is remembered by it.
    standardizes: bool
    #: A step has more specimens of less time where on and off periods are short.
    shortens_specimens: bool
    #: A signal whose median is its smallest value is not divided on.
    passes_over_atoms: bool

    @classmethod
    def of(cls, spec: spec_pb2.DesignSpec) -> SearchEdition:
        """The search that a complete specification is for; the paper's stays as it is described."""
        is_first = edition_of(spec) == FIRST_EDITION
        return FIRST if is_first or spec.search.mode == spec_pb2.SEARCH_MODE_PAPER else MENDED


_SWITCHES = len(fields(SearchEdition))
FIRST = SearchEdition(*[False] * _SWITCHES)
MENDED = SearchEdition(*[True] * _SWITCHES)
