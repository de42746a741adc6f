"""One farm for all tests, in a namespace of its own, and what there is to report in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from tests.e2e.farm import Farm, installed

#: Takes a line for the end of the run's output: how long it took, what was lost, which bytes.
Figures: TypeAlias = Callable[[str], None]
_LINES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def farm() -> Iterator[Farm]:
    """A farm as the chart installs it; each test leaves it as it found it."""
    with installed() as made:
        yield made


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """Reports a line under the name of the test."""
    lines = request.config.stash.setdefault(_LINES, [])
    name = request.node.name
    return lambda line: lines.append(f"{name}: {line}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in terminalreporter.config.stash.get(_LINES, []):
        terminalreporter.write_line(line)
