"""Tests the paper search's grid of candidate actions."""

from hypothesis import given
from hypothesis import strategies as st

from library.tests.designer.second_search import every_action
from library.tests.designer.small_spec import small_spec
from remy_farm.designer.paper import ActionGrid
from remy_proto.v1 import spec_pb2
from remy_simulator.messages import Action

# The reference tool's grid.
DEFAULT = spec_pb2.PaperSearch(
    window_increment=spec_pb2.ActionGrid(
        minimum=0, maximum=256, first_step=1, factor=4, steps=3, initial=1
    ),
    window_multiple=spec_pb2.ActionGrid(
        minimum=0, maximum=1, first_step=0.01, factor=4, steps=3, initial=1
    ),
    intersend_ms=spec_pb2.ActionGrid(
        minimum=0.25, maximum=3, first_step=0.05, factor=4, steps=3, initial=3
    ),
)


def _decimals(low: int, high: int, scale: int = 100) -> st.SearchStrategy[float]:
    """Draws one of the values low/scale, ..., high/scale."""
    return st.integers(low, high).map(lambda number: number / scale)


@st.composite
def _grids(draw: st.DrawFn) -> spec_pb2.ActionGrid:
    minimum, maximum = sorted(draw(st.tuples(_decimals(0, 30000), _decimals(0, 30000))))
    return spec_pb2.ActionGrid(
        minimum=minimum,
        maximum=maximum,
        first_step=draw(_decimals(1, 2000)),
        factor=draw(_decimals(11, 50, scale=10)),
        steps=draw(st.integers(0, 3)),
        initial=minimum,
    )


@st.composite
def _searches(draw: st.DrawFn) -> tuple[spec_pb2.PaperSearch, Action]:
    paper = spec_pb2.PaperSearch(
        window_increment=draw(_grids()),
        window_multiple=draw(_grids()),
        intersend_ms=draw(_grids()),
    )
    increment = float(draw(st.integers(0, 256)))
    return paper, Action(draw(_decimals(0, 100)), increment, draw(_decimals(25, 300)))


@given(_searches())
def test_grid_has_the_actions_of_the_simple_implementation(
    search: tuple[spec_pb2.PaperSearch, Action],
) -> None:
    paper, action = search
    assert ActionGrid(paper).neighbours(action) == every_action(paper, action)


def test_default_grid_has_the_reference_tools_bounds() -> None:
    paper = small_spec().search.paper
    assert paper.window_increment.maximum == DEFAULT.window_increment.maximum
    assert paper.intersend_ms.minimum == DEFAULT.intersend_ms.minimum
    assert ActionGrid(DEFAULT).initial == (1, 1, 3)


def test_distances_grow_geometrically_on_both_sides() -> None:
    neighbours = ActionGrid(DEFAULT).neighbours(Action(0.5, 100, 1.5))

    assert len(neighbours) == 7 * 7 * 7 - 1
    assert sorted({m for m, _, _ in neighbours}) == [0.34, 0.46, 0.49, 0.5, 0.51, 0.54, 0.66]
    assert sorted({b for _, b, _ in neighbours}) == [84, 96, 99, 100, 101, 104, 116]
    assert sorted({r for _, _, r in neighbours}) == [0.7, 1.3, 1.45, 1.5, 1.55, 1.7, 2.3]


def test_actions_outside_the_bounds_are_left_out() -> None:
    neighbours = ActionGrid(DEFAULT).neighbours(Action(1, 0, 3))

    assert sorted({m for m, _, _ in neighbours}) == [0.84, 0.96, 0.99, 1]
    assert sorted({b for _, b, _ in neighbours}) == [0, 1, 4, 16]
    assert sorted({r for _, _, r in neighbours}) == [2.2, 2.8, 2.95, 3]


def test_an_action_is_not_its_own_neighbour() -> None:
    assert (1, 1, 3) not in ActionGrid(DEFAULT).neighbours(Action(1, 1, 3))


def test_steps_down_and_up_cancel() -> None:
    multiple = ActionGrid(DEFAULT).window_multiple
    value = 1.0
    for _ in range(30):
        value = [v for v in multiple.alternatives(value) if v < value][-1]
    for _ in range(30):
        value = next(v for v in multiple.alternatives(value) if v > value)
    assert value == 1


def test_window_increments_are_whole_packets() -> None:
    paper = spec_pb2.PaperSearch()
    paper.CopyFrom(DEFAULT)
    paper.window_increment.first_step = 0.3
    increments = {b for _, b, _ in ActionGrid(paper).neighbours(Action(0.5, 10, 1))}
    assert increments == {5, 9, 10, 11, 15}
