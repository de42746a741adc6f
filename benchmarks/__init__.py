"""Measures what remy-farm costs and how exact it is: one benchmark per module
(docs/results/benchmarks.md).

Run them with `make bench`, or `python -m benchmarks [--only NAME] [--json]`. The tests assert the
results that do not depend on a clock, and call the same modules to get them.
"""
