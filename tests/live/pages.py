"""Shared helpers of the tests of pages: the browser, screenshots, accessibility checks."""

from __future__ import annotations

import importlib.resources
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
_AXE = importlib.resources.files("axe_playwright_python") / "axe.min.js"
#: The directory for the documentation's screenshots; None if they are not taken.
PICTURES = os.environ.get("REMY_PICTURES")

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None,
    reason="Debian's chromium is not installed (scripts/bootstrap test); CHROMIUM may name another",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Runs a headless browser within the context."""
    with sync_playwright() as playwright:
        # Tests in containers run as root, for which Chromium has no sandbox.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def violations(page: Page) -> list[tuple[str, list[str]]]:
    """Returns the violated accessibility rules of axe-core, with the elements concerned."""
    # The page's content security policy forbids foreign scripts, but not those of the debugger.
    page.evaluate(_AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    return [
        (each["id"], [str(node["target"]) for node in each["nodes"]])
        for each in found["violations"]
    ]


def throughput(sender: int) -> str:
    """Returns a script expression that is true once a sender has a throughput."""
    row = f"document.querySelectorAll('tbody tr')[{sender}]"
    return f"() => parseFloat({row}?.cells[1].textContent) > 0"
