"""Generates JSON schemas for editors: `python -m scripts.json_schema [--check]`.

Keys, bounds and allowed words are derived from the proto declarations that check files, and
descriptions from the comments beside them. `remy-farm schema` prints the generated files.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from remy_farm.specification.reading import fields_by_key, key_of, presets_of, short_forms
from remy_farm.specification.schema import (
    Bounds,
    descriptor_of,
    enum_names,
    enum_of,
    is_submessage,
    submessage_of,
)
from remy_laboratory.studies.networks import STUDY_KEYS
from remy_proto.completion import constraint_of
from remy_proto.v1 import spec_pb2
from remy_simulator import registry
from remy_simulator.registry import Registry
from scripts.spec_reference import read_comments

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "data" / "schemas"
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_DISTRIBUTION: Final = descriptor_of(spec_pb2.Distribution)
_NETWORK: Final = descriptor_of(spec_pb2.NetworkModel)
#: Fields whose text is a name from a registry, optionally followed by comma-separated settings.
_REGISTRIES: Final = {
    "queue": Registry.QUEUE,
    "transport": Registry.TRANSPORT,
    "protocol": Registry.PROTOCOL,
}

Schema = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if stale")
    stale = []
    for name, schema in schemas().items():
        path = FOLDER / f"{name}.json"
        text = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append((path, text))
    if parser.parse_args().check:
        for path, _ in stale:
            print(f"{path.relative_to(ROOT)} is stale: run python -m scripts.json_schema")
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in stale:
        path.write_text(text, encoding="utf-8")
    return 0


def schemas() -> dict[str, Schema]:
    """Returns the schema of each kind of file, by the kind's name."""
    comments = read_comments(ROOT / "proto")
    return {
        "specification": _specification(comments),
        "network": _network(comments),
        "study": _study(comments),
    }


def _specification(comments: Mapping[str, str]) -> Schema:
    writer = _Writer(comments)
    root = writer.reference(descriptor_of(spec_pb2.DesignSpec))
    return writer.document("The specification of a design", root)


def _network(comments: Mapping[str, str]) -> Schema:
    writer = _Writer(comments, draws=False)
    root = writer.reference(_NETWORK)
    network = _mapping_in(writer.definitions[_NETWORK.name])
    # A network file needs no traffic, and no sender of it is designed.
    network["required"] = ["senders"]
    senders = network["properties"]["senders"]
    network["properties"]["senders"] = {
        "description": senders["description"],
        **senders["anyOf"][-1],
    }
    del _mapping_in(writer.definitions["GroupModel"])["properties"]["design"]
    return writer.document("A network", root)


def _study(comments: Mapping[str, str]) -> Schema:
    """Returns the schema of studies and sets, which covers their networks.

    A study's network is given in layers, so that no key is required in any of them. Numbers may be
    distributions, because sets may draw their networks.
    """
    writer = _Writer(comments, layers=True)
    network = writer.reference(_NETWORK)
    keys = _mapping_in(writer.definitions[_NETWORK.name])["properties"]
    counts = Bounds(minimum=1, maximum=10_000, integral=True)
    keys["senders"] = writer.reference(_DISTRIBUTION, counts)
    keys["routes"] = {
        "description": "A route per kind of senders; if there is one kind, a route per sender.",
        "type": "array",
        "items": writer.reference(descriptor_of(spec_pb2.RouteModel)),
    }
    for name, text in (
        ("starts_apart_ms", "The time between the first on periods of successive senders. In ms."),
        ("first_on_mean_ms", "The mean of the exponential start times of senders. In ms."),
        ("first_rtt_offset_ms", "The error added to the first sender's measured RTTs. In ms."),
        ("rtt_spread", "The RTT of the last sender over that of the first, which is `rtt_ms`."),
    ):
        keys[name] = {
            "description": text,
            **writer.reference(_DISTRIBUTION, STUDY_KEYS[name]),
        }
    with_network = {"type": "object", "properties": {"network": network}}
    root = {
        "type": "object",
        "properties": {
            "network": network,
            "rows": {"type": "array", "items": with_network},
            "places": {"type": "array", "items": with_network},
        },
    }
    return writer.document("A study, or a set of networks", root)


def _mapping_in(definition: Schema) -> Schema:
    """Returns the mapping among the forms that a definition allows; it is the last form."""
    mapping: Schema = definition.get("anyOf", [definition])[-1]
    return mapping


