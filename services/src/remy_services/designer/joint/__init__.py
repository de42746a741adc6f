"""The joint search: all rules at once, along a gradient estimated by evolution strategies."""

from remy_services.designer.joint.search import JointSearch

__all__ = ["JointSearch"]
