"""Workers as Kubernetes Jobs: one batch/v1 Job for each design that runs.

`reconcile` decides, and touches nothing: designs and what the cluster holds go in, actions and
sentences come out. A `Launcher` carries that out against a `Cluster`. The real one is in
`remy_services.kubernetes.cluster`, which is not imported here: its client is optional.
"""

from remy_services.kubernetes.census import Census
from remy_services.kubernetes.configuration import read_settings
from remy_services.kubernetes.designs import Design, Load, Phase, design_of
from remy_services.kubernetes.errors import ConfigurationError, Refused, Unreachable
from remy_services.kubernetes.launcher import Launcher, Report
from remy_services.kubernetes.manifest import beyond_limits
from remy_services.kubernetes.settings import LauncherSettings, Limits

__all__ = [
    "Census",
    "ConfigurationError",
    "Design",
    "Launcher",
    "LauncherSettings",
    "Limits",
    "Load",
    "Phase",
    "Refused",
    "Report",
    "Unreachable",
    "beyond_limits",
    "design_of",
    "read_settings",
]
