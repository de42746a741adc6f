"""docs/reference/protocols.md has the tables that the registry makes."""

from scripts.protocol_reference import PAGE, with_registry_tables


def test_the_page_has_what_there_is() -> None:
    """python -m scripts.protocol_reference writes its tables anew."""
    text = PAGE.read_text(encoding="utf-8")
    assert with_registry_tables(text) == text
