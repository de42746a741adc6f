"""The live network works in a real browser: playing, recording, tables, links, accessibility."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import remy_farm as rf
from benchmarks.programs import ROOT
from library.tests.analysis.small_design import small_content
from remy_cli.play import named_remyccs, page_server
from remy_farm.analysis.live_page import live_network_page
from remy_farm.analysis.report import write_report
from remy_farm.remycc import RemyCC, read_remycc, write_remycc
from remy_simulator import RuleTable
from tests.live.pages import PICTURES, needs_chromium, throughput, violations
from tests.live.stages import EXAMPLE, NativeStage, replay

MOST_REPORT_BYTES = 2_000_000
#: A fake MIDI device with motor faders, which records the messages that it receives.
FADERS = """() => {
  const input = { name: "Ratatouille" };
  window.sent = [];
  window.turn = (...bytes) => input.onmidimessage({ data: Uint8Array.from(bytes) });
  navigator.requestMIDIAccess = async () => ({
    inputs: new Map([["0", input]]),
    outputs: new Map([["0", { send: message => window.sent.push(message) }]]),
  });
}"""

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    remyccs = named_remyccs((str(EXAMPLE),))
    remyccs["<script>alert(1)</script>"] = remyccs["general-purpose-delta1"]
    server = page_server(live_network_page(remyccs), 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


class Live:
    """The page, with the errors and requests that it has caused."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        self.context = browser.new_context(accept_downloads=True, **options)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(120_000)
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on(
            "console",
            lambda line: self.wrong.append(line.text) if line.type == "error" else None,
        )
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)
        self.page.wait_for_selector(".senders li")
        self.wait_for_throughput(0)

    def wait_for_throughput(self, sender: int) -> None:
        """Waits until a sender has a throughput in the last second."""
        self.page.wait_for_function(
            "row => parseFloat("
            "document.querySelectorAll('tbody tr')[row].cells[1].textContent) > 0",
            arg=sender,
        )

    def notice(self, text: str) -> str:
        self.page.wait_for_function(
            "text => document.querySelector('.notice').textContent.includes(text)", arg=text
        )
        return self.page.inner_text(".notice")

    def recording(self) -> dict[str, Any]:
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name="Record", exact=True).click()
        recording: dict[str, Any] = json.loads(
            Path(download.value.path()).read_text(encoding="utf-8")
        )
        return recording

    def move(self, slider: str, presses: int) -> None:
        found = self.page.get_by_role("slider", name=slider)
        found.focus()
        for _ in range(abs(presses)):
            found.press("ArrowRight" if presses > 0 else "ArrowLeft")


@pytest.fixture
def live(browser: Browser, address: str) -> Iterator[Live]:
    live = Live(browser, address)
    yield live
    assert live.wrong == []
    live.context.close()


def native_digests(recording: dict[str, Any]) -> list[str]:
    events = [(each["step"], each["event"]) for each in recording["events"]]
    return [
        replay(NativeStage(), recording["tables"], network, events, recording["steps"])
        for network in recording["networks"]
    ]


def test_played_network_has_the_native_digests(live: Live) -> None:
    live.move("Link rate", 5)
    live.move("Buffer", -20)
    live.page.get_by_role("switch", name="Sender B").click()
    live.move("Loss", 15)
    live.page.get_by_role("combobox", name="Queue", exact=True).select_option("codel")
    live.move("RTT", -10)
    live.page.get_by_role("switch", name="Sender B").click()
    live.wait_for_throughput(1)
    kept = live.recording()
    assert len(kept["recording"]["events"]) > 50
    assert native_digests(kept["recording"]) == kept["digests"]


def test_replayed_recording_has_the_same_digest(live: Live, tmp_path: Path) -> None:
    live.move("RTT", -5)
    kept = live.recording()
    path = tmp_path / "kept.json"
    path.write_text(json.dumps(kept), encoding="utf-8")
    live.page.set_input_files("input[type=file]", path)
    assert kept["digests"][0] in live.notice("Replayed to the same end")


