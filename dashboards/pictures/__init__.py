"""Pictures of the dashboards without Grafana, from the data of a real Prometheus.

`make dashboard-pictures` starts a small farm and draws docs/images/dashboard-*.png.
"""
