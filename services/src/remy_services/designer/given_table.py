"""A table that a design begins with in place of the search's own first one."""

from __future__ import annotations

import hashlib
import json

from remy_farm.v1 import spec_pb2
from remy_services.designer.errors import DesignerError
from remy_services.designer.spec_identity import search_digest
from remy_services.remycc.readable import signal_name
from remy_simulator import RuleTable
from remy_simulator.messages import axis_of


def with_signals_of(spec: spec_pb2.DesignSpec, table: RuleTable) -> RuleTable:
    """The table as one that may be divided on the specification's signals.

    Raises DesignerError if it is divided on any other.
    """
    allowed = [axis_of(signal) for signal in spec.signals]
    for thresholds, _ in table.nodes():
        for axis, _ in thresholds:
            if axis not in allowed:
                raise DesignerError(
                    f"the table to begin with is divided on {signal_name(axis)}; the "
                    f"specification's signals are {', '.join(map(signal_name, allowed))}"
                )
    return RuleTable(allowed, table.nodes(), table.domain_upper)


def design_digest(spec: spec_pb2.DesignSpec, given: RuleTable | None) -> str:
    """What may not change while a design goes on: the search, and the table it was given."""
    digest = search_digest(spec)
    if given is None:
        return digest
    table = json.dumps([given.signals, given.domain_upper, given.nodes()], allow_nan=False)
    return hashlib.sha256(f"{digest} {table}".encode()).hexdigest()
