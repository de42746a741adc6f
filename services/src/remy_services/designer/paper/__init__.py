"""The paper's own search (section 4.3): rule by rule, over a grid of actions."""

from remy_services.designer.paper.paper_search import PaperSearch

__all__ = ["PaperSearch"]
