"""From a file to a specification that can be relied on."""

import os
from typing import Final

from remy_farm.v1 import spec_pb2
from remy_services.files import read_file
from remy_services.spec.checking import check
from remy_services.spec.errors import SpecError, Violation
from remy_services.spec.reading import fill
from remy_services.spec.text import Tree, read_json, read_yaml

MAXIMUM_BYTES = 1 << 20

# The default of search.simulated_seconds, which depends on the mode.
_SIMULATED_SECONDS: Final = {
    spec_pb2.SEARCH_MODE_PAPER: 100.0,
    spec_pb2.SEARCH_MODE_JOINT: 30.0,
    spec_pb2.SEARCH_MODE_PATTERN: 30.0,
}


def load_spec(path: str | os.PathLike[str]) -> spec_pb2.DesignSpec:
    """The specification in a YAML file, or in a JSON file named *.json.

    Defaults are filled in and every constraint holds. Raises SpecError, or FileError if the file
    cannot be read.
    """
    return spec_of_tree(load_tree(path), source=os.fspath(path))


def load_tree(path: str | os.PathLike[str]) -> Tree:
    """What a specification's file says, not yet understood. Raises SpecError or FileError."""
    source = os.fspath(path)
    text = _decode(read_file(path, limit=MAXIMUM_BYTES), source)
    return (read_json if source.endswith(".json") else read_yaml)(text, source)


def parse_spec(
    text: str | bytes, *, source: str = "the specification", json: bool = False
) -> spec_pb2.DesignSpec:
    """The specification in YAML or JSON text; `source` names it in errors.

    Defaults are filled in and every constraint holds. Raises SpecError, with every independent
    violation that was found.
    """
    return spec_of_tree((read_json if json else read_yaml)(_decode(text, source), source), source)


def spec_of_tree(tree: Tree, source: str = "the specification") -> spec_pb2.DesignSpec:
    """The specification that a tree describes; see `parse_spec`."""
    if tree is None:
        raise SpecError(source, [Violation("", "is empty")])
    spec = spec_pb2.DesignSpec()
    found = fill(spec, tree)
    if not spec.search.HasField("simulated_seconds"):
        # A mode that could not be understood is a violation already.
        spec.search.simulated_seconds = _SIMULATED_SECONDS.get(spec.search.mode, 100.0)
    known = [violation.path for violation in found]
    found += [
        violation
        for violation in check(spec)
        if not any(_related(violation.path, path) for path in known)
    ]
    if found:
        raise SpecError(source, found)
    return spec


def check_spec(spec: spec_pb2.DesignSpec, *, source: str = "the specification") -> None:
    """Checks a specification that came as a message, complete with defaults. Raises SpecError."""
    if found := list(check(spec)):
        raise SpecError(source, found)


def _decode(text: str | bytes, source: str) -> str:
    if len(text) > MAXIMUM_BYTES:
        raise SpecError(
            source, [Violation("", f"is too large; at most {MAXIMUM_BYTES} bytes are allowed")]
        )
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 text (byte {error.start})"
        raise SpecError(source, [Violation("", problem)]) from error


def _related(path: str, other: str) -> bool:
    """Whether one path leads through the other, so that one error may be the other's cause."""
    shorter, longer = sorted((path, other), key=len)
    return not shorter or (longer + ".").startswith((f"{shorter}.", f"{shorter}["))
