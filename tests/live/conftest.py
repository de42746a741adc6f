"""Provides a browser for the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.live.pages import chromium


# The scope is not the session, because Playwright's event loop runs as long as the browser, and
# other tests have event loops of their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser
