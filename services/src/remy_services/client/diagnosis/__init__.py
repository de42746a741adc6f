"""Finding out why a coordinator cannot be reached or used, and what to do about it."""

from remy_services.client.diagnosis.answer import Versions
from remy_services.client.diagnosis.diagnosis import diagnose
from remy_services.client.diagnosis.finding import Check, Finding, Verdict

__all__ = ["Check", "Finding", "Verdict", "Versions", "diagnose"]
