"""Draws the Mermaid diagrams of the documents as pictures for the site: `make diagrams`.

GitHub draws Mermaid itself. The site shows pictures, so that it needs no script and no server. A
picture's name is a digest of its diagram; pictures of diagrams that are gone are removed.
"""

from __future__ import annotations

import re
import shutil
import subprocess

from scripts.site_pages import DIAGRAMS, ROOT, diagram_file
from tests.live.pages import chromium

_BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INSTALLED = ROOT / "build" / "diagrams"
_DRAW = """async source => {
  mermaid.initialize({startOnLoad: false, deterministicIds: true, htmlLabels: false,
    flowchart: {htmlLabels: false}, fontFamily: "sans-serif", theme: "neutral"});
  return (await mermaid.render("diagram", source)).svg;
}"""


def main() -> None:
    """Draws what is missing and removes what is not used."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    sources = {diagram_file(each): each for text in texts for each in _BLOCK.findall(text)}
    for old in set(DIAGRAMS.glob("*.svg")) - set(sources):
        old.unlink()
    missing = [path for path in sources if not path.exists()]
    if not missing:
        return
    shutil.copytree(ROOT / "scripts" / "diagrams", _INSTALLED, dirs_exist_ok=True)
    subprocess.run(["npm", "ci", "--silent", "--ignore-scripts"], cwd=_INSTALLED, check=True)
    script = _INSTALLED / "node_modules" / "mermaid" / "dist" / "mermaid.min.js"
    with chromium() as browser:
        page = browser.new_page()
        page.add_script_tag(path=str(script))
        for path in missing:
            picture = page.evaluate(_DRAW, sources[path])
            width = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+)', picture)
            assert width, picture[:200]
            # An image of 100 % has no width of its own.
            picture = picture.replace('width="100%"', f'width="{width[1]}"', 1)
            path.write_text(f"{picture}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
