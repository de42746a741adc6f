from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
PRESET_FIELD_NUMBER: _ClassVar[int]
preset: _descriptor.FieldDescriptor
CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
constraint: _descriptor.FieldDescriptor

class Constraint(_message.Message):
    __slots__ = ("unit", "minimum", "maximum", "exclusive_minimum", "default", "required", "min_items", "max_items", "max_length", "integral", "unique", "may_be_absent", "required_unless", "edition_defaults", "list_of", "in_place_of")
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
    MAY_BE_ABSENT_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_UNLESS_FIELD_NUMBER: _ClassVar[int]
    EDITION_DEFAULTS_FIELD_NUMBER: _ClassVar[int]
    LIST_OF_FIELD_NUMBER: _ClassVar[int]
    IN_PLACE_OF_FIELD_NUMBER: _ClassVar[int]
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
    may_be_absent: bool
    required_unless: str
    edition_defaults: _containers.RepeatedCompositeFieldContainer[EditionDefault]
    list_of: str
    in_place_of: str
    def __init__(self, unit: _Optional[str] = ..., minimum: _Optional[float] = ..., maximum: _Optional[float] = ..., exclusive_minimum: _Optional[bool] = ..., default: _Optional[str] = ..., required: _Optional[bool] = ..., min_items: _Optional[int] = ..., max_items: _Optional[int] = ..., max_length: _Optional[int] = ..., integral: _Optional[bool] = ..., unique: _Optional[bool] = ..., may_be_absent: _Optional[bool] = ..., required_unless: _Optional[str] = ..., edition_defaults: _Optional[_Iterable[_Union[EditionDefault, _Mapping]]] = ..., list_of: _Optional[str] = ..., in_place_of: _Optional[str] = ...) -> None: ...

class EditionDefault(_message.Message):
    __slots__ = ("edition", "value")
    EDITION_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    edition: int
    value: str
    def __init__(self, edition: _Optional[int] = ..., value: _Optional[str] = ...) -> None: ...

class Preset(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
