"""The joint search: all rules at once, along a gradient estimated by evolution strategies."""

from remy_services.designer.joint.joint_search import JointSearch

__all__ = ["JointSearch"]
