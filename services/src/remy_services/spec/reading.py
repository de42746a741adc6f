"""A tree of YAML or JSON as a message, with defaults filled in: one walk over the descriptors."""

import difflib
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from remy_services.spec.constraints import Bounds, constraint_of, enum_names
from remy_services.spec.descriptors import descriptor_of, enum_of, is_submessage, oneofs_of
from remy_services.spec.errors import Violation, child_path, show
from remy_services.spec.shapes import expand, field_path, forms
from remy_services.spec.text import Tree, read_yaml


def fill(message: Message, tree: Tree) -> list[Violation]:
    """Fills an empty message from a tree and the defaults declared for its fields.

    Returns what could not be understood: keys, types, numbers out of range. What was understood
    is filled in all the same, so that it can be checked, too.
    """
    reader = _Reader()
    reader.message(message, tree, "", Bounds())
    return reader.violations


class _Reader:
    def __init__(self) -> None:
        self.violations: list[Violation] = []

    def message(self, message: Message, tree: Tree, path: str, bounds: Bounds) -> None:
        descriptor = descriptor_of(message)
        mapping = expand(tree, descriptor)
        if not isinstance(mapping, dict):
            self._refuse(path, f"is {show(tree)}, but must be {forms(descriptor)}")
            return
        known = [field.name for field in descriptor.fields]
        unknown = [key for key in mapping if key not in known]
        for key in unknown:
            self._refuse(child_path(path, key), f"is not a known key; {nearest(key, known)}")
        for field in descriptor.fields:
            self._field(message, field, mapping, path, bounds)
        for names in oneofs_of(message):
            given = [name for name in names if name in mapping]
            if len(given) > 1:
                self._refuse(path, f"has {' and '.join(given)}, but must have one of them")
            elif not given and not unknown:
                self._refuse(path, f"must have one of the keys {', '.join(names)}")

    def _field(
        self,
        message: Message,
        field: FieldDescriptor,
        mapping: dict[str, Tree],
        path: str,
        outer: Bounds,
    ) -> None:
        own_path, bounds = field_path(path, field), outer.within(field)
        default = default_tree(field)
        if field.name in mapping:
            tree = mapping[field.name]
            if isinstance(tree, dict) and isinstance(default, dict):
                tree = {**default, **tree}
        elif default is not None:
            tree = default
        elif constraint_of(field).required:
            self._refuse(own_path, "is missing")
            return
        elif is_submessage(field) and field.containing_oneof is None:
            tree = {}
        else:
            return
        if tree is None:
            self._refuse(own_path, "is empty; give it a value or leave the key out")
        elif field.is_repeated:
            self._repeated(message, field, tree, own_path, bounds)
        elif is_submessage(field):
            submessage = getattr(message, field.name)
            submessage.SetInParent()
            self.message(submessage, tree, own_path, bounds)
        elif (value := self._scalar(field, tree, own_path, bounds)) is not None:
            setattr(message, field.name, value)

    def _repeated(
        self, message: Message, field: FieldDescriptor, tree: Tree, path: str, bounds: Bounds
    ) -> None:
        if not isinstance(tree, list):
            self._refuse(path, f"is {show(tree)}, but must be a list")
            return
        values = getattr(message, field.name)
        for index, item in enumerate(tree):
            item_path = f"{path}[{index}]"
            if is_submessage(field):
                self.message(values.add(), item, item_path, bounds)
            elif (value := self._scalar(field, item, item_path, bounds)) is not None:
                values.append(value)

    def _scalar(self, field: FieldDescriptor, tree: Tree, path: str, bounds: Bounds) -> Any:
        """The field's value; None if the tree holds no such value."""
        match field.cpp_type:
            case FieldDescriptor.CPPTYPE_ENUM:
                return self._enum(field, tree, path)
            case FieldDescriptor.CPPTYPE_STRING:
                return self._string(tree, path)
            case FieldDescriptor.CPPTYPE_BOOL:
                if isinstance(tree, bool):
                    return tree
                self._refuse(path, f"is {show(tree)}, but must be true or false")
                return None
            case _:
                return self._number(field, tree, path, bounds)

    def _number(
        self, field: FieldDescriptor, tree: Tree, path: str, bounds: Bounds
    ) -> float | None:
        problem = bounds.problem(tree)
        if problem is not None:
            self._refuse(path, problem)
            return None
        assert isinstance(tree, int | float)
        if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE:
            # Adding zero turns -0.0 into 0.0, which YAML writes alike.
            return float(tree) + 0.0
        return int(tree)

    def _enum(self, field: FieldDescriptor, tree: Tree, path: str) -> int | None:
        enum = enum_of(field)
        names = enum_names(enum)
        full = {value.name: value.number for value in enum.values if value.number != 0}
        number = {**names, **full}.get(tree) if isinstance(tree, str) else None
        if number is None:
            self._refuse(path, f"is {show(tree)}, but must be one of {', '.join(names)}")
        return number

    def _string(self, tree: Tree, path: str) -> str | None:
        if isinstance(tree, str) and tree.isprintable():
            return tree
        self._refuse(path, f"is {show(tree)}, but must be text")
        return None

    def _refuse(self, path: str, problem: str) -> None:
        self.violations.append(Violation(path, problem))


def default_tree(field: FieldDescriptor) -> Tree:
    """The default declared for a field; None if there is none."""
    default = constraint_of(field).default
    return read_yaml(default, field.full_name) if default else None


def nearest(key: str, known: list[str]) -> str:
    """Which key may have been meant."""
    match difflib.get_close_matches(key, known, n=1):
        case [name]:
            return f"did you mean {name}?"
        case _:
            return f"allowed are {', '.join(known)}" if known else "no key is allowed here"
