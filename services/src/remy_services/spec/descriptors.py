"""Descriptors of messages, fields and enums under the types that the rest relies on."""

from collections.abc import Sequence
from typing import cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message


def descriptor_of(message: Message | type[Message]) -> Descriptor:
    """The descriptor of a message or of its type."""
    return cast(Descriptor, message.DESCRIPTOR)


def enum_of(field: FieldDescriptor) -> EnumDescriptor:
    """The enum of an enum field."""
    return cast(EnumDescriptor, field.enum_type)


def submessage_of(field: FieldDescriptor) -> Descriptor:
    """The message of a message field."""
    return cast(Descriptor, field.message_type)


def fields_of(message: Message | type[Message]) -> Sequence[FieldDescriptor]:
    """The fields in the order of the proto file."""
    return descriptor_of(message).fields


def is_submessage(field: FieldDescriptor) -> bool:
    """Whether the field holds a message or messages."""
    return bool(field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE)


def oneofs_of(message: Message) -> list[list[str]]:
    """The names of the fields of each oneof, without the oneofs that stand for `optional`."""
    names = [
        (oneof.name, [field.name for field in oneof.fields])
        for oneof in descriptor_of(message).oneofs
    ]
    return [fields for name, fields in names if fields != [name.removeprefix("_")]]
