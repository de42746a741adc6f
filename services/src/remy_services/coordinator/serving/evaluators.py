"""Who evaluates for the jobs, by the kind that was asked for."""

from __future__ import annotations

from remy_services.coordinator.serving.settings import ServerSettings, SettingsError
from remy_services.evaluation import SharedEvaluator
from remy_services.fleet import LocalFleet


def make_evaluator(settings: ServerSettings) -> SharedEvaluator:
    """The evaluator, to be used in the running event loop. Raises SettingsError."""
    match settings.evaluator:
        case "local":
            return LocalFleet(settings.threads)
    raise SettingsError(f"--evaluator is {settings.evaluator}, which is not there")
