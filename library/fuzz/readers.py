"""Properties that every input read as YAML or JSON must have; `python -m library.fuzz` checks them.

A reader answers with a sound specification or rule table, or refuses in one sentence. Any other
exception is a finding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from google.protobuf.descriptor import Descriptor

from remy_farm.remycc import InvalidJson, RemyCC, from_json, readable_rules, to_json
from remy_farm.specification import (
    SpecError,
    check_spec,
    content_digest,
    load_tree,
    parse_spec,
    to_yaml,
)
from remy_farm.specification.schema import descriptor_of
from remy_proto.completion import complete
from remy_proto.v1 import rule_table_pb2, spec_pb2
from remy_simulator import InvalidTable

_EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples"
_LONGEST_SENTENCE: Final = 10_000


def read_json(data: bytes) -> None:
    """Reads bytes as a specification and as a rule table in JSON."""
    _read_spec(data, is_json=True)
    try:
        remycc = RemyCC.from_message(from_json(data))
    except (InvalidJson, InvalidTable) as error:
        _check_sentence(error)
        return
    readable_rules(remycc.table)
    message = remycc.to_message()
    assert from_json(to_json(message).encode()) == message


def read_yaml(data: bytes) -> None:
    """Reads bytes as a specification in YAML."""
    _read_spec(data, is_json=False)


def _read_spec(data: bytes, *, is_json: bool) -> None:
    try:
        spec = parse_spec(data, json=is_json)
    except SpecError as error:
        _check_sentence(error)
        return
    check_spec(spec)
    assert complete(spec_pb2.DesignSpec.FromString(spec.SerializeToString())) == spec
    again = parse_spec(to_yaml(spec))
    assert again == spec
    assert content_digest(again) == content_digest(spec)


def _check_sentence(error: Exception) -> None:
    """Asserts that an error's text is one printable line of limited length."""
    sentence = str(error)
    assert sentence
    assert len(sentence.splitlines()) == 1, sentence
    assert len(sentence) < _LONGEST_SENTENCE
    sentence.encode()


#: The fuzzed functions by the names of their corpora.
READERS: Final[dict[str, Callable[[bytes], None]]] = {"json": read_json, "yaml": read_yaml}


def examples(name: str) -> Iterator[bytes]:
    """Valid inputs of a reader: the examples of the repository."""
    specs = sorted(_EXAMPLES.glob("*.yaml"))
    if name == "yaml":
        yield from (path.read_bytes() for path in specs)
        return
    yield from (json.dumps(load_tree(path)).encode() for path in specs)
    yield from (path.read_bytes() for path in sorted(_EXAMPLES.glob("remyccs/*/remycc.json")))


def dictionary_words() -> list[str]:
    """Keys and values that the readers know, for the fuzzer's dictionary."""
    words = {"infinite", "true", "null", "1e9", ".inf", "NaN", "&a", "*a", "!!int", "---", "..."}
    for message in (spec_pb2.DesignSpec, rule_table_pb2.RuleTable):
        words.update(_names(descriptor_of(message)))
    return sorted(words)


def _names(message: Descriptor) -> Iterator[str]:
    for field in message.fields:
        yield field.name
        if field.message_type is not None:
            yield from _names(field.message_type)
        elif field.enum_type is not None:
            for value in field.enum_type.values:
                yield value.name
                yield re.sub("^[A-Z]+_", "", value.name).lower()
