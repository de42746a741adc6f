"""The server: what a coordinator is made of, started and ended in order."""

from remy_services.coordinator.serving.server import serve
from remy_services.coordinator.serving.settings import ServerSettings, SettingsError, TlsFiles

__all__ = ["ServerSettings", "SettingsError", "TlsFiles", "serve"]
