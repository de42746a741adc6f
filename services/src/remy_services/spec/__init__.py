"""Design specifications: read, checked, written, and the networks drawn from them.

A specification is a complete DesignSpec message: every default is filled in, and every constraint
declared in the proto files holds. `load_spec` and `parse_spec` return nothing less.
"""

from remy_services.spec.errors import SpecError, Violation
from remy_services.spec.loading import check_spec, load_spec, load_tree, parse_spec, spec_of_tree
from remy_services.spec.modes import validation_specimens
from remy_services.spec.network import draw_specimens, extent
from remy_services.spec.varying import vary
from remy_services.spec.writing import content_digest, to_yaml

__all__ = [
    "SpecError",
    "Violation",
    "check_spec",
    "content_digest",
    "draw_specimens",
    "extent",
    "load_spec",
    "load_tree",
    "parse_spec",
    "spec_of_tree",
    "to_yaml",
    "validation_specimens",
    "vary",
]
