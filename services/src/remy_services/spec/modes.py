"""What every mode of search has, each in its own options."""

from remy_farm.v1 import spec_pb2


def validation_specimens(spec: spec_pb2.DesignSpec) -> int:
    """Networks on which a design's mode compares its tables."""
    if spec.search.mode == spec_pb2.SEARCH_MODE_JOINT:
        return spec.search.joint.validation_specimens
    if spec.search.mode == spec_pb2.SEARCH_MODE_PATTERN:
        return spec.search.pattern.validation_specimens
    return spec.search.paper.validation_specimens
