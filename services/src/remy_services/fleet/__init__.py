"""Evaluators that several designs share: tasks, leases, fairness, and ways to the workers."""

from remy_services.fleet.local import LocalFleet

__all__ = ["LocalFleet"]
