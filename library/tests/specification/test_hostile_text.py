"""Tests that any text is read as a valid specification or refused with a SpecError."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.tests.specification.specs import MINIMAL, with_line
from remy_farm.specification import SpecError, check_spec, parse_spec

_PIECES = [
    *"[]{}:,-?&*!|>'\"%@`#\n\t\0~", "---", "...", "<<: ", "&a ", "*a", "!!binary ", "!!set ", "? ",
    ": ", "  ", "\n\n", "1e999", ".nan", "-", "0x10", "0o7", "1_000", "12:30", "2020-01-01", "null",
    "true", "\ud800", "\u2028", "\ufeff", "\U0001f600", "9" * 50, "uniform", "list", "exact",
    "network", "[low, high]", "{low: 1, high: 2}", "infinite", "send_ewma", "SIGNAL_UNSPECIFIED",
]  # fmt: skip

_FULL = with_line("  buffer: {packets: {integer_uniform: [1, 9]}}") + (
    "signals: [send_ewma]\nsearch: {seed: 3, paper: {intersend_ms: {steps: 2}}}\n"
)


def _parse(text: str, *, is_json: bool = False) -> None:
    """Parses a text, and checks that the result is valid or that the error is one short line."""
    error = _refusal(text, is_json)
    if error is not None:
        assert error.violations
        assert "\n" not in str(error)
        assert len(str(error)) < 10_000
        str(error).encode()


def _refusal(text: str, is_json: bool) -> SpecError | None:
    try:
        spec = parse_spec(text, json=is_json)
    except SpecError as error:
        return error
    check_spec(spec)
    return None


def _mutated(source: random.Random) -> str:
    text = _FULL
    for _ in range(source.randint(1, 6)):
        start = source.randrange(len(text) + 1)
        end = min(len(text), start + source.choice([0, 0, 1, 1, 5, 40]))
        inserted = source.choice([source.choice(_PIECES), text[start : start + 30], ""])
        text = text[:start] + inserted + text[end:]
    return text


@pytest.mark.parametrize("seed", range(20))
def test_mutated_text_is_refused_or_valid(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(50):
        _parse(_mutated(source))


_TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["infinite", "paper", "send_ewma"]),
    lambda trees: (
        st.lists(trees, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                "name network rtt_ms exact list uniform low values stop search x".split()
            ),
            trees,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(_TREES)
def test_any_tree_is_refused_or_valid(tree: object) -> None:
    _parse(
        json.dumps({"network": tree, "traffic": tree, "search": tree, "name": tree}), is_json=True
    )
    _parse(json.dumps(tree), is_json=True)


@given(st.text(max_size=50))
def test_any_text_is_refused_or_valid(text: str) -> None:
    _parse(text)
    _parse(text, is_json=True)


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]",
        "[" * 2**20,
        "{a: " * 2**18,
        "- " * 2**19,
        "a: [" + "1," * 50_000 + "1]",
        "a: " + "9" * 10**6,
        '"' + "\\x41" * 200_000 + '"',
        "? " * 2**19,
        MINIMAL.replace("rtt_ms: 150", "rtt_ms: [" + "1, " * 50_000 + "1]"),
    ],
    ids=lambda text: text[:12],
)
def test_text_that_would_exhaust_memory_or_time_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        parse_spec(text)
