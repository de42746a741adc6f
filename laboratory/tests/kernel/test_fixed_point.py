"""Tests tables in fixed-point numbers, and their C headers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laboratory.tests.kernel.tables import (
    ABSOLUTE,
    GOLDEN,
    SCALE_FREE,
    absolute_rules,
    integers,
    needs_c,
)
from library.tests.remycc.tables import six_scale_free_rules
from remy_laboratory.kernel.differential import c_compiler, compare_compiled
from remy_laboratory.kernel.fixed_point import (
    RATIO_BITS,
    SOURCES,
    TIME_BITS,
    UNREACHED,
    IntegerTable,
    ShareAction,
    UnsuitableTable,
    c_header,
)
from remy_simulator import RuleTable

# A program that reads an action and a window per line, and prints the window that the action sets.
_ONE_RULE = r"""
#include <stdio.h>
#include "remy_table.h"
int main(void) {
  struct remy_state state;
  struct remy_absolute action = {0, 0, 0, 0, 0, 0};
  remy_start(&state);
  while (scanf("%llu %llu %llu", &action.multiple, &action.multiple_rest, &action.shift) == 3 &&
         scanf("%lld %llu", &action.increment, &action.increment_rest) == 2 &&
         scanf("%u", &state.window) == 1) {
    remy_apply_absolute(&state, &action);
    printf("%u\n", state.window);
  }
  return 0;
}
"""


@pytest.fixture(scope="module")
def one_rule(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one-rule")
    (folder / "remy_table.h").write_text(c_header(IntegerTable.from_rule_table(absolute_rules())))
    (folder / "one_rule.c").write_text(_ONE_RULE)
    command = [*c_compiler(), "-std=c99", "-Wall", "-Werror", str(folder / "one_rule.c")]
    subprocess.run([*command, "-o", str(folder / "one_rule")], check=True)
    return folder / "one_rule"


def _windows(program: Path, multiple: float, increment: float, windows: list[int]) -> list[int]:
    """Applies one rule to each window with the exported arithmetic."""
    table = IntegerTable.from_rule_table(RuleTable([0], [([], (multiple, increment, 1.0))]))
    row = table.start_action.row
    numbers = re.findall(r"-?\d+", row.replace("ull", "").replace("ll", ""))[:5]
    lines = "".join(f"{' '.join(numbers)} {window}\n" for window in windows)
    result = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    return list(map(int, result.stdout.split()))


@pytest.mark.parametrize(
    ("name", "make"),
    [("absolute", absolute_rules), ("scale-free", six_scale_free_rules)],
    ids=["absolute", "scale-free"],
)
def test_header_equals_the_golden_file(name: str, make: Callable[[], RuleTable]) -> None:
    """The header is the template with the table's own text in place of the mark."""
    before, after = (SOURCES / "remy_table.h").read_text().split("/*@TABLE@*/\n")
    generated = (GOLDEN / f"{name}.h").read_text()
    assert c_header(IntegerTable.from_rule_table(make())) == before + generated + after


@pytest.mark.parametrize("path", [ABSOLUTE, SCALE_FREE], ids=["absolute", "scale-free"])
def test_equal_tables_give_equal_headers(path: Path) -> None:
    assert c_header(integers(path)) == c_header(integers(path))
    assert c_header(integers(path)) != c_header(integers(path), deadband_us=100)


@pytest.mark.parametrize("flag", ["-std=c99", "-std=c11"])
@pytest.mark.parametrize("path", [ABSOLUTE, SCALE_FREE], ids=["absolute", "scale-free"])
@needs_c
def test_header_compiles_alone(path: Path, flag: str, tmp_path: Path) -> None:
    (tmp_path / "remy_table.h").write_text(c_header(integers(path)))
    program = tmp_path / "sender.c"
    program.write_text(
        '#include "remy_table.h"\n'
        "int main(void) {\n"
        "  struct remy_state state;\n"
        "  remy_start(&state);\n"
        "  remy_acknowledge(&state, 1000, 151000, 150000, 1);\n"
        "  remy_skip(&state, 2000, 152000);\n"
        "  return remy_window(&state) == 0 || remy_pacing_rate(&state, 1448) == 0;\n"
        "}\n"
    )
    text = (tmp_path / "remy_table.h").read_text()
    assert "#include" not in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    command = [*c_compiler(), flag, "-Wall", "-Wextra", "-Werror", "-ffreestanding"]
    subprocess.run([*command, str(program), "-o", str(tmp_path / "sender")], check=True)
    subprocess.run([str(tmp_path / "sender")], check=True)


