"""The server: what a coordinator is made of, started and ended in order."""

from remy_services.coordinator.serving.server import CoordinatorServer, serve
from remy_services.coordinator.serving.settings import ServerSettings, SettingsError, TlsFiles
from remy_services.coordinator.serving.surroundings import Surroundings

__all__ = [
    "CoordinatorServer",
    "ServerSettings",
    "SettingsError",
    "Surroundings",
    "TlsFiles",
    "serve",
]
