"""A job that begins with the table of another."""

from __future__ import annotations

from collections.abc import Sequence

from remy_farm.v1 import spec_pb2
from remy_services.spec import SpecError, Violation, spec_of_tree, to_yaml, vary
from remy_services.spec.errors import show
from remy_services.spec.text import read_yaml

_SOURCE = "the forked specification"


def with_settings(spec: spec_pb2.DesignSpec, settings: Sequence[str]) -> spec_pb2.DesignSpec:
    """The specification with settings such as "objective.delta=0.1" changed.

    Values are YAML. Raises SpecError, whose paths are those of the request or of the specification.
    """
    tree = read_yaml(to_yaml(spec), _SOURCE)
    for index, setting in enumerate(settings):
        path, equals, value = setting.partition("=")
        if not equals or not path.strip():
            problem = f"is {show(setting)}, but must be PATH=VALUE"
            raise SpecError("the request", [Violation(f"settings[{index}]", problem)])
        tree = vary(tree, path.strip(), read_yaml(value, f"settings[{index}]"), source=_SOURCE)
    return spec_of_tree(tree, _SOURCE)