@given(st.floats(0, 163_839, allow_subnormal=False))
def test_threshold_is_the_smallest_number_of_units_that_reaches_it(threshold: float) -> None:
    nodes = [([(0, threshold)], (1.0, 1.0, 1.0)), ([], (1.0, 1.0, 1.0)), ([], (1.0, 2.0, 1.0))]
    limit = IntegerTable.from_rule_table(RuleTable([0], nodes)).nodes[0].thresholds[0]
    units_per_ms = 1000 << TIME_BITS
    assert limit / units_per_ms >= threshold
    assert limit == 0 or (limit - 1) / units_per_ms < threshold


def test_multiples_of_scale_free_rules_are_rounded_up() -> None:
    """Rounding up keeps products whole that are whole in doubles."""
    action = IntegerTable.from_rule_table(six_scale_free_rules()).actions[1]
    multiple = six_scale_free_rules().action(1)[0]
    assert isinstance(action, ShareAction)
    assert 0 <= Fraction(action.multiple, 1 << 40) - Fraction(multiple) < Fraction(1, 1 << 40)


_DECIMALS = st.integers(1, 6).flatmap(
    lambda digits: st.integers(0, 3 * 10**digits).map(lambda number: number / 10**digits)
)


@given(
    st.one_of(_DECIMALS, st.floats(0, 8), st.floats(0.001, 1)),
    st.one_of(_DECIMALS, _DECIMALS.map(lambda value: -value), st.floats(-500, 500)),
)
@settings(deadline=None)
@needs_c
def test_windows_of_absolute_rules_equal_those_of_doubles(
    one_rule: Path, multiple: float, increment: float
) -> None:
    windows = [*range(1200), *range(64_000, 64_200), *range(500_000, 500_200), 999_999, 1_000_000]
    assert _windows(one_rule, multiple, increment, windows) == [
        int(min(max(window * multiple + increment, 0.0), 1e6)) for window in windows
    ]


@pytest.mark.parametrize(
    ("multiple", "increment", "window", "expected"),
    [
        (0.29, 0.0, 100, 28),
        (0.57, 0.0, 100, 56),
        (0.29, 10.0, 100, 39),
        (0.7, 0.0, 10, 7),
        (0.1291, 10.0, 500_000, 64_559),
        (0.9, 0.0, 10, 9),
        (0.0001, 0.0, 500_000, 50),
        (1e-300, 5.0, 1_000_000, 5),
        (1.0, -3.5, 2, 0),
        (8.0, 0.0, 1_000_000, 1_000_000),
    ],
)
@needs_c
def test_products_round_down_where_doubles_do(
    one_rule: Path, multiple: float, increment: float, window: int, expected: int
) -> None:
    assert _windows(one_rule, multiple, increment, [window]) == [expected]


def test_axes_that_a_node_does_not_divide_have_an_unreachable_threshold() -> None:
    first = IntegerTable.from_rule_table(absolute_rules()).nodes[0]
    assert first.thresholds[1] == first.thresholds[3] == UNREACHED
    assert first.thresholds[2] == 17 << RATIO_BITS - 4


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ((8.5, 1.0, 1.0), "rule 0 has a window multiple of 8.5; the maximum for 64-bit"),
        ((1.0, 2e6, 1.0), "rule 0 has a window increment of 2e+06; the maximum for 64-bit"),
        ((1.0, 1.0, 2e6), "rule 0 has an intersend time of 2e+06 ms; the maximum for 64-bit"),
    ],
)
def test_numbers_that_do_not_fit_64_bits_are_refused(
    action: tuple[float, float, float], message: str
) -> None:
    with pytest.raises(UnsuitableTable) as error:
        IntegerTable.from_rule_table(RuleTable([0], [([], action)]))
    assert message in str(error.value)


def test_table_with_a_signal_that_acks_do_not_carry_is_refused() -> None:
    nodes = [([(6, 0.5)], (1.0, 1.0, 1.0)), ([], (1.0, 1.0, 1.0)), ([], (1.0, 2.0, 1.0))]
    with pytest.raises(UnsuitableTable, match="uses loss_rate, which ACKs do not carry"):
        IntegerTable.from_rule_table(RuleTable([6], nodes))


def test_table_with_a_path_model_is_refused() -> None:
    model = (16.0, 0.03125, 6.0, 0.875, 2.0, 50.0, 0.5, 1.75, 1.1)
    table = RuleTable([0], [([], (0.5, 7.0, 1.5))], path_model=model)
    with pytest.raises(UnsuitableTable) as error:
        IntegerTable.from_rule_table(table)
    assert str(error.value) == (
        "the table has a path model, which the exported program does not have; export its rules "
        "alone (--rules-alone, or Table.without_path_model)"
    )
    assert IntegerTable.from_rule_table(table.with_path_model(None)).actions


@needs_c
def test_table_with_one_rule_gives_the_same_results() -> None:
    table = IntegerTable.from_rule_table(RuleTable([0], [([], (0.5, 7.0, 1.5))]))
    assert compare_compiled(table, c_header(table), vectors=2000).is_same
