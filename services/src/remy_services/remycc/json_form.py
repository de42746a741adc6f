"""The .json form of a RemyCC: the JSON mapping of the RuleTable message, with our field names.

Keys are sorted and doubles are written so that they read back exactly, so that equal tables are
equal files.
"""

import json
import re
from typing import Final

from google.protobuf import json_format

from remy_farm.v1 import rule_table_pb2

# A node takes five (braces and commas): twice as many as the largest table that fits into a file.
_MOST_ELEMENTS: Final = 4_000_000
_LONGEST_CLAUSE: Final = 300
# Half a character, of which the Protocol Buffers library makes a SystemError.
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_LIBRARY_NOISE: Final = re.compile(r"Failed to parse \w+ field: |\. Available Fields.*")


class InvalidJson(ValueError):
    """Text that is not the JSON form of a rule table; one clause."""


def to_json(message: rule_table_pb2.RuleTable) -> str:
    """The message as JSON text."""
    tree = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return json.dumps(tree, indent=2, sort_keys=True) + "\n"


def from_json(data: bytes) -> rule_table_pb2.RuleTable:
    """The inverse of to_json. Raises InvalidJson; whether the table is sound is not checked."""
    if sum(data.count(sign) for sign in (b"{", b"[", b",")) > _MOST_ELEMENTS:
        raise InvalidJson(f"holds too much; at most {_MOST_ELEMENTS} elements are allowed")
    if surrogate := _SURROGATE.search(data):
        raise InvalidJson(f"holds {surrogate[0].decode()}, which is no part of a name")
    try:
        tree = json.loads(data, object_pairs_hook=_unique, parse_constant=_not_finite)
    except json.JSONDecodeError as error:
        raise InvalidJson(
            f"is not JSON ({error.msg}, line {error.lineno}, column {error.colno})"
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidJson(f"is not UTF-8 text (byte {error.start})") from error
    except RecursionError as error:
        raise InvalidJson("is nested too deeply to be a rule table") from error
    if not isinstance(tree, dict):
        raise InvalidJson('is not a rule table, which is an object with "signals" and "nodes"')
    try:
        return json_format.ParseDict(tree, rule_table_pb2.RuleTable())
    except json_format.ParseError as error:
        raise InvalidJson(f"is not a rule table ({_clause(error)})") from error


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidJson(f"names the key {twice[:60]!r} twice in one object")
    return result


def _not_finite(text: str) -> float:
    raise InvalidJson(f"holds {text}, but every number must be finite")


def _clause(error: json_format.ParseError) -> str:
    """What the library says, without its own prefixes, on one line of printable characters."""
    text = _LIBRARY_NOISE.sub("", " ".join(str(error).split()))
    return text.encode("ascii", "backslashreplace").decode().rstrip(".")[:_LONGEST_CLAUSE]
