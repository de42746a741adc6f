"""Fill in the defaults of the fields that a message leaves out.

Every scalar has presence, so an absent field differs from an explicit zero. `complete` sets each
absent field to the default declared beside it in the .proto file. It is called wherever a message
enters the program: from a file, a call, a stored job, an archive or a worker's stream. README.md
of this package states the rule and says how to add a field.
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

#: The edition that `complete` gives to a specification that names none.
NEWEST_EDITION: Final = 3

#: A default as declared: one number or word, several of them, or a mapping from key to default.
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
# The signals of absolute rules, unless a specification lists others.
_USUAL_ABSOLUTE_SIGNALS: Final = (
    rule_table_pb2.SIGNAL_SEND_EWMA,
    rule_table_pb2.SIGNAL_REC_EWMA,
    rule_table_pb2.SIGNAL_RTT_RATIO,
)
_TOKEN: Final = re.compile(r"[^\s,:{}\[\]]+")


def complete(message: _MessageT, *, edition: int = NEWEST_EDITION) -> _MessageT:
    """Sets, in place, every absent field that has a default, and returns the same message.

    A specification inside the message that names no edition is completed with the defaults of
    `edition`, and names it from then on. A required field that is missing stays missing: this
    function validates nothing.
    """
    _complete(message, edition, {})
    return message


def constraint_of(field: FieldDescriptor) -> constraints_pb2.Constraint:
    """The constraint declared for a field; empty if there is none."""
    extensions: Any = field.GetOptions().Extensions
    constraint: constraints_pb2.Constraint = extensions[constraints_pb2.constraint]
    return constraint


def is_alternative(field: FieldDescriptor) -> bool:
    """Whether the field belongs to a oneof declared in the .proto file.

    Every `optional` field also has a oneof, which the compiler makes; those do not count.
    """
    oneof = field.containing_oneof
    return oneof is not None and oneof.name != f"_{field.name}"


def default_text(field: FieldDescriptor, edition: int) -> str:
    """The default declared for a field, spelled as in YAML; empty if the field has no default."""
    constraint = constraint_of(field)
    text = constraint.default
    for later in constraint.edition_defaults:
        if later.edition <= edition:
            text = later.value
    return text


@cache
def default_of(field: FieldDescriptor, edition: int) -> Default | None:
    """The default declared for a field, parsed; None if the field has no default."""
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
    """Converts a word of a declared default to a value of the field's type."""
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
    """The default of a field that holds a message; None if the field has no default."""
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
    # Validation reports an unknown mode later.
    return _SIMULATED_SECONDS.get(mode, _SIMULATED_SECONDS[spec_pb2.SEARCH_MODE_PAPER])


def rules(spec: spec_pb2.DesignSpec, edition: int) -> int:
    """The default of `rules` for the search mode of a specification that lists no signals."""
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
    """Completes the fields of one message.

    `inherited` maps names of its fields to defaults declared by the field that holds the message;
    they come before the message's own.
    """
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
    """Sets the member of a oneof that a one-word default stands for.

    A word that is the name of a field, such as `infinite`, selects that field. Any other word is
    the value of the only scalar field, such as `exact`.
    """
    fields = message.DESCRIPTOR.fields_by_name
    if word in fields:
        getattr(message, word).SetInParent()
    else:
        exact = next(field for field in fields.values() if field.message_type is None)
        setattr(message, exact.name, scalar(exact, word))


@cache
def _fillable(descriptor: Descriptor) -> tuple[FieldDescriptor, ...]:
    """The fields with defaults, and those whose messages contain such fields.

    Terminates because no message is recursive.
    """
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
