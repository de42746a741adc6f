"""What tests of pages share: the browser's program, pictures, and what axe-core finds."""

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
#: Where pictures for the documentation go, if anywhere.
PICTURES = os.environ.get("REMY_PICTURES")

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None,
    reason="Debian's chromium is not installed (scripts/bootstrap test); CHROMIUM may name another",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        # Tests in containers run as root, for whom Chromium has no sandbox.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def violations(page: Page) -> list[tuple[str, list[str]]]:
    """What is against the rules of accessibility: the rule, and where."""
    # The page's policy forbids scripts from elsewhere; the debugger's are not bound by it.
    page.evaluate(_AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    return [
        (each["id"], [str(node["target"]) for node in each["nodes"]])
        for each in found["violations"]
    ]


def throughput(sender: int) -> str:
    """Of the live network: an expression that is true once a sender has been heard of."""
    row = f"document.querySelectorAll('tbody tr')[{sender}]"
    return f"() => parseFloat({row}?.cells[1].textContent) > 0"
