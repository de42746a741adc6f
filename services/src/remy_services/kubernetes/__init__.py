"""Workers as Kubernetes Jobs: one batch/v1 Job for each design that runs.

`reconcile` decides, and touches nothing: designs and what the cluster holds go in, actions and
sentences come out. A `Launcher` carries that out against a `Cluster`. The real one is in
`remy_services.kubernetes.cluster`, which is not imported here: its client is optional.
"""

from remy_services.kubernetes.launcher import Launcher, Report
from remy_services.kubernetes.manifest import (
    ClusterRefused,
    ClusterUnreachable,
    ConfigurationError,
    Design,
    LauncherSettings,
    Load,
    WorkerLimits,
    WorkersPhase,
    beyond_limits,
    design_of,
    read_settings,
)
from remy_services.kubernetes.observed import PodPhaseCounts

__all__ = [
    "ClusterRefused",
    "ClusterUnreachable",
    "ConfigurationError",
    "Design",
    "Launcher",
    "LauncherSettings",
    "Load",
    "PodPhaseCounts",
    "Report",
    "WorkerLimits",
    "WorkersPhase",
    "beyond_limits",
    "design_of",
    "read_settings",
]
