"""The pattern search: improves one rule at a time by compass steps, for small tables.

The candidates of each step compete in a race with successive halving. `search.py` has the strategy
and its steps, `race.py` the races and compass steps, and `divisions.py` the splits on trial.
"""

from remy_farm.designer.pattern.search import PatternStrategy

__all__ = ["PatternStrategy"]
