"""What links into documents lead to."""

from __future__ import annotations

import re
from pathlib import Path


def anchors(document: Path) -> set[str]:
    """What links to the document's headings end in, as GitHub makes it of them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}
