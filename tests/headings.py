"""Finds the anchors of a document's headings."""

from __future__ import annotations

import re
from pathlib import Path


def anchors(document: Path) -> set[str]:
    """Returns the anchors that GitHub gives to the document's headings."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}
