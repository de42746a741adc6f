"""Evaluators that several designs share: tasks, leases, fairness, and ways to the workers."""
