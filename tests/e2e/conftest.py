"""One farm for all tests, in a namespace of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.farm import Farm, installed


@pytest.fixture(scope="session")
def farm() -> Iterator[Farm]:
    """A farm as the chart installs it; each test leaves it as it found it."""
    with installed() as made:
        yield made
