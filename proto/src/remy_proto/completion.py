"""Completion: what a message means that leaves fields out.

Every scalar has presence, so that a field that was left out can be told from a zero that was meant.
`complete` gives a field that was left out the default that is declared beside it, and is called
wherever a message enters: a file, a call, a stored job, an archive, a worker's stream. README.md of
this package has the rule, and how a field is added.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from remy_proto.v1 import constraints_pb2, rule_table_pb2, spec_pb2

__all__ = [
    "Default",
    "FIRST_EDITION",
    "NEWEST_EDITION",
    "complete",
    "constraint_of",
    "default_message",
    "default_of",
    "default_text",
    "edition_of",
    "is_alternative",
    "rules",
    "scalar",
    "signals",
    "simulated_seconds",
]

#: The edition of a specification that is completed now and names none.
NEWEST_EDITION: Final = 3

#: A default as it is declared: a number or word, or several, or a mapping.
Default: TypeAlias = str | list[str] | dict[str, str]

_MessageT = TypeVar("_MessageT", bound=Message)

_SPEC: Final = spec_pb2.DesignSpec.DESCRIPTOR.full_name
_SIMULATED_SECONDS: Final = {
    spec_pb2.SEARCH_MODE_PAPER: 100.0,
    spec_pb2.SEARCH_MODE_JOINT: 30.0,
    spec_pb2.SEARCH_MODE_PATTERN: 30.0,
}
_ABSOLUTE_SIGNALS: Final = (
    rule_table_pb2.SIGNAL_SEND_EWMA,
    rule_table_pb2.SIGNAL_REC_EWMA,
    rule_table_pb2.SIGNAL_SLOW_REC_EWMA,
    rule_table_pb2.SIGNAL_RTT_DIFF,
    rule_table_pb2.SIGNAL_QUEUEING_DELAY,
    rule_table_pb2.SIGNAL_QUEUE_LENGTH,
)
# Absolute rules look at these unless a specification says otherwise.
_USUAL_ABSOLUTE_SIGNALS: Final = (
    rule_table_pb2.SIGNAL_SEND_EWMA,
    rule_table_pb2.SIGNAL_REC_EWMA,
    rule_table_pb2.SIGNAL_RTT_RATIO,
)
_TOKEN: Final = re.compile(r"[^\s,:{}\[\]]+")


def complete(message: _MessageT, *, edition: int = NEWEST_EDITION) -> _MessageT:
    """Fills in, in place, what a message leaves out and has a default for; returns the message.

    A specification in it names the edition of its defaults from then on, which is `edition` if it
    named none. What is required and missing stays missing, and nothing is checked.
    """
    _complete(message, edition, {})
    return message


def constraint_of(field: FieldDescriptor) -> constraints_pb2.Constraint:
    """The constraint declared for a field; empty if there is none."""
    extensions: Any = field.GetOptions().Extensions
    constraint: constraints_pb2.Constraint = extensions[constraints_pb2.constraint]
    return constraint


def is_alternative(field: FieldDescriptor) -> bool:
    """Whether the field is one of a oneof that is not there for `optional` alone."""
    oneof = field.containing_oneof
    return oneof is not None and oneof.name != f"_{field.name}"


def default_text(field: FieldDescriptor, edition: int) -> str:
    """The default declared for a field, as a YAML file has it; empty if there is none."""
    constraint = constraint_of(field)
    text = constraint.default
    for later in constraint.edition_defaults:
        if later.edition <= edition:
            text = later.value
    return text


@cache
def default_of(field: FieldDescriptor, edition: int) -> Default | None:
    """The default declared for a field; None if there is none."""
    text = default_text(field, edition)
    words = _TOKEN.findall(text)
    match text[:1]:
        case "":
            return None
        case "{":
            return dict(zip(words[::2], words[1::2], strict=True))
        case "[":
            return words
    return text


def scalar(field: FieldDescriptor, word: str) -> Any:
    """A value of the field, as a default spells it."""
    if field.enum_type is not None:
        prefix = field.enum_type.values_by_number[0].name.removesuffix("UNSPECIFIED")
        return field.enum_type.values_by_name[prefix + word.upper()].number
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return float(word)
        case FieldDescriptor.CPPTYPE_STRING:
            return word
        case FieldDescriptor.CPPTYPE_BOOL:
            return word == "true"
    return int(word)


def default_message(field: FieldDescriptor, edition: int) -> Message | None:
    """What a field that holds a message takes if it is left out; None if it stays absent."""
    default = default_of(field, edition)
    if default is None:
        return None
    parent = field.containing_type._concrete_class()
    message: Message = getattr(parent, field.name)
    if isinstance(default, str):
        _assign_word(message, default)
        default = {}
    assert isinstance(default, dict)
    _fill(message, edition, default)
    return message


def simulated_seconds(mode: int) -> float:
    """The default of `search.simulated_seconds`, which depends on the mode."""
    # A mode that could not be understood is found elsewhere.
    return _SIMULATED_SECONDS.get(mode, _SIMULATED_SECONDS[spec_pb2.SEARCH_MODE_PAPER])


def rules(spec: spec_pb2.DesignSpec, edition: int) -> int:
    """The default of `rules`, which depends on the mode; signals that are given may say more."""
    field = spec_pb2.DesignSpec.DESCRIPTOR.fields_by_name["rules"]
    number: int = scalar(field, default_text(field, edition))
    is_paper = spec.search.mode == spec_pb2.SEARCH_MODE_PAPER
    return rule_table_pb2.RULES_ABSOLUTE if is_paper else number


def signals(rules: int, edition: int) -> list[int]:
    """The default of `signals`, which depends on the rules."""
    if rules in (rule_table_pb2.RULES_UNSPECIFIED, rule_table_pb2.RULES_ABSOLUTE):
        return list(_USUAL_ABSOLUTE_SIGNALS)
    field = spec_pb2.DesignSpec.DESCRIPTOR.fields_by_name["signals"]
    return [scalar(field, word) for word in default_of(field, edition) or ()]


def _complete(message: Message, edition: int, inherited: dict[str, str]) -> None:
    if message.DESCRIPTOR.full_name != _SPEC:
        _fill(message, edition, inherited)
        return
    spec: Any = message
    if not spec.HasField("edition"):
        spec.edition = edition
    edition = spec.edition
    given, has_rules = list(spec.signals), spec.HasField("rules")
    _fill(spec, edition, inherited)
    if not has_rules:
        is_absolute = any(signal in _ABSOLUTE_SIGNALS for signal in given)
        spec.rules = rule_table_pb2.RULES_ABSOLUTE if is_absolute else rules(spec, edition)
    if not given:
        spec.signals[:] = signals(spec.rules, edition)
    if not spec.search.HasField("simulated_seconds"):
        spec.search.simulated_seconds = simulated_seconds(spec.search.mode)


def _fill(message: Message, edition: int, inherited: dict[str, str]) -> None:
    """`inherited` are defaults that the field which holds the message declares for its keys."""
    for field in _fillable(message.DESCRIPTOR) if not inherited else message.DESCRIPTOR.fields:
        default: Default | None = inherited.get(field.name, default_of(field, edition))
        value = getattr(message, field.name)
        if field.is_repeated:
            if field.message_type is not None:
                for item in value:
                    _complete(item, edition, {})
            elif not value and default is not None:
                value.extend(scalar(field, word) for word in default)
        elif field.message_type is None:
            if default is not None and not message.HasField(field.name):
                assert isinstance(default, str)
                setattr(message, field.name, scalar(field, default))
        else:
            if not message.HasField(field.name):
                if default is None:
                    continue
                value.SetInParent()
                if isinstance(default, str):
                    _assign_word(value, default)
            _complete(value, edition, default if isinstance(default, dict) else {})


def _assign_word(message: Message, word: str) -> None:
    """Makes of an empty alternative what a single word stands for: `0` an exact value, `infinite`
    the member of that name."""
    fields = message.DESCRIPTOR.fields_by_name
    if word in fields:
        getattr(message, word).SetInParent()
    else:
        exact = next(field for field in fields.values() if field.message_type is None)
        setattr(message, exact.name, scalar(exact, word))


@cache
def _fillable(descriptor: Descriptor) -> tuple[FieldDescriptor, ...]:
    """The fields that have defaults, or may hold something that has. No message is recursive."""
    return tuple(
        field
        for field in descriptor.fields
        if constraint_of(field).default
        or default_text(field, NEWEST_EDITION)
        or (
            field.message_type is not None
            and (field.message_type.full_name == _SPEC or _fillable(field.message_type))
        )
    )
