"""A specification with one of its values changed."""

from __future__ import annotations

from google.protobuf.descriptor import Descriptor

from remy_farm.v1 import spec_pb2
from remy_services.spec.descriptors import descriptor_of
from remy_services.spec.errors import SpecError, Violation, show
from remy_services.spec.reading import nearest
from remy_services.spec.shapes import expand
from remy_services.spec.text import Tree

_SPEC = descriptor_of(spec_pb2.DesignSpec)


def vary(tree: Tree, path: str, value: Tree, *, source: str = "the specification") -> Tree:
    """The tree of a specification with `value` at `path`, as in "objective.delta".

    Everything else stays as it is, but for alternatives that the path excludes: a value for
    "network.rtt_ms.uniform" takes the place of any other distribution. Whether the value may be
    there shows when the tree is read. Raises SpecError, naming path and value, if the path leads
    nowhere.
    """
    keys = path.split(".")
    return _with(tree, _SPEC, keys, value, _Place(source, path, value))


class _Place:
    """What is to be said of a path that leads nowhere."""

    def __init__(self, source: str, path: str, value: Tree) -> None:
        self._source = source
        self._path = path
        self._value = value

    def error(self, problem: str) -> SpecError:
        shown = f"cannot be set to {show(self._value)}: {problem}"
        return SpecError(self._source, [Violation(self._path or show(""), shown)])


def _with(tree: Tree, descriptor: Descriptor, keys: list[str], value: Tree, place: _Place) -> Tree:
    key, *rest = keys
    field = descriptor.fields_by_name.get(key)
    if field is None:
        known = [each.name for each in descriptor.fields]
        raise place.error(f"{show(key)} is not a known key; {nearest(key, known)}")
    mapping = {} if tree is None else expand(tree, descriptor)
    if not isinstance(mapping, dict):
        raise place.error(f"what is above {show(key)} is {show(tree)}, which has no keys")
    if not rest:
        changed = value
    elif field.message_type is None or field.is_repeated:
        raise place.error(f"{show(key)} holds a value and has no keys")
    else:
        changed = _with(mapping.get(key), field.message_type, rest, value, place)
    oneof = field.containing_oneof
    excluded = {each.name for each in oneof.fields} - {key} if oneof is not None else set()
    return {**{name: old for name, old in mapping.items() if name not in excluded}, key: changed}
