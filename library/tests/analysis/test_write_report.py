"""Tests the report of a design: its files, and its self-contained page."""

import base64
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from library.tests.analysis.small_design import small_content
from remy_farm.analysis.report import REPORT_FILES, write_report
from remy_farm.files import FileError

_VOID = {"meta", "img", "br", "link", "input"}


class Page(HTMLParser):
    """Parses a page: collects its sources, links and text, and checks that its elements nest."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.links: list[str] = []
        self.descriptions: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append(tag)
        self.sources += [attributes["src"] or ""] if "src" in attributes else []
        self.links += [attributes["href"] or ""] if "href" in attributes else []
        if tag == "img":
            self.descriptions.append(attributes.get("alt") or "")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def written(tmp_path: Path) -> Path:
    write_report(tmp_path, small_content())
    return tmp_path


def test_a_report_has_a_page_and_two_plots(written: Path) -> None:
    assert sorted(path.name for path in written.iterdir()) == sorted(REPORT_FILES)


def test_the_page_loads_no_other_resource(written: Path) -> None:
    html = (written / "report.html").read_text()
    page = Page(html)
    assert page.links == []
    assert "script" not in page.tags
    assert "url(" not in html
    assert "http://" not in html
    assert "https://" not in html
    assert all(source.startswith("data:") for source in page.sources)
    pictures = [
        base64.b64decode(source.partition("base64,")[2])
        for source in page.sources
        if source.startswith("data:image/png")
    ]
    assert pictures == [
        (written / name).read_bytes() for name in ("throughput-delay.png", "score.png")
    ]


def test_plots_have_an_alternative_text(written: Path) -> None:
    page = Page((written / "report.html").read_text())
    assert len(page.descriptions) == 2
    assert all(len(description) > 40 for description in page.descriptions)


def test_the_page_has_gain_epochs_versions_and_specification(written: Path) -> None:
    text = Page((written / "report.html").read_text()).text
    for head in ("RTT 95 %, ms", "completion 99 %, ms", "loss", "retransmitted"):
        assert head in text
    assert "a gain of +" in text
    assert "rolled back" in text
    assert "remy-farm 1.2.3" in text
    assert "the specification's number of epochs has passed" in text
    assert "mean_off_ms: 500" in text


def test_the_page_reports_a_stalled_climb(written: Path, tmp_path: Path) -> None:
    sentence = "At step 70 the climb has stalled: no slope was significant for 50 steps."
    assert sentence not in Page((written / "report.html").read_text()).text
    content = small_content()
    history = replace(content.history, stalls=[(70, 50)])
    write_report(tmp_path, replace(content, history=history))
    assert sentence in Page((tmp_path / "report.html").read_text()).text


def test_text_is_escaped(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>&\"'"
    content = small_content()
    write_report(
        tmp_path, replace(content, name=hostile, spec_yaml=hostile, versions={hostile: hostile})
    )
    page = Page((tmp_path / "report.html").read_text())
    assert "script" not in page.tags
    assert hostile in page.text


def test_a_design_without_an_epoch_has_a_page(tmp_path: Path) -> None:
    content = small_content()
    history = replace(
        content.history, steps=[], epochs=[], splits=[], cpu_seconds=[], finished=None
    )
    write_report(tmp_path, replace(content, history=history))
    assert "No epoch was completed." in (tmp_path / "report.html").read_text()


def test_the_error_of_a_missing_folder_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="nowhere"):
        write_report(tmp_path / "nowhere", small_content())
