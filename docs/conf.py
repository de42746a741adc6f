"""Sphinx configuration of the documentation site, which `make docs` builds."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

project = "remy-farm"
extensions = ["myst_parser", "sphinx_copybutton", "scripts.site_pages"]
# The sources are the whole repository, so that a link that works there works on the site.
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/**.md",
    "charts/**.md",
    "deploy/**.md",
    "data/**.md",
    "*/README.md",
]
exclude_patterns = [
    ".*",
    "build",
    "dist",
    "tests",
    "play",
    "dashboards",
    "simulator/build",
    "**/node_modules",
    "services/src",
]
source_suffix = {".md": "markdown"}
nitpicky = True
# Flags such as --out would become dashes.
smartquotes = False
# Indented blocks are shell commands, YAML or output.
highlight_language = "none"
myst_heading_anchors = 6

html_theme = "furo"
html_title = "remy-farm"
html_static_path = ["_site"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_site" / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_use_index = False
# Browsers let no script read other pages of a site that is opened as files.
html_show_search_summary = False
