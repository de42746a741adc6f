"""The farm's page, installed by the chart, works in a browser."""

from __future__ import annotations

import http.client
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.conftest import Report
from tests.e2e.designs import write_spec
from tests.e2e.farm import COORDINATOR, FULL_NAME, Farm, Unreachable
from tests.e2e.settings import needs_cluster
from tests.live.pages import chromium, needs_chromium
from tests.waiting import wait_until

pytestmark = [needs_cluster, needs_chromium]

_DEADLINE_MS = 180_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def port(farm: Farm) -> Iterator[int]:
    """Enables the page and yields a local port that leads to it."""
    farm.install({"ui": {"enabled": True}})
    try:
        with farm.forwarded("ui", 8443) as port:
            yield port
    finally:
        farm.install()
    assert not farm.kubectl.exists("deployment", f"{FULL_NAME}-ui")


def _signed_in(browser: Browser, farm: Farm, port: int, role: str) -> Any:
    # Chromium cannot trust an authority by a flag; the first test checks the certificate.
    page = browser.new_context(ignore_https_errors=True).new_page()
    page.set_default_timeout(_DEADLINE_MS)
    page.goto(f"https://localhost:{port}")
    page.get_by_label("Your token").fill(farm.secret("tokens", role))
    page.get_by_role("button", name="Sign in").click()
    return page


def test_page_has_the_farm_s_certificate_and_requires_signing_in(
    farm: Farm, port: int, tmp_path: Path
) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_text(farm.secret("tls", "ca.crt"), encoding="utf-8")
    trusted = ssl.create_default_context(cafile=str(authority))
    answers = {}
    for path in ("/health", "/api/updates"):
        connection = http.client.HTTPSConnection("localhost", port, timeout=60, context=trusted)
        connection.request("GET", path)
        answers[path] = connection.getresponse().status
        connection.close()
    assert answers == {"/health": 200, "/api/updates": 401}


def test_design_is_watched_and_paused_in_a_browser_through_a_lost_coordinator(
    browser: Browser, farm: Farm, port: int, tmp_path: Path, report: Report
) -> None:
    job = farm.submit(write_spec(tmp_path, steps=100_000), "in-a-browser")
    farm.wait_for_step(job, 3)
    viewer = _signed_in(browser, farm, port, "viewer")
    viewer.get_by_role("link", name="in-a-browser").click()
    expect(viewer.locator("header.job .state")).to_have_text("running", timeout=_DEADLINE_MS)
    expect(viewer.get_by_role("button", name="Pause", exact=True)).to_have_count(0)
    page = _signed_in(browser, farm, port, "submitter")
    page.get_by_role("link", name="in-a-browser").click()
    page.get_by_role("button", name="Pause", exact=True).click()
    # The other browser is updated without a reload.
    expect(viewer.locator("header.job .state")).to_have_text("paused", timeout=_DEADLINE_MS)
    wait_until(lambda: not farm.workers_of(job), "the end of its workers")
    (pod,) = farm.kubectl.pods(COORDINATOR)
    farm.kubectl("delete", "pod", pod["metadata"]["name"], "--grace-period=0", "--force")
    # A request that the new coordinator has not received is repeated, as a user would do.
    resume = page.get_by_role("button", name="Resume", exact=True)
    wait_until(lambda: _resumed(farm, job, resume), "the design to go on", every_seconds=2)
    before = farm.step(job)
    farm.wait_for_step(job, before + 1)
    wait_until(lambda: _step_on(viewer) > before, "its steps on the page of who did nothing")
    report(f"paused and resumed in a browser, its coordinator lost at step {before}")
    farm.cli("cancel", job)
    expect(viewer.locator("header.job .state")).to_have_text("cancelled", timeout=_DEADLINE_MS)
    # The design's workers are those of this farm's backend.
    wait_until(lambda: not farm.workers_of(job), "the end of its workers")


def _resumed(farm: Farm, job: str, resume: Any) -> bool:
    """Whether the job runs; clicks the button `resume` if it is visible."""
    if resume.count():
        resume.click()
    try:
        return farm.state(job) == "RUNNING"
    except Unreachable:
        return False


def _step_on(page: Any) -> int:
    shown = page.locator(".figures div", has_text=re.compile("^step")).locator("dd").inner_text()
    return int(re.sub(r"\D.*", "", shown.replace(",", "")))
