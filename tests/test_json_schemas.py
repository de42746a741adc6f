"""JSON schemas agree with the readers of files, and shipped files name their schema."""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from remy_farm.shipped import SCHEMAS, shipped_schema
from remy_farm.specification import SpecError, spec_from_tree
from remy_farm.specification.network_files import network_of
from remy_farm.specification.reading import read_yaml

ROOT = Path(__file__).parent.parent
_COMMENT = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")
_OTHER = {"examples/kubernetes", "data/schemas"}


def _yaml_files() -> list[Path]:
    files = [*(ROOT / "examples").rglob("*.yaml"), *(ROOT / "data").rglob("*.yaml")]
    return sorted(each for each in files if str(each.parent.relative_to(ROOT)) not in _OTHER)


@functools.cache
def _validator(kind: str) -> Draft202012Validator:
    schema = json.loads(shipped_schema(kind).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("path", _yaml_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_shipped_file_is_valid_by_the_schema_that_it_names(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = _COMMENT.match(text)
    assert named is not None
    schema = (path.parent / named[1]).resolve()
    assert schema in {shipped_schema(kind).resolve() for kind in SCHEMAS}
    problems = _validator(schema.stem).iter_errors(read_yaml(text, str(path)))
    assert [each.message for each in problems] == []


_NETWORK: dict[str, Any] = {
    "rtt_ms": 40,
    "links": [{"rate_mbps": 12, "buffer": {"bdp": 1}, "queue": "codel,target_ms=3"}],
    "measurement": {"rtt_offset_maximum_ms": 3},
    "traffic": {"exponential_bytes": {"mean_bytes": 1e5}, "load": 0.5},
    "senders": ["cubic=2", {"protocol": "bbr,variant=v3", "count": 2, "rtt_ms": 80}],
}
_SPEC: dict[str, Any] = {
    "name": "small",
    "network": {
        "rate_mbps": {"uniform": [10, 20]},
        "rtt_ms": [100, 150],
        "senders": [{"design": "remycc", "count": {"integer_uniform": [1, 3]}}, "cubic"],
        "buffer": {"ms": {"log_uniform": {"low": 1, "high": 9}}},
        "traffic": {"exponential_time": {"mean_ms": 500}, "mean_off_ms": 300},
        "transport": "tcp,variant=linux",
    },
    "objective": {"alpha": 1, "beta": 1, "delta": 1},
    "search": {"mode": "joint", "joint": {"steps": 5}},
}
_TREES = {"network": _NETWORK, "specification": _SPEC}


def _accepts(kind: str, tree: Any) -> bool:
    """Whether the reader of this kind of file accepts a document."""
    try:
        if kind == "network":
            network_of(tree, ROOT, "a test")
        else:
            spec_from_tree(tree)
    except SpecError:
        return False
    return True


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the container and the key or index of every entry of a document."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


@pytest.mark.parametrize("kind", _TREES)
def test_unchanged_documents_are_accepted(kind: str) -> None:
    assert _accepts(kind, _TREES[kind])
    assert _validator(kind).is_valid(_TREES[kind])


_VALUES = st.one_of(
    st.floats(-10, 1e7),
    st.integers(-3, 2_000_000),
    st.sampled_from(["infinite", "realistic", "cubic", "codel", "tcp", "", "remycc:a.json=2"]),
    st.lists(st.floats(0.001, 9), max_size=3),
    st.sampled_from([{}, {"exact": 3}, {"uniform": [1, 2]}, {"packets": 3}, {"always": {}}]),
)


@settings(max_examples=300)
@given(st.sampled_from(sorted(_TREES)), st.data(), _VALUES)
def test_schema_accepts_what_the_reader_accepts(kind: str, data: st.DataObject, value: Any) -> None:
    tree = copy.deepcopy(_TREES[kind])
    places = list(_places(tree))
    holder, key = places[data.draw(st.integers(0, len(places) - 1))]
    holder[key] = value
    if _accepts(kind, tree):
        problems = [each.message for each in _validator(kind).iter_errors(tree)]
        assert problems == []


@pytest.mark.parametrize(
    ("kind", "section", "wrong"),
    [
        ("network", (), {"rate": 3}),
        ("network", (), {"rtt_ms": -1}),
        ("network", (), {"rtt_ms": [1, 2]}),
        ("network", ("links", 0), {"buffer": {"bdb": 1}}),
        ("network", ("links", 0), {"queue": "coddle"}),
        ("network", ("traffic",), {"load": 1.5}),
        ("network", ("senders", 1), {"count": 0.5}),
        ("network", ("senders", 1), {"design": "remycc"}),
        ("specification", ("network",), {"rtt_ms": {"uniform": [1]}}),
        ("specification", ("search",), {"mode": "random"}),
        ("specification", ("objective",), {"delta": "much"}),
        ("specification", (), {"networks": {}}),
    ],
)
def test_schema_rejects_a_mistake(kind: str, section: Any, wrong: dict[str, Any]) -> None:
    tree = copy.deepcopy(_TREES[kind])
    place = tree
    for key in section:
        place = place[key]
    place.update(wrong)
    assert not _accepts(kind, tree)
    assert not _validator(kind).is_valid(tree)


def test_exactly_one_schema_is_shipped_per_kind() -> None:
    files = {path.stem for path in shipped_schema(SCHEMAS[0]).parent.glob("*.json")}
    assert files == set(SCHEMAS)


def test_keys_have_descriptions() -> None:
    network = json.loads(shipped_schema("network").read_text(encoding="utf-8"))
    keys = network["$defs"]["NetworkModel"]["properties"]
    assert "1 Mbit/s" in keys["rate_mbps"]["description"]
    assert all(each.get("description") for each in keys.values())
