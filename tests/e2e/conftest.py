"""One farm for all tests of a file, in a namespace of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.farm import Farm, installed


@pytest.fixture(scope="module")
def farm(request: pytest.FixtureRequest) -> Iterator[Farm]:
    """A farm as the chart installs it."""
    name = request.module.__name__.rpartition("test_")[2].replace("_", "-")
    with installed(name) as made:
        yield made
