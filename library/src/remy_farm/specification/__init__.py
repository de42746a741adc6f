"""Reads, checks and writes design specifications, and draws networks from them.

A specification is a complete DesignSpec message: `load_spec` and `parse_spec` fill in every default
and check every constraint that the proto files declare.
"""

from remy_farm.specification.checking import (
    check_single_table,
    check_spec,
    load_single_table_spec,
    load_spec,
    load_tree,
    parse_spec,
    spec_from_tree,
    validation_specimens,
)
from remy_farm.specification.distributions import extent
from remy_farm.specification.drawing import Networks
from remy_farm.specification.models import designed_tables
from remy_farm.specification.modes import MODES
from remy_farm.specification.reading import Tree, fill, presets_of, read_yaml
from remy_farm.specification.referenced_files import link_traces
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
    "check_single_table",
    "check_spec",
    "content_digest",
    "designed_tables",
    "extent",
    "fill",
    "link_traces",
    "load_single_table_spec",
    "load_spec",
    "load_tree",
    "parse_setting",
    "parse_spec",
    "presets_of",
    "read_yaml",
    "spec_from_tree",
    "to_yaml",
    "typical_measurement",
    "validation_specimens",
    "vary",
]
