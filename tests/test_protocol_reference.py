"""docs/reference/protocols.md has the tables of the registries."""

from scripts.protocol_reference import PAGE, with_registry_tables


def test_page_is_up_to_date() -> None:
    """`python -m scripts.protocol_reference` regenerates the tables."""
    text = PAGE.read_text(encoding="utf-8")
    assert with_registry_tables(text) == text
