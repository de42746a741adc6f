from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor
CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
constraint: _descriptor.FieldDescriptor

class Constraint(_message.Message):
    __slots__ = ("unit", "minimum", "maximum", "exclusive_minimum", "default", "required", "min_items", "max_items", "max_length", "integral", "unique")
    UNIT_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    EXCLUSIVE_MINIMUM_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELD_NUMBER: _ClassVar[int]
    MIN_ITEMS_FIELD_NUMBER: _ClassVar[int]
    MAX_ITEMS_FIELD_NUMBER: _ClassVar[int]
    MAX_LENGTH_FIELD_NUMBER: _ClassVar[int]
    INTEGRAL_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_FIELD_NUMBER: _ClassVar[int]
    unit: str
    minimum: float
    maximum: float
    exclusive_minimum: bool
    default: str
    required: bool
    min_items: int
    max_items: int
    max_length: int
    integral: bool
    unique: bool
    def __init__(self, unit: _Optional[str] = ..., minimum: _Optional[float] = ..., maximum: _Optional[float] = ..., exclusive_minimum: _Optional[bool] = ..., default: _Optional[str] = ..., required: _Optional[bool] = ..., min_items: _Optional[int] = ..., max_items: _Optional[int] = ..., max_length: _Optional[int] = ..., integral: _Optional[bool] = ..., unique: _Optional[bool] = ...) -> None: ...
