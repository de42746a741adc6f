"""The joint search: gradient ascent on all rules at once, with evolution strategies.

`search.py` has the strategy and its steps, `climb.py` the ascent (Adam), `gradient.py` the gradient
estimate, `divisions.py` the choice of splits and merges, and `schedule.py` the settings of each
step.
"""

from remy_farm.designer.joint.search import JointStrategy

__all__ = ["JointStrategy"]
