"""The joint search: all rules at once, along a gradient estimated by evolution strategies."""

from remy_farm.designer.joint.search import JointStrategy

__all__ = ["JointStrategy"]
