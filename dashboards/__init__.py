"""Grafana dashboards and Prometheus rules of remy-farm, as code.

`python -m dashboards` writes what is in `generated/`; docs/how-to/observability.md shows what comes
of it.
"""