class _Writer:
    """Writes one definition per message, and references to it."""

    def __init__(
        self, comments: Mapping[str, str], *, draws: bool = True, layers: bool = False
    ) -> None:
        self._comments = comments
        #: Whether a quantity may be a distribution.
        self._draws = draws
        #: Whether a required key may be in another layer, so that none is required here.
        self._layers = layers
        self.definitions: dict[str, Schema] = {}

    def document(self, title: str, root: Schema) -> Schema:
        """Returns a complete schema: the root and all definitions that were written."""
        definitions = dict(sorted(self.definitions.items()))
        return {"$schema": _DIALECT, "title": title, **root, "$defs": definitions}

    def reference(self, message: Descriptor, bounds: Bounds | None = None) -> Schema:
        """Returns a reference to the definition of a message whose numbers are within `bounds`."""
        bounds = bounds or Bounds()
        name = message.full_name.removeprefix("remy_farm.v1.")
        if bounds != Bounds():
            name += f" ({bounds.describe()})"
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = self._message(message, bounds)
        # A JSON pointer in a URI must escape these characters.
        return {"$ref": "#/$defs/" + name.replace(" ", "%20").replace("/", "~1")}

    def _message(self, message: Descriptor, bounds: Bounds) -> Schema:
        if message == _DISTRIBUTION and not self._draws:
            number = _number(bounds)
            exact = {"type": "object", "properties": {"exact": number}, "required": ["exact"]}
            return {"anyOf": [number, {**exact, "additionalProperties": False}]}
        forms: list[Schema] = []
        beside = short_forms(message)
        if "number" in beside:
            forms.append(_number(self._number_bounds(message, bounds)))
        if "numbers" in beside:
            forms.append({"type": "array", "items": _number(bounds), "minItems": 1})
        if "pair" in beside:
            pair = {"type": "array", "items": _number(bounds), "minItems": 2, "maxItems": 2}
            forms.append(pair)
        if "text" in beside:
            forms.append({"type": "string"})
        if words := presets_of(message):
            forms.append({"enum": [*words]})
        whole = self._mapping(message, bounds, [*words])
        return {"anyOf": [*forms, whole]} if forms else whole

    def _number_bounds(self, message: Descriptor, bounds: Bounds) -> Bounds:
        """Returns the bounds of a bare number, which is an exact value or a buffer's packets."""
        by_name = message.fields_by_name
        return bounds.within(by_name["packets"]) if "packets" in by_name else bounds

    def _mapping(self, message: Descriptor, bounds: Bounds, words: list[str]) -> Schema:
        properties: dict[str, Schema] = {}
        if words:
            properties["preset"] = {
                "description": "The preset whose keys the other keys change.",
                "enum": words,
            }
        for key, fields in fields_by_key(message).items():
            written = [self._field(field, bounds) for field in fields]
            properties[key] = (
                written[0]
                if len(written) == 1
                else {
                    "description": " ".join(each.pop("description", "") for each in written),
                    "anyOf": written,
                }
            )
        schema: Schema = {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
        required = [
            key_of(field)
            for field in message.fields
            if constraint_of(field).required and not self._layers
        ]
        if required:
            schema["required"] = required
        if description := self._comments.get(message.full_name):
            schema["description"] = description
        return schema

    def _field(self, field: FieldDescriptor, outer: Bounds) -> Schema:
        constraint, bounds = constraint_of(field), outer.within(field)
        if is_submessage(field):
            of_numbers = submessage_of(field) == _DISTRIBUTION or outer != Bounds()
            schema = self.reference(submessage_of(field), bounds if of_numbers else None)
        elif field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
            schema = {"enum": list(enum_names(enum_of(field)))}
        elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            schema = _text(field)
        elif field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            schema = {"type": "boolean"}
        else:
            schema = _number(bounds)
        if field.is_repeated:
            schema = {"type": "array", "items": schema}
            if constraint.min_items:
                schema["minItems"] = constraint.min_items
            if constraint.max_items:
                schema["maxItems"] = constraint.max_items
            if constraint.unique:
                schema["uniqueItems"] = True
        unit = (
            ""
            if bounds.unit == "1" or (is_submessage(field) and not constraint.unit)
            else (f" In {bounds.unit}.")
        )
        text = self._comments.get(field.full_name, "")
        return {"description": f"{text}{unit}".strip(), **schema}


def _number(bounds: Bounds) -> Schema:
    schema: Schema = {"type": "integer" if bounds.integral else "number"}
    if math.isfinite(bounds.minimum):
        schema["exclusiveMinimum" if bounds.exclusive_minimum else "minimum"] = bounds.minimum
    if math.isfinite(bounds.maximum):
        schema["maximum"] = bounds.maximum
    return schema


def _text(field: FieldDescriptor) -> Schema:
    schema: Schema = {"type": "string"}
    if field.is_repeated:
        # Links are named by their numbers, too.
        schema = {"type": ["string", "integer"]}
    if longest := constraint_of(field).max_length:
        schema["maxLength"] = longest
    if (kind := _REGISTRIES.get(field.name)) is not None:
        names = sorted(registry.entries(kind))
        # An editor completes the names; a name with settings matches the pattern.
        settings = {"pattern": f"^({'|'.join(names)}),.+"}
        return {"anyOf": [{"enum": names}, {**schema, **settings}]}
    return schema


if __name__ == "__main__":
    sys.exit(main())
