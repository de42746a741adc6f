"""Grafana dashboards and Prometheus rules of remy-farm, as code.

`python -m dashboards` writes `generated/`. docs/how-to/observability.md shows the dashboards.
"""
