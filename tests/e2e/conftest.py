"""Provides one farm for all tests, in its own namespace, and report lines after the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from tests.e2e.farm import Farm, installed

#: A function that adds a line to the end of the run's output, for example a duration or a digest.
Report: TypeAlias = Callable[[str], None]
_LINES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def farm() -> Iterator[Farm]:
    """The farm with the chart's defaults; a test that changes it restores it."""
    with installed() as release:
        yield release


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """Returns a function that adds a line with the test's name to the report."""
    lines = request.config.stash.setdefault(_LINES, [])
    name = request.node.name
    return lambda line: lines.append(f"{name}: {line}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in terminalreporter.config.stash.get(_LINES, []):
        terminalreporter.write_line(line)
