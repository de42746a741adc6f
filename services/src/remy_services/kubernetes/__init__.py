"""Workers as Kubernetes Jobs: one batch/v1 Job for each design that runs.

`reconcile` decides, and touches nothing: designs and what the cluster holds go in, actions and
sentences come out. A `Launcher` carries that out against a `Cluster`; only the module of that name
needs the client of the extra `kubernetes`.
"""