def test_compared_tables_use_common_random_numbers(live: Live) -> None:
    live.page.get_by_label("Beside it, RemyCCs run").select_option("cubic")
    live.page.wait_for_function("() => document.querySelectorAll('.network canvas').length === 4")
    live.wait_for_throughput(0)
    kept = live.recording()
    assert len(kept["digests"]) == 2
    assert native_digests(kept["recording"]) == kept["digests"]


@pytest.mark.parametrize("suffix", [".json", ".dna"])
def test_uploaded_table_is_used(live: Live, tmp_path: Path, suffix: str) -> None:
    """The table has one rule, a window of 10 packets, which gives a known rate at 150 ms."""
    single = RuleTable([0], [([], (0, 10, 0.1))])
    path = tmp_path / f"ten{suffix}"
    write_remycc(path, RemyCC(single))
    live.page.set_input_files("input[type=file]", path)
    live.page.wait_for_function(
        "() => document.querySelector('tbody').rows[0].cells[3].textContent === '10.0'"
    )
    assert live.page.get_by_label("Sender A runs").input_value() == "table:ten"


def test_published_table_has_the_same_rules_in_the_page(live: Live, tmp_path: Path) -> None:
    """The page reads a .dna file with many rules like the simulator."""
    path = tmp_path / "one-x.dna"
    path.write_bytes((ROOT / "tests/data/remyccs-absolute/one-x/remycc.dna").read_bytes())
    table = read_remycc(path)
    live.page.set_input_files("input[type=file]", path)
    live.wait_for_throughput(0)
    kept = live.recording()
    assert native_digests(kept["recording"]) == kept["digests"]
    numbers = kept["state"]["tables"]["one-x"]
    message = table.to_message()
    thresholds = [each.value for node in message.nodes for each in node.split.thresholds]
    assert len(thresholds) > 10
    assert set(thresholds) <= set(numbers)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.json", b"{}", "is not a rule table"),
        ("a.dna", b"\x13\x00", "is not a .dna file"),
        (
            "a.json",
            b'{"kind": "remy-farm recording", "state": {"rateMbps": 15}}',
            "is a recording of another version",
        ),
        ("a.json", b'{"signals": ["SIGNAL_X"], "nodes": []}', "looks at SIGNAL_X"),
        (
            "a.json",
            b'{"signals": ["SIGNAL_RTT_RATIO"], "nodes": [{"action": {"intersend_ms": -1}}]}',
            "intersend_ms -1; it must be a finite number not below 0",
        ),
    ],
)
def test_invalid_file_is_refused_with_a_message(
    live: Live, tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    live.page.set_input_files("input[type=file]", path)
    live.notice(sentence)
    live.page.get_by_label("Preset").select_option("Full buffers")
    live.wait_for_throughput(0)


def test_url_restores_the_settings(live: Live, browser: Browser) -> None:
    live.page.get_by_label("Preset").select_option("Satellite")
    live.move("Link rate", 3)
    live.page.get_by_role("button", name="Copy link").click()
    live.notice("address contains the set-up")
    again = Live(browser, live.page.url)
    try:
        for slider in ("Link rate", "RTT", "Loss"):
            texts = {
                page.get_by_role("slider", name=slider).get_attribute("aria-valuetext")
                for page in (live.page, again.page)
            }
            assert len(texts) == 1
        assert again.page.locator(".senders li").count() == 3
    finally:
        again.context.close()


def test_exported_network_file_describes_the_settings(live: Live) -> None:
    page = live.page
    page.get_by_label("Preset").select_option("Satellite")
    page.get_by_role("slider", name="Buffer").press("Home")
    page.get_by_role("button", name="Sender C comes and goes by itself").click()
    live.wait_for_throughput(1)
    page.get_by_role("switch", name="Sender B").click()
    network = live.recording()["state"]["network"]
    specimen = rf.Network(**network).topology().specimen
    (link,) = specimen.links
    assert link.rate_packets_per_ms == 3.5
    assert (link.buffer_packets, link.loss_probability) == (0, 0.0074)
    assert specimen.rtt_ms == 500
    kinds = [group.traffic.WhichOneof("on") for group in specimen.senders]
    assert kinds == ["always", "intervals", "exponential_time"]
    run = rf.simulate(rf.Network(**network), seconds=5)
    assert run.sender_names == ["remycc:general-purpose-delta1", "cubic", "bbr"]
    on, off, _ = run.senders
    assert on.packets_received > 0
    assert off.packets_received == 0


def test_url_of_another_version_is_reported_and_the_first_preset_runs(
    browser: Browser, address: str
) -> None:
    live = Live(browser, f"{address}#s=q1YqSwUA")
    try:
        live.notice("is of another version")
        assert live.page.locator(".senders li").count() == 2
        assert live.wrong == []
    finally:
        live.context.close()


def test_page_loads_nothing_else_and_escapes_names(live: Live) -> None:
    assert "<script>alert(1)</script>" in live.page.get_by_label("Sender A runs").inner_text()
    outside = [
        url for url in live.asked if not url.startswith(("http://127.0.0.1", "blob:", "data:"))
    ]
    assert outside == []


def test_report_of_a_design_embeds_the_live_network(browser: Browser, tmp_path: Path) -> None:
    write_report(tmp_path, small_content())
    report = tmp_path / "report.html"
    assert report.stat().st_size <= MOST_REPORT_BYTES
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(120_000)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    page.goto(report.as_uri())
    page.locator("iframe").scroll_into_view_if_needed()
    network = page.frame_locator("iframe")
    name = small_content().name
    expect(network.get_by_label("Sender A runs")).to_have_value(f"table:{name}", timeout=120_000)
    page.frames[-1].wait_for_function(throughput(0))
    assert wrong == []
    context.close()


@pytest.mark.parametrize(
    ("slider", "least", "most"),
    [
        ("Link rate", "0.30 Mbit/s", "300 Mbit/s"),
        ("RTT", "5.00 ms", "500 ms"),
        ("Buffer", "0 packets", "10000 packets"),
        ("Loss", "0.00 %", "20.0 %"),
        ("Jitter of clocks", "0.00 ms", "50.0 ms"),
        ("Speed", "0.00", "50.0"),
    ],
)
def test_slider_covers_its_range(live: Live, slider: str, least: str, most: str) -> None:
    found = live.page.get_by_role("slider", name=slider)
    for key, shown in (("End", most), ("Home", least)):
        found.press(key)
        # A note on the machine's speed may follow.
        expect(found).to_have_attribute("aria-valuetext", re.compile(f"^{re.escape(shown)}"))


def test_every_preset_runs(live: Live) -> None:
    presets = live.page.get_by_label("Preset").locator("option").all_inner_texts()[1:]
    assert len(presets) > 10
    for preset in presets:
        live.page.get_by_label("Preset").select_option(preset)
        expect(live.page.locator(".notice")).not_to_have_text("")
        live.page.wait_for_function(
            "() => [...document.querySelectorAll('tbody tr')].some("
            "row => parseFloat(row.cells[1].textContent) > 0)"
        )


def test_both_networks_of_a_comparison_are_shown(live: Live, tmp_path: Path) -> None:
    path = tmp_path / "ten.json"
    write_remycc(path, RemyCC(RuleTable([0], [([], (0, 10, 0.1))])))
    page = live.page
    page.set_input_files("input[type=file]", path)
    page.get_by_label("Sender A runs").select_option("table:general-purpose-delta1")
    page.get_by_label("Beside it, RemyCCs run").select_option("table:ten")
    table = page.locator("table", has=page.locator("caption", has_text="With ten"))
    expect(table.locator("tbody tr").first.locator("td").nth(2)).to_have_text("10.0")
    page.get_by_label("slice at").select_option("sender A beside")
    expect(page.locator(".scale")).to_contain_text("10.0")
    expect(page.locator(".rules li", has_text="A beside")).to_contain_text("+ 10.0 packets")


def test_link_follows_a_trace(live: Live, tmp_path: Path) -> None:
    """The trace has 12 Mbit/s for a second, then 1.2 Mbit/s; the digests are the native ones."""
    path = tmp_path / "two-rates.trace"
    times = [*range(1000), *range(1000, 2000, 10)]
    path.write_text("".join(f"{time}\n" for time in times), encoding="utf-8")
    live.page.set_input_files("input[type=file]", path)
    live.notice("follows two-rates.trace, which lasts 2 s and then repeats")
    rate = live.page.get_by_role("slider", name="Link rate")
    expect(rate).to_be_disabled()
    for shown in ("12.0 Mbit/s", "1.20 Mbit/s", "12.0 Mbit/s"):
        expect(rate).to_have_attribute("aria-valuetext", shown, timeout=120_000)
    live.move("RTT", -5)
    kept = live.recording()
    events = [each["event"] for each in kept["recording"]["events"]]
    rates = {event["numbers"][0] for event in events if event["kind"] == "link"}
    assert rates == {1.0, 0.1}
    assert native_digests(kept["recording"]) == kept["digests"]
    live.page.get_by_role("button", name="Leave it").click()
    expect(rate).to_be_enabled()
    path.write_text("1\ntwo\n", encoding="utf-8")
    live.page.set_input_files("input[type=file]", path)
    live.notice("is not a trace: line 2")


def test_faders_and_sliders_move_each_other(live: Live) -> None:
    page = live.page
    page.evaluate(FADERS)
    page.get_by_role("button", name="MIDI faders").click()
    live.notice("Move a fader of Ratatouille")
    page.evaluate("turn(0xb0, 7, 127)")
    live.notice("moves Link rate")
    rate = page.get_by_role("slider", name="Link rate")
    expect(rate).to_have_attribute("aria-valuetext", "300 Mbit/s")
    page.evaluate("turn(0xe3, 0, 0)")
    expect(page.get_by_role("slider", name="RTT")).to_have_attribute("aria-valuetext", "5.00 ms")
    page.evaluate("turn(0x90, 36, 100)")
    expect(page.get_by_role("switch", name="Sender A")).to_have_attribute("aria-checked", "false")
    rate.focus()
    rate.press("Home")
    page.wait_for_function(
        "() => sent.some(each => each[0] === 0xb0 && each[1] === 7 && each[2] === 0)"
    )


def test_all_controls_are_reachable_by_keyboard(live: Live) -> None:
    live.page.keyboard.press("Tab")
    for _ in range(60):
        if live.page.evaluate("document.activeElement.getAttribute('role')") == "switch":
            break
        live.page.keyboard.press("Tab")
    before = live.page.evaluate("document.activeElement.getAttribute('aria-checked')")
    live.page.keyboard.press("Space")
    live.page.wait_for_function(
        "before => document.activeElement.getAttribute('aria-checked') !== before", arg=before
    )


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1440, "dark"), (375, "light")])
def test_page_has_no_accessibility_violations(
    browser: Browser, address: str, width: int, scheme: Any
) -> None:
    live = Live(browser, address, viewport={"width": width, "height": 900}, color_scheme=scheme)
    try:
        assert violations(live.page) == []
        # A phone needs no horizontal scrolling.
        assert live.page.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        live.context.close()


@pytest.mark.skipif(PICTURES is None, reason="REMY_PICTURES names no folder for pictures")
def test_pictures(browser: Browser, address: str) -> None:
    assert PICTURES is not None
    live = Live(browser, address, viewport={"width": 1400, "height": 1090}, device_scale_factor=1)
    live.page.get_by_label("Preset").select_option("Dumbbell of 8")
    live.move("Speed", 60)
    live.page.wait_for_timeout(30_000)
    live.page.screenshot(path=Path(PICTURES) / "play.png")
    live.context.close()
