"""The documents are a site that works without a server and without the network, also on a phone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from benchmarks.programs import ROOT
from tests.live.pages import needs_chromium, violations

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "scripts.build_site", "--out", folder], cwd=ROOT, check=True
    )
    return folder


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    """A page as wide as a phone's screen. A request to the network fails the test."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    yield page
    page.close()
    assert [url for url in requested if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("describe network", "Describe your network"),
        ("rule 30", "Read what a rule does"),
        ("what does rule 30 do", "Read what a rule does"),
        ("add signal", "Add a signal"),
    ],
)
def test_search_answers_without_a_server(
    phone: Page, site: Path, question: str, answer: str
) -> None:
    phone.goto((site / "search.html").as_uri() + f"?q={question.replace(' ', '+')}")
    found = phone.locator("#search-results li a")
    found.first.wait_for()
    assert answer in found.all_inner_texts()[:2]


@pytest.mark.parametrize(
    "page", ["docs/index", "README", "docs/reference/spec", "docs/how-to/read-a-rule"]
)
def test_page_fits_a_phone(phone: Page, site: Path, page: str) -> None:
    phone.goto((site / f"{page}.html").as_uri())
    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    assert [rule for rule, _ in violations(phone) if rule in ("image-alt", "link-name")] == []


def test_link_to_an_example_leads_to_its_text(phone: Page, site: Path) -> None:
    phone.goto((site / "docs/tutorials/first-design.html").as_uri())
    phone.get_by_role("link", name="examples/demo.yaml").click()
    assert "name: demo" in phone.inner_text("pre").replace("\n", " ")
