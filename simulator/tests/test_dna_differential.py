"""Tests the .dna reader and writer against generated code and a look-up by definition."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from remy_proto.dna.v1 import dna_pb2 as dna
from remy_simulator import InvalidTable, RuleTable

Action = tuple[float, float, float]
Point = list[float]
Rule = tuple[tuple[float, ...], tuple[float, ...], Action]

BOUND_FIELDS = (
    "rec_send_ewma",
    "rec_rec_ewma",
    "rtt_ratio",
    "slow_rec_rec_ewma",
    "rtt_diff",
    "queueing_delay",
)
AXES = range(6)
# Number of axes that are written without the later signals.
USUAL = 4
DEFAULT_UPPER = 163840.0

# Without a reference folder this path does not exist: a file has no children.
REFERENCE = Path(os.environ.get("REMY_REFERENCE_DIR") or os.devnull)


def bounds(memory: dna.Memory, default: float) -> Point:
    return [getattr(memory, field) if memory.HasField(field) else default for field in BOUND_FIELDS]


def lower(node: dna.WhiskerTree) -> Point:
    return bounds(node.domain.lower, 0)


def upper(node: dna.WhiskerTree) -> Point:
    return bounds(node.domain.upper, DEFAULT_UPPER)


def contains(node: dna.WhiskerTree, point: Point) -> bool:
    return all(
        low <= x < high for low, x, high in zip(lower(node), point, upper(node), strict=True)
    )


def action(whisker: dna.Whisker) -> Action:
    return (whisker.window_multiple, float(whisker.window_increment), whisker.intersend)


def slow_look_up(node: dna.WhiskerTree, point: Point) -> Action:
    """Returns the action of the only leaf that contains the point, by testing every child."""
    if node.HasField("leaf"):
        return action(node.leaf)
    (child,) = [child for child in node.children if contains(child, point)]
    return slow_look_up(child, point)


def nodes(root: dna.WhiskerTree) -> Iterator[dna.WhiskerTree]:
    yield root
    for child in root.children:
        yield from nodes(child)


def written_axes(table: RuleTable) -> int:
    return len(AXES) if table.signals[-1] >= USUAL else USUAL


def leaves_of(root: dna.WhiskerTree, axes: int = len(AXES)) -> list[Rule]:
    return [
        (tuple(lower(node)[:axes]), tuple(upper(node)[:axes]), action(node.leaf))
        for node in nodes(root)
        if node.HasField("leaf")
    ]


def rules_of(table: RuleTable, axes: int = len(AXES)) -> list[Rule]:
    rules = []
    for rule in range(table.rule_count):
        low, high = table.region(rule)
        multiple, increment, intersend = table.action(rule)
        rules.append((tuple(low[:axes]), tuple(high[:axes]), (multiple, increment, intersend)))
    return rules


def set_domain(memory_range: dna.MemoryRange, low: Point, high: Point, active: list[int]) -> None:
    for axis, field in enumerate(BOUND_FIELDS):
        setattr(memory_range.lower, field, low[axis])
        setattr(memory_range.upper, field, high[axis])
    axes = [dna.Axis.Name(axis) for axis in active]
    memory_range.MergeFrom(dna.MemoryRange(active_axis=axes))


@st.composite
def trees(draw: st.DrawFn) -> dna.WhiskerTree:
    """Draws a tree that the reader must accept, with children in any order."""
    active = sorted(draw(st.sets(st.sampled_from(AXES), min_size=1)))
    domain_upper = draw(st.sampled_from([1.0, 16384.0, DEFAULT_UPPER, 1e12]))
    root = dna.WhiskerTree()
    grow(draw, root, [0.0] * len(AXES), [domain_upper] * len(AXES), active, depth=0)
    return root


def grow(
    draw: st.DrawFn,
    node: dna.WhiskerTree,
    low: Point,
    high: Point,
    active: list[int],
    depth: int,
) -> None:
    set_domain(node.domain, low, high, active)
    divisible = [axis for axis in active if low[axis] < high[axis]]
    if depth == 3 or not divisible or not draw(st.booleans()):
        node.leaf.window_multiple = draw(st.floats(0, 2))
        node.leaf.window_increment = draw(st.integers(-(2**31), 2**31 - 1))
        node.leaf.intersend = draw(st.floats(0, 1e6))
        node.leaf.domain.CopyFrom(node.domain)
        return
    divided = sorted(draw(st.sets(st.sampled_from(divisible), min_size=1, max_size=4 - depth)))
    thresholds = {
        axis: draw(st.just(low[axis]) | st.floats(low[axis], high[axis], exclude_max=True))
        for axis in divided
    }
    for orthant in draw(st.permutations(range(2 ** len(divided)))):
        child_low, child_high = list(low), list(high)
        for bit, axis in enumerate(divided):
            (child_low if orthant >> bit & 1 else child_high)[axis] = thresholds[axis]
        grow(draw, node.children.add(), child_low, child_high, active, depth + 1)


def coordinates(root: dna.WhiskerTree) -> st.SearchStrategy[float]:
    seen = sorted({bound for node in nodes(root) for bound in (*lower(node), *upper(node))})
    return st.sampled_from(seen) | st.floats(allow_nan=False) | st.floats(0, 4)


@given(root=trees(), data=st.data())
def test_look_up_finds_the_leaf_that_contains_the_clamped_point(
    root: dna.WhiskerTree, data: st.DataObject
) -> None:
    table, _ = RuleTable.from_dna(root.SerializeToString())
    for point in data.draw(st.lists(st.lists(coordinates(root), min_size=6, max_size=6))):
        last = math.nextafter(table.domain_upper, 0)
        clamped = [min(max(x, 0.0), last) for x in point]
        assert table.action(table.find(point)) == slow_look_up(root, clamped)


@given(root=trees())
def test_rules_are_the_leaves_of_the_file(root: dna.WhiskerTree) -> None:
    table, metadata = RuleTable.from_dna(root.SerializeToString())
    assert sorted(rules_of(table)) == sorted(leaves_of(root))
    assert metadata == b""


@given(root=trees())
def test_written_files_have_every_field(root: dna.WhiskerTree) -> None:
    table, _ = RuleTable.from_dna(root.SerializeToString())
    written = dna.WhiskerTree.FromString(table.to_dna())
    axes = written_axes(table)
    assert leaves_of(written, axes) == rules_of(table, axes)
    for node in nodes(written):
        assert node.HasField("leaf") == (len(node.children) == 0)
        assert list(node.domain.active_axis) == table.signals
        for memory in (node.domain.lower, node.domain.upper):
            assert [memory.HasField(field) for field in BOUND_FIELDS] == [
                axis < axes for axis in AXES
            ]
        if node.HasField("leaf"):
            assert node.leaf.domain == node.domain


@given(config=st.binary(), optimizer=st.none() | st.binary(), low=st.floats(allow_nan=False))
def test_metadata_is_kept(config: bytes, optimizer: bytes | None, low: float) -> None:
    root = dna.WhiskerTree(leaf=dna.Whisker(window_increment=1), configvector=config)
    root.config.rtt.low = low
    if optimizer is not None:
        root.optimizer = optimizer
    table, metadata = RuleTable.from_dna(root.SerializeToString())
    written = dna.WhiskerTree.FromString(table.to_dna(metadata))
    for field in ("config", "optimizer", "configvector"):
        assert written.HasField(field) == root.HasField(field)
        assert getattr(written, field) == getattr(root, field)


@given(root=trees(), data=st.data())
def test_a_tree_with_a_moved_bound_is_rejected(root: dna.WhiskerTree, data: st.DataObject) -> None:
    inner = [node for node in nodes(root) if node.children]
    assume(inner)
    moved = data.draw(st.sampled_from(inner)).children[0].domain.upper
    field = data.draw(st.sampled_from(BOUND_FIELDS))
    # Above the domain, where no split of the parent can end.
    setattr(moved, field, 1e13)
    with pytest.raises(InvalidTable, match=r"\.$"):
        RuleTable.from_dna(root.SerializeToString())


def without_what_old_files_lack(root: dna.WhiskerTree, signals: list[int]) -> dna.WhiskerTree:
    for node in nodes(root):
        for memory_range in (
            (node.domain, node.leaf.domain) if not node.children else (node.domain,)
        ):
            memory_range.ClearField("active_axis")
            if 3 not in signals:
                memory_range.lower.ClearField("slow_rec_rec_ewma")
                memory_range.upper.ClearField("slow_rec_rec_ewma")
    return root


@pytest.mark.parametrize(
    ("name", "rules", "time_unit_ms", "domain_upper"),
    [
        ("sigcomm2013-sec5.6-competitive.dna", 15, 1.0, 163840.0),
        ("sigcomm2013-sec5.5-datacenter-10us.dna", 8, 0.01, 163840.0),
        ("sigcomm2013-general-delta1-sibling-tenth-ms.dna", 197, 0.1, 16384.0),
    ],
)
def test_published_files_with_empty_cells_and_uneven_bounds_are_read(
    name: str, rules: int, time_unit_ms: float, domain_upper: float
) -> None:
    """Every look-up finds the rule whose half-open cell in the file contains the memory value."""
    path = REFERENCE / "remyccs" / name
    if not path.exists():
        pytest.skip(f"REMY_REFERENCE_DIR names no folder whose subfolder remyccs holds {name}")
    table, _ = RuleTable.from_dna(path.read_bytes(), time_unit_ms)
    assert table.rule_count == rules
    assert table.domain_upper == domain_upper
    published = dna.WhiskerTree.FromString(path.read_bytes())
    units = [1.0 if axis == 2 else time_unit_ms for axis in AXES]
    draws = random.Random(name)
    for _ in range(300):
        point = [2.0 ** draws.uniform(-12, 13) for _ in AXES]
        memory = [value * unit for value, unit in zip(point, units, strict=True)]
        multiple, increment, intersend = slow_look_up(published, point)
        assert table.action(table.find(memory)) == (multiple, increment, intersend * time_unit_ms)


@pytest.mark.parametrize("path", sorted((REFERENCE / "remyccs").glob("*.dna")), ids=str)
def test_every_published_file_is_read(path: Path) -> None:
    table, metadata = RuleTable.from_dna(path.read_bytes())
    assert RuleTable.from_dna(table.to_dna(metadata)) == (table, metadata)


@pytest.mark.parametrize(
    ("name", "rules", "signals", "domain_upper"),
    [
        ("RemyCC-2013-delta0.1.dna", 162, [0, 1, 2], 16384),
        ("RemyCC-2013-delta1.dna", 190, [0, 1, 2], 16384),
        ("RemyCC-2014-100x.dna", 91, [0, 1, 2, 3], 163840),
    ],
)
def test_published_files_are_read_and_written_field_by_field(
    name: str, rules: int, signals: list[int], domain_upper: float
) -> None:
    path = REFERENCE / "remyccs" / name
    if not path.exists():
        pytest.skip(f"REMY_REFERENCE_DIR names no folder whose subfolder remyccs holds {name}")
    table, metadata = RuleTable.from_dna(path.read_bytes())
    assert table.rule_count == rules
    assert table.signals == signals
    assert table.domain_upper == domain_upper

    published = dna.WhiskerTree.FromString(path.read_bytes())
    written = dna.WhiskerTree.FromString(table.to_dna(metadata))
    assert without_what_old_files_lack(written, signals) == without_what_old_files_lack(
        published, signals
    )
