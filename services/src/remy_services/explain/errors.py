"""What goes wrong when a table is explained."""


class ExplainError(Exception):
    """Why a table cannot be explained; a clause that speaks of the table as "it"."""
