"""What remy-farm costs and how exact it is: one figure a module (docs/benchmarks.md).

`make bench`, or `python -m benchmarks [--only NAME] [--json]`. The tests assert the figures that do
not depend on the clock, and define nothing of them again.
"""
