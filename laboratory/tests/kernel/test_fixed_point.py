"""Tables as integers, and as C."""

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
    header,
)
from remy_simulator import RuleTable

# An absolute rule and a window a line, and what the window becomes.
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
    (folder / "remy_table.h").write_text(header(IntegerTable.of(absolute_rules())))
    (folder / "one_rule.c").write_text(_ONE_RULE)
    words = [*c_compiler(), "-std=c99", "-Wall", "-Werror", str(folder / "one_rule.c")]
    subprocess.run([*words, "-o", str(folder / "one_rule")], check=True)
    return folder / "one_rule"


def _windows(program: Path, multiple: float, increment: float, windows: list[int]) -> list[int]:
    """What the exported arithmetic makes of windows by one rule."""
    action = IntegerTable.of(RuleTable([0], [([], (multiple, increment, 1.0))])).start_action
    words = re.findall(r"-?\d+", action.row.replace("ull", "").replace("ll", ""))[:5]
    said = "".join(f"{' '.join(words)} {window}\n" for window in windows)
    done = subprocess.run([program], input=said, capture_output=True, text=True, check=True)
    return list(map(int, done.stdout.split()))


@pytest.mark.parametrize(
    ("name", "make"),
    [("absolute", absolute_rules), ("scale-free", six_scale_free_rules)],
    ids=["absolute", "scale-free"],
)
def test_the_header_is_as_it_was(name: str, make: Callable[[], RuleTable]) -> None:
    """The kernel's own file, and in it, where its mark is, what is this table's alone."""
    before, after = (SOURCES / "remy_table.h").read_text().split("/*@TABLE@*/\n")
    generated = (GOLDEN / f"{name}.h").read_text()
    assert header(IntegerTable.of(make())) == before + generated + after


@pytest.mark.parametrize("path", [ABSOLUTE, SCALE_FREE], ids=["absolute", "scale-free"])
def test_the_same_table_gives_the_same_bytes(path: Path) -> None:
    assert header(integers(path)) == header(integers(path))
    assert header(integers(path)) != header(integers(path), deadband_us=100)


@pytest.mark.parametrize("flag", ["-std=c99", "-std=c11"])
@pytest.mark.parametrize("path", [ABSOLUTE, SCALE_FREE], ids=["absolute", "scale-free"])
@needs_c
def test_the_header_needs_no_other(path: Path, flag: str, tmp_path: Path) -> None:
    (tmp_path / "remy_table.h").write_text(header(integers(path)))
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
    words = [*c_compiler(), flag, "-Wall", "-Wextra", "-Werror", "-ffreestanding"]
    subprocess.run([*words, str(program), "-o", str(tmp_path / "sender")], check=True)
    subprocess.run([str(tmp_path / "sender")], check=True)


@given(st.floats(0, 163_839, allow_subnormal=False))
def test_a_threshold_is_the_least_number_of_units_that_reaches_it(threshold: float) -> None:
    nodes = [([(0, threshold)], (1.0, 1.0, 1.0)), ([], (1.0, 1.0, 1.0)), ([], (1.0, 2.0, 1.0))]
    limit = IntegerTable.of(RuleTable([0], nodes)).nodes[0].thresholds[0]
    units_per_ms = 1000 << TIME_BITS
    assert limit / units_per_ms >= threshold
    assert limit == 0 or (limit - 1) / units_per_ms < threshold


def test_multiples_beside_shares_are_rounded_up_so_that_whole_windows_stay_whole() -> None:
    action = IntegerTable.of(six_scale_free_rules()).actions[1]
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
def test_windows_of_absolute_rules_are_those_of_doubles(
    one_rule: Path, multiple: float, increment: float
) -> None:
    windows = [*range(1200), *range(64_000, 64_200), *range(500_000, 500_200), 999_999, 1_000_000]
    assert _windows(one_rule, multiple, increment, windows) == [
        int(min(max(window * multiple + increment, 0.0), 1e6)) for window in windows
    ]


@pytest.mark.parametrize(
    ("multiple", "increment", "window", "found"),
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
def test_a_product_falls_short_of_a_whole_where_doubles_do(
    one_rule: Path, multiple: float, increment: float, window: int, found: int
) -> None:
    assert _windows(one_rule, multiple, increment, [window]) == [found]


def test_axes_that_are_not_divided_on_have_a_threshold_that_nothing_reaches() -> None:
    first = IntegerTable.of(absolute_rules()).nodes[0]
    assert first.thresholds[1] == first.thresholds[3] == UNREACHED
    assert first.thresholds[2] == 17 << RATIO_BITS - 4


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ((8.5, 1.0, 1.0), "rule 0 has a window multiple of 8.5; up to 8 can be computed"),
        ((1.0, 2e6, 1.0), "rule 0 has a window increment of 2e+06; up to 1.04858e+06 can be"),
        ((1.0, 1.0, 2e6), "rule 0 has an intersend time of 2e+06 ms; up to 1.07374e+06 can be"),
    ],
)
def test_what_64_bits_do_not_hold_is_refused(action: tuple[float, float, float], said: str) -> None:
    with pytest.raises(UnsuitableTable) as error:
        IntegerTable.of(RuleTable([0], [([], action)]))
    assert said in str(error.value)


def test_a_table_that_looks_at_what_acks_do_not_tell_is_refused() -> None:
    nodes = [([(6, 0.5)], (1.0, 1.0, 1.0)), ([], (1.0, 1.0, 1.0)), ([], (1.0, 2.0, 1.0))]
    with pytest.raises(UnsuitableTable, match="looks at loss_rate, which ACKs do not tell"):
        IntegerTable.of(RuleTable([6], nodes))


@needs_c
def test_a_table_of_one_rule_is_the_same_in_both() -> None:
    table = IntegerTable.of(RuleTable([0], [([], (0.5, 7.0, 1.5))]))
    assert compare_compiled(table, header(table), vectors=2000).is_same
