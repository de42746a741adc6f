"""Evaluators that several designs share: tasks, leases and fairness, and the ways to the workers."""
