"""Whether the cluster is still the one that was connected to, without a clock or a cluster.

A head that is started anew without its memory, or a raylet that is gone, leaves a connection that
never recovers; only a new process gets another one.
"""

from __future__ import annotations

# A census may miss what is just being started.
_IN_A_ROW = 3


class ClusterWatch:
    """Judges what is seen of a cluster. Times are seconds on one monotonic clock."""

    def __init__(self, patience_seconds: float, now: float) -> None:
        """A cluster that has not answered for `patience_seconds` is lost."""
        self._patience_seconds = patience_seconds
        self._answered_at = now
        self._forgotten = 0

    def silent(self, now: float) -> str:
        """A question was not answered. Why the cluster counts as lost; empty if it does not."""
        seconds = now - self._answered_at
        if seconds < self._patience_seconds:
            return ""
        return f"the cluster has not answered for {seconds:.0f} s"

    def answered(
        self, *, own_node_is_alive: bool, known: frozenset[str], running: frozenset[str], now: float
    ) -> str:
        """What a census says: actors that the head knows, and of those that ran, who should.

        Why the cluster counts as lost; empty if it does not.
        """
        self._answered_at = now
        if not own_node_is_alive:
            return "the node of this driver is gone"
        self._forgotten = self._forgotten + 1 if running and not running & known else 0
        if self._forgotten >= _IN_A_ROW:
            return "the head has forgotten all actors"
        return ""
