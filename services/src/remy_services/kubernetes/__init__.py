"""Runs workers as Kubernetes Jobs, one batch/v1 Job per running design.

`reconcile` is pure: it maps designs and observed objects to actions and status sentences. A
`Launcher` executes them on a `Cluster`. Only the module `cluster` needs the client of the extra
`kubernetes`.
"""
