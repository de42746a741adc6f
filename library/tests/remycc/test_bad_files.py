"""Tests that a file that is not a RemyCC is refused with one sentence, however hostile it is."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from remy_farm.files import FileError
from remy_farm.remycc import RemyCC, RemyCCError, read_remycc, write_remycc
from remy_simulator import RuleTable

_TABLE = RuleTable([0, 2], [([], (1.0, 1.0, 3.0))]).split(0, [(0, 2.5), (2, 1.5)])


def _rule(**action: object) -> bytes:
    return _table({"action": {"window_multiple": 1, "window_increment": 1, **action}})


def _split(*thresholds: object) -> bytes:
    leaf = {"action": {"window_multiple": 1}}
    return _table({"split": {"thresholds": thresholds}}, *[leaf] * 2 ** len(thresholds))


def _table(*nodes: object, **fields: object) -> bytes:
    message = {"signals": ["SIGNAL_SEND_EWMA"], "domain_upper": 163840, "nodes": nodes, **fields}
    return json.dumps(message).encode()


def _threshold(value: float, signal: str = "SIGNAL_SEND_EWMA") -> dict[str, object]:
    return {"signal": signal, "value": value}


_NOT_TABLES = {
    b"": "is not JSON (Expecting value, line 1, column 1)",
    b"[": "is not JSON (Expecting value, line 1, column 2)",
    b"\xff": "is not UTF-8 text (byte 0)",
    b"[]": 'is not a rule table, which is an object with "signals" and "nodes"',
    b'{"nodes": [], "nodes": []}': "names the key 'nodes' twice in one object",
    b'{"domain_upper": NaN}': "holds NaN, but every number must be finite",
    b'{"domain_upper": -Infinity}': "holds -Infinity, but every number must be finite",
    b'{"domain_upper": ' + b"9" * 5000 + b"}": "is not a rule table (Couldn't parse "
    "Infinity or value too large at RuleTable.domain_upper)",
    b"[" * 100_000: "is nested too deeply to be a rule table",
    b'{"a":' * 100_000: "is nested too deeply to be a rule table",
    b'{"nodes": [' + b"{}," * 2_500_000: "has too many elements; at most 4000000 are allowed",
    b'{"whiskers": 1}': 'is not a rule table (Message type "remy_farm.v1.RuleTable" has no field '
    'named "whiskers" at "RuleTable")',
    b'{"\\ud800": 1}': "holds the surrogate \\ud800; texts have none",
    b'{"signals": ["\\uDfff"]}': "holds the surrogate \\uDfff; texts have none",
    b'{"\xc3\xa4": 1}': 'is not a rule table (Message type "remy_farm.v1.RuleTable" has no field '
    'named "\\xe4" at "RuleTable")',
    _table({"split": {}, "action": {}}): 'is not a rule table (Message type "remy_farm.v1.Node" '
    'should not have multiple "kind" oneof fields at "RuleTable.nodes[0]")',
    _rule(intersend_ms="fast"): "is not a rule table (Couldn't parse float: fast at "
    "RuleTable.nodes[0].action.intersend_ms)",
    _split(_threshold(1, "SIGNAL_LOSS")): "is not a rule table (Invalid enum value SIGNAL_LOSS for "
    "enum type remy_farm.v1.Signal at RuleTable.nodes[0].split.thresholds[0].signal)",
}


@pytest.mark.parametrize("data", _NOT_TABLES, ids=lambda data: repr(data[:20]))
def test_a_file_that_is_not_a_tables_json_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "table.json"
    assert _refusal(path, data) == f"{path} {_NOT_TABLES[data]}"


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (_table(), "no nodes"),
        (_table({}), "nodes[0] needs an action, or a split with at least one threshold"),
        (_split(), "nodes[0] needs an action, or a split with at least one threshold"),
        (_rule(window_multiple="NaN"), "window_multiple nan"),
        (_rule(intersend_ms=-1), "intersend_ms -1"),
        (_split(_threshold(-1)), "the threshold must be at least 0"),
        (_split(_threshold(163840)), "163840"),
        (_split(_threshold(1), _threshold(2)), "divides on send_ewma twice"),
        (_split(_threshold(1, "SIGNAL_RTT_RATIO")), "rtt_ratio"),
        (_table({"split": {"thresholds": [_threshold(1)]}}, {"action": {}}), "1 children"),
        (_table({"action": {}}, {"action": {}}), "node"),
        (_table({"action": {}}, signals=[]), "no signals"),
        (_table({"action": {}}, signals=[99]), "signals names 99"),
        (_table({"action": {}}, domain_upper=0), "domain"),
    ],
    ids=lambda value: repr(value[-40:]),
)
def test_an_invalid_table_is_refused(tmp_path: Path, data: bytes, part: str) -> None:
    sentence = _refusal(tmp_path / "table.json", data)
    prefix = f"{tmp_path / 'table.json'} is not a valid JSON rule table: "
    assert sentence.startswith(prefix)
    assert part in sentence.removeprefix(prefix)


@pytest.mark.parametrize("data", [b"", b"\x0a", b"not a table", b"\x12\x00" * 8])
def test_a_file_that_is_not_a_dna_file_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "table.dna"
    assert _refusal(path, data).startswith(f"{path} is not a valid .dna rule table: ")


@pytest.mark.parametrize("suffix", [".json", ".dna"])
def test_a_truncated_file_is_refused_at_any_length(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    write_remycc(path, RemyCC(_TABLE))
    data = path.read_bytes().rstrip()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(RemyCCError):
            read_remycc(path)


@pytest.mark.parametrize("suffix", [".json", ".dna"])
def test_a_damaged_file_is_refused_or_a_valid_table(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    write_remycc(path, RemyCC(_TABLE, b"\x22\x00"))
    data = path.read_bytes()
    source = random.Random(suffix)
    refused = 0
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(source.randint(1, 2)):
            byte = source.choice([source.choice(data), source.randrange(256)])
            damaged[source.randrange(len(damaged))] = byte
        path.write_bytes(damaged)
        remycc = _try_to_read(path)
        refused += remycc is None
        if remycc is not None:
            write_remycc(path, remycc)
            assert _try_to_read(path) is not None
    assert 0 < refused < 300


def test_a_missing_or_too_large_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"absent\.dna: cannot be read \(no such file"):
        read_remycc(tmp_path / "absent.dna")
    with (tmp_path / "large.dna").open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(FileError, match=r"large\.dna is too large; at most 67108864 bytes"):
        read_remycc(tmp_path / "large.dna")


def test_a_name_with_another_extension_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    with pytest.raises(RemyCCError) as caught:
        write_remycc(path, RemyCC(_TABLE))
    assert str(caught.value) == (
        f"{path} is not the name of a RemyCC file; it must end in .dna or .json"
    )
    assert not path.exists()


def _refusal(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(RemyCCError) as caught:
        read_remycc(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def _try_to_read(path: Path) -> RemyCC | None:
    try:
        return read_remycc(path)
    except RemyCCError:
        return None
