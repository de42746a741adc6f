"""Tests that trace files are read, or refused with one sentence."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_farm.files import FileError
from remy_farm.specification.traces import LARGEST_TRACE_BYTES, parse_trace, read_trace

TIMES = st.lists(st.integers(0, 10**9), min_size=1).map(sorted).filter(lambda times: times[-1] > 0)


@given(TIMES, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_the_times_of_a_trace_are_read(times: list[int], end: str, has_last_end: bool) -> None:
    text = end.join(map(str, times)) + (end if has_last_end else "")
    trace = parse_trace(text.encode(), "a.down")
    assert len(trace) == len(times)
    opportunities_us = struct.unpack(f"<{len(times)}Q", trace.opportunities_us)
    assert list(opportunities_us) == [1000 * time for time in times]


@given(TIMES)
def test_the_hash_depends_only_on_the_times(times: list[int]) -> None:
    unix = parse_trace("\n".join(map(str, times)).encode(), "a")
    windows = parse_trace("".join(f"0{time}\r\n" for time in times).encode(), "b")
    assert unix.sha256 == windows.sha256
    assert unix.sha256 != parse_trace(f"{times[-1] + 1}".encode(), "c").sha256


@given(st.binary(max_size=200) | st.text("0123456789\n\r -+_.e", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused_with_one_sentence(text: bytes) -> None:
    sentence = ""
    try:
        trace = parse_trace(text, "a.down")
    except FileError as error:
        sentence = str(error)
    else:
        assert len(trace) > 0
        return
    assert sentence.startswith("a.down")
    assert "\n" not in sentence
    assert len(sentence) < 300


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "a.down is empty, but a trace has at least one opportunity to deliver"),
        (b"5\n3\n", "a.down, line 2: 3 comes after 5, but times must not fall"),
        (b"0\n0\n", "a.down has all its opportunities at 0 ms, but must last for some time"),
        (b"1\n\n2\n", "a.down, line 2: '' is not a whole number of ms"),
        (b"1.5\n", "a.down, line 1: '1.5' is not a whole number of ms"),
        (b"-1\n", "a.down, line 1: '-1' is not a whole number of ms"),
        (b"\x7fELF\0", "a.down is binary, but a trace has a whole number of ms on every line"),
        (
            b"99999999999999\n",
            "a.down, line 1: 99999999999999 ms is too late; at most 31622400000 is allowed",
        ),
    ],
)
def test_a_bad_trace_is_refused_with_its_line_and_reason(text: bytes, sentence: str) -> None:
    with pytest.raises(FileError) as refused:
        parse_trace(text, "a.down")
    assert str(refused.value) == sentence


def test_a_file_of_a_gigabyte_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.down"
    with path.open("wb") as file:
        file.truncate(2**30)
    with pytest.raises(FileError, match=rf"too large; at most {LARGEST_TRACE_BYTES} bytes"):
        read_trace(path)


def test_a_trace_of_the_reference_data_is_read() -> None:
    folder = os.environ.get("REMY_REFERENCE_DIR")
    if not folder:
        pytest.skip("REMY_REFERENCE_DIR is not set")
    trace = read_trace(Path(folder) / "traces" / "ATT-LTE-2013-downlink-first-200s.down")
    assert len(trace) == 124_863
    assert struct.unpack("<Q", trace.opportunities_us[-8:]) == (199_999_000,)
