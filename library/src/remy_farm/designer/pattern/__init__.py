"""The pattern search: small tables, polished rule by rule and divided where a trial gains most."""

from remy_farm.designer.pattern.search import PatternStrategy

__all__ = ["PatternStrategy"]
