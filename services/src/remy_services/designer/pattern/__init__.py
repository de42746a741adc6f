"""The pattern search: small tables, polished rule by rule and divided where a trial gains most."""

from remy_services.designer.pattern.search import PatternSearch

__all__ = ["PatternSearch"]
