"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Check(StrEnum):
    """What is checked, in this order."""

    SETTINGS = "settings"
    ADDRESS = "address"
    TLS = "TLS"
    COORDINATOR = "coordinator"
    TOKEN = "token"
    STORE = "store"
    WORKERS = "workers"
    VERSIONS = "versions"
    CLOCK = "clock"


class Verdict(StrEnum):
    """How it is."""

    OK = "OK"
    #: Works, and may not be what was meant or not work for long.
    WARNING = "warning"
    PROBLEM = "problem"
    #: An earlier problem is in the way.
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Finding:
    """One line of a diagnosis."""

    check: Check
    verdict: Verdict
    #: What was found, one clause.
    text: str
    #: What to do; empty if there is nothing to do.
    advice: str = ""


def ok(check: Check, text: str) -> Finding:
    """All is well."""
    return Finding(check, Verdict.OK, text)


def warning(check: Check, text: str, advice: str) -> Finding:
    """Somebody should look at it."""
    return Finding(check, Verdict.WARNING, text, advice)


def problem(check: Check, text: str, advice: str) -> Finding:
    """Something has to be done."""
    return Finding(check, Verdict.PROBLEM, text, advice)
