"""Design specifications: read, checked, written, and the networks drawn from them.

A specification is a complete DesignSpec message: every default is filled in, and every constraint
declared in the proto files holds. `load_spec` and `parse_spec` return nothing less.
"""

from remy_farm.specification.checking import (
    check_one_table,
    check_spec,
    load_spec,
    load_spec_of_one_table,
    load_tree,
    parse_spec,
    spec_of_tree,
    validation_specimens,
)
from remy_farm.specification.distributions import extent
from remy_farm.specification.drawing import Networks
from remy_farm.specification.enclosures import recordings_of
from remy_farm.specification.models import designs
from remy_farm.specification.modes import MODES
from remy_farm.specification.reading import Tree, fill, read_yaml, words_for
from remy_farm.specification.schema import SpecError, Violation
from remy_farm.specification.specimens import typical_measurement
from remy_farm.specification.writing import (
    content_digest,
    parse_setting,
    to_yaml,
    vary,
)

__all__ = [
    "MODES",
    "Networks",
    "SpecError",
    "Tree",
    "Violation",
    "check_one_table",
    "check_spec",
    "content_digest",
    "designs",
    "extent",
    "fill",
    "load_spec",
    "load_spec_of_one_table",
    "load_tree",
    "parse_setting",
    "parse_spec",
    "read_yaml",
    "recordings_of",
    "spec_of_tree",
    "to_yaml",
    "typical_measurement",
    "validation_specimens",
    "vary",
    "words_for",
]
