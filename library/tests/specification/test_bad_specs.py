"""Tests that a mistake is refused with one sentence: file, field, value and what is allowed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from library.tests.specification.specs import MINIMAL, with_line
from remy_farm.files import FileError
from remy_farm.specification import SpecError, Violation, check_spec, load_spec, parse_spec
from remy_proto.v1 import spec_pb2

_POSITIVE_MS = "a number above 0 and at most 1000000 ms"
_STOP_KEYS = "epochs, rules, steps, cpu_seconds, wall_seconds, epochs_without_gain"


def error_of(text: str | bytes, *, json: bool = False) -> SpecError:
    with pytest.raises(SpecError) as caught:
        parse_spec(text, source="spec.yaml", json=json)
    return caught.value


def _mistakes() -> list[tuple[str, str]]:
    """The cases of mistakes.txt: lines of YAML, and the error that they cause."""
    text = Path(__file__).with_name("mistakes.txt").read_text(encoding="utf-8")
    cases = [case.split("\n-> ") for case in text.strip("\n").split("\n\n")]
    return [(line, " ".join(sentence.split())) for line, sentence in cases]


@pytest.mark.parametrize(("line", "sentence"), _mistakes())
def test_a_mistake_is_refused_with_what_is_allowed(line: str, sentence: str) -> None:
    assert str(error_of(with_line(line))) == f"spec.yaml: {sentence}"


def test_a_number_of_any_length_is_read() -> None:
    assert str(error_of(with_line(f"  rtt_ms: {'9' * 5000}"))).startswith(
        "spec.yaml: network.rtt_ms is inf, but must be"
    )


_IN_YAML = {
    "": "is empty",
    "# nothing\n": "is empty",
    "[]": "is a list, but must be a mapping with the keys name, edition, network, models, "
    "objective, signals, rules, path_model, search, stop, workers",
    "a: [": "is not YAML (expected the node content, but found '<stream end>', line 1, column 5)",
    "a: \x00": "is not YAML (unacceptable character #x0000: special characters are not allowed in "
    '"<unicode string>", position 3)',
    "a: 1\n---\nb: 1": "holds several documents, but must be one",
    "? [a]\n: 1": "has a key that is not plain text (line 1)",
    'a: "\\UFFFFFFFF"': "is not YAML (an escape or a directive has a number that is too large)",
    'b: "\\U00110000"': "is not YAML (an escape or a directive has a number that is too large)",
    f"%YAML 1.{'9' * 5000}\n---\na: 1": "is not YAML (an escape or a directive has a number that "
    "is too large)",
    "[" * 1000: "is nested too deeply; at most 32 levels are allowed",
    b"a: \xff": "is not UTF-8 text (byte 3)",
    "#" * (2**20 + 1): "is too large; at most 1048576 bytes are allowed",
}
_IN_JSON = {
    "": "is not JSON (Expecting value, line 1, column 1)",
    "null": "is empty",
    "{'a': 1}": "is not JSON (Expecting property name enclosed in double quotes, line 1, column 2)",
    '{"a": 1, "a": 2}': "names the key 'a' twice in one mapping",
    "[" * 100000: "is nested too deeply; at most 32 levels are allowed",
}


@pytest.mark.parametrize("text", _IN_YAML, ids=lambda text: repr(text[:9]))
def test_yaml_that_is_no_specification_is_refused(text: str | bytes) -> None:
    assert str(error_of(text)) == f"spec.yaml: the specification {_IN_YAML[text]}"


@pytest.mark.parametrize("text", _IN_JSON, ids=lambda text: repr(text[:9]))
def test_json_that_is_no_specification_is_refused(text: str) -> None:
    assert str(error_of(text, json=True)) == f"spec.yaml: the specification {_IN_JSON[text]}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: &x 1\nb: *x", "b is an alias of 'x', and aliases are not allowed (line 2)"),
        ("a: !!int 3", "a has the tag 'tag:yaml.org,2002:int', and tags are not allowed (line 1)"),
        ("a:\n  b: !x []", "a.b has the tag '!x', and tags are not allowed (line 2)"),
        ("a: {b: 1, b: 2}", "a.b is given twice (line 1)"),
    ],
)
def test_ambiguous_yaml_is_refused(text: str, sentence: str) -> None:
    assert str(error_of(text)) == f"spec.yaml: {sentence}"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_json_numbers_that_are_not_finite_are_refused(number: str) -> None:
    assert "stop.rules is " in str(error_of(f'{{"stop": {{"rules": {number}}}}}', json=True))


def test_independent_mistakes_are_reported_together() -> None:
    text = with_line("  rtt_ms: -5").replace("stop:", "objective: {alpha: x}\nstop:")
    assert error_of(text).violations == (
        Violation("network.rtt_ms", f"is -5, but must be {_POSITIVE_MS}"),
        Violation("objective.alpha", "is 'x', but must be a number at least 0 and at most 10"),
    )


def test_consequences_of_a_mistake_are_not_reported() -> None:
    violations = error_of(with_line("  rtt_ms: {uniform: [x, 10]}")).violations
    assert [violation.path for violation in violations] == ["network.rtt_ms.uniform.low"]


def test_the_sentence_lists_only_the_first_of_many_mistakes() -> None:
    error = error_of(with_line(f"  rtt_ms: [{'0, ' * 500}1]"))
    assert len(error.violations) == 500
    assert str(error).endswith("; and 492 more")
    assert len(str(error)) < 1000


def test_missing_keys_are_listed() -> None:
    assert [str(violation) for violation in error_of("name: a").violations] == [
        "network is missing",
    ]
    assert [str(violation) for violation in error_of("search: {mode: paper}").violations] == [
        "name is missing",
        "network is missing",
        f"stop must have at least one of the keys {_STOP_KEYS} if search.mode is paper",
    ]


def test_errors_name_the_file_as_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "design.yaml"
    path.write_text(with_line("name: 5"), encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    assert str(caught.value) == f"{path}: name is 5, but must be text"
    with pytest.raises(FileError, match=r"absent\.yaml: cannot be read \(no such file"):
        load_spec(tmp_path / "absent.yaml")


def test_the_file_name_selects_yaml_or_json(tmp_path: Path) -> None:
    yaml, json = tmp_path / "design.yaml", tmp_path / "design.json"
    for path in (yaml, json):
        path.write_text(MINIMAL, encoding="utf-8")
    assert load_spec(yaml) == parse_spec(MINIMAL)
    with pytest.raises(SpecError, match="is not JSON"):
        load_spec(json)


# Messages received over the network are checked like text.


def test_a_complete_message_is_accepted() -> None:
    check_spec(parse_spec(MINIMAL))


@pytest.mark.parametrize(
    ("section", "field", "value", "problem"),
    [
        ("objective", "alpha", 11, "is 11, but must be a number at least 0 and at most 10"),
        ("objective", "alpha", math.nan, "is nan, but must be a number at least 0 and at most 10"),
        ("objective", "throughput", 0, "is 0, but must be one of equal_share, on_time, completion"),
        (
            "objective",
            "throughput",
            99,
            "is 99, but must be one of equal_share, on_time, completion",
        ),
        (
            "stop",
            "epochs",
            0,
            "is 0, but must be a whole number at least 1 and at most 4294967295 epochs",
        ),
    ],
)
def test_the_values_of_a_message_are_checked(
    section: str, field: str, value: float, problem: str
) -> None:
    spec = parse_spec(MINIMAL)
    setattr(getattr(spec, section), field, value)
    with pytest.raises(SpecError) as caught:
        check_spec(spec)
    assert str(caught.value) == f"the specification: {section}.{field} {problem}"


@pytest.mark.parametrize(
    "path",
    "network network.rtt_ms network.buffer objective search.paper search.paper.intersend_ms "
    "search.joint search.joint.intersend_ms search.simulated_seconds stop "
    "network.traffic.mean_off_ms".split(),
)
def test_a_message_that_was_not_completed_is_refused(path: str) -> None:
    spec = parse_spec(MINIMAL)
    *parents, field = path.split(".")
    message: Any = spec
    for parent in parents:
        message = getattr(message, parent)
    message.ClearField(field)
    with pytest.raises(SpecError) as caught:
        check_spec(spec)
    assert str(caught.value) == f"the specification: {path} is missing"


def test_an_incomplete_grid_in_a_message_is_refused() -> None:
    spec = parse_spec(MINIMAL)
    spec.search.paper.intersend_ms.ClearField("factor")
    with pytest.raises(SpecError, match=r"search\.paper\.intersend_ms\.factor is missing"):
        check_spec(spec)


def test_an_incomplete_range_in_a_message_is_refused() -> None:
    spec = parse_spec(MINIMAL)
    spec.search.joint.window_multiple.ClearField("maximum")
    with pytest.raises(SpecError, match=r"search\.joint\.window_multiple\.maximum is missing"):
        check_spec(spec)


def test_an_empty_message_is_refused() -> None:
    with pytest.raises(SpecError, match=r"name is missing; network is missing"):
        check_spec(spec_pb2.DesignSpec())
