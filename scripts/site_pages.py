"""Sphinx extension that makes a site of the repository's Markdown.

The Markdown stays as GitHub shows it: no directive of Sphinx stands in it. This module adds what a
site needs besides:

* navigation, from the links under each heading of the site's first page;
* pages for files and folders that documents link to, such as examples;
* pictures in place of Mermaid diagrams, so that the site needs no script from elsewhere;
* links from the first mention of a term on a page to the glossary.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

ROOT: Final = Path(__file__).resolve().parent.parent
#: Diagrams as pictures; `scripts/draw_diagrams.py` draws them.
DIAGRAMS: Final = ROOT / "docs" / "diagrams"
#: The folder of the site in which copies of the repository's files are shown.
FILES: Final = "files"

GLOSSARY: Final = "docs/reference/glossary"

_LOG: Final = logging.getLogger(__name__)
_LINK: Final = re.compile(r"\]\(([^)#\s]+)\.md(?:#[^)]*)?\)")
#: A link that is called by its file's name; on the site it has the title of its target.
_NAMED_BY_FILE: Final = re.compile(r"\[[\w/-]+\.md\](?=\([^)\s]+\.md)")
_SHOWN_CHARACTERS: Final = 30_000
#: Terms whose every mention means what the glossary says; others, such as "step", are words too.
_LINKED_TERMS: Final = frozenset(
    (
        "Specification",
        "Specimen",
        "RemyCC",
        "Epoch",
        "Edition",
        "On period",
        "Lease",
        "Checkpoint",
        "Campaign",
        "Fencing token",
        "Fingerprint",
        "Perturbation",
        "Common random numbers",
    )
)
_TERM: Final = re.compile(rf"\b(?P<term>{'|'.join(sorted(_LINKED_TERMS))})s?\b(?!-)", re.IGNORECASE)
_PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name} - remy-farm</title>
<link rel="stylesheet" href="{root}/_static/pygments.css">
<link rel="stylesheet" href="{root}/_static/site.css">
<body class="file">
<p><a href="{first}">remy-farm</a></p>
<h1>{name}</h1>
{body}
</body>
</html>
"""


def change_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Titles links, and turns the first page's chapters into the site's table of contents."""
    source[0] = _NAMED_BY_FILE.sub("[]", source[0])
    if docname != app.config.root_doc:
        if not docname.startswith("docs/"):
            source[0] = f"---\norphan: true\n---\n\n{source[0]}"
        return
    for chapter in re.split(r"^## ", source[0], flags=re.MULTILINE)[1:]:
        title, _, text = chapter.partition("\n")
        pages = list(dict.fromkeys(_LINK.findall(text)))
        entries = "\n".join(_absolute(docname, page) for page in pages)
        source[0] += (
            f"\n\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n:caption: {title}\n\n{entries}\n```\n"
        )


def _absolute(docname: str, target: str) -> str:
    """Returns the document that a relative link in docname leads to, as Sphinx names it."""
    return "/" + os.path.normpath(Path(docname).parent / target)


def diagram_file(source: str) -> Path:
    """Returns the picture of a Mermaid diagram; its name is a digest of the diagram's source."""
    digest = hashlib.sha256(source.strip().encode()).hexdigest()
    return DIAGRAMS / f"{digest[:16]}.svg"


class DiagramsAsPictures(SphinxTransform):
    """Replaces Mermaid sources by their pictures."""

    default_priority = 100

    def apply(self, **kwargs: Any) -> None:
        for block in list(self.document.findall(nodes.literal_block)):
            if block.get("language") != "mermaid":
                continue
            picture = diagram_file(block.astext())
            if not picture.exists():
                _LOG.warning(
                    "no picture of this diagram; scripts/draw_diagrams.py draws it", location=block
                )
                continue
            path = os.path.relpath(picture, ROOT / Path(self.env.docname).parent)
            frame = nodes.container(classes=["diagram"])
            frame += nodes.image(uri=path, alt="Diagram")
            block.replace_self(frame)


class LinksToFiles(SphinxTransform):
    """Leads links to files of the repository to the pages that show these files."""

    default_priority = 200

    def apply(self, **kwargs: Any) -> None:
        folder = ROOT / Path(self.env.docname).parent
        # The reader of Markdown asks for a download where it finds a file, and for a
        # cross-reference where it finds none, as with a folder.
        found = [
            *self.document.findall(addnodes.download_reference),
            *self.document.findall(addnodes.pending_xref),
        ]
        for link in found:
            target = unquote(link["reftarget"]).partition("#")[0]
            path = Path(os.path.normpath(folder / target))
            if not target or path.suffix == ".md" or not path.is_relative_to(ROOT):
                continue
            if link.get("refdomain") == "doc" or not path.exists():
                continue
            name = str(path.relative_to(ROOT))
            shown_files(self.env).setdefault(self.env.docname, set()).add(name)
            page = os.path.relpath(page_of(name), Path(self.env.docname).parent)
            reference = nodes.reference("", "", *link.children, refuri=page)
            reference["internal"] = True
            link.replace_self(reference)


class GlossaryLinks(SphinxTransform):
    """Links the first mention of each term on a page to the glossary."""

    default_priority = 850

    def apply(self, **kwargs: Any) -> None:
        name = self.env.docname
        if name == GLOSSARY or not name.startswith(("docs/", "README")):
            return
        page = os.path.relpath(f"{GLOSSARY}.html", Path(name).parent)
        open_terms = _terms()
        for paragraph in self.document.findall(nodes.paragraph):
            for text in [each for each in paragraph.children if isinstance(each, nodes.Text)]:
                found = _TERM.search(text)
                while found is not None and found["term"].lower() not in open_terms:
                    found = _TERM.search(text, found.end())
                if found is None:
                    continue
                open_terms.remove(found["term"].lower())
                anchor = found["term"].lower().replace(" ", "-")
                link = nodes.reference("", found[0], refuri=f"{page}#{anchor}", classes=["term"])
                link["internal"] = True
                before, after = text[: found.start()], text[found.end() :]
                paragraph.replace(text, [nodes.Text(before), link, nodes.Text(after)])


def _terms() -> set[str]:
    """Returns the terms of the glossary that are linked wherever they are mentioned."""
    text = (ROOT / f"{GLOSSARY}.md").read_text(encoding="utf-8")
    missing = _LINKED_TERMS - set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    if missing:
        _LOG.warning("the glossary lacks %s", ", ".join(sorted(missing)))
    return {term.lower() for term in _LINKED_TERMS - missing}


def shown_files(env: BuildEnvironment) -> dict[str, set[str]]:
    """Returns the files and folders that documents link to, by document."""
    found: dict[str, set[str]] = vars(env).setdefault("remy_shown_files", {})
    return found


def page_of(name: str) -> str:
    """Returns the address on the site of a file or folder of the repository."""
    return f"{FILES}/{name}.html"


def write_file_pages(app: Sphinx, error: Exception | None) -> None:
    """Writes a page for each file or folder that is linked to, and for the files of a folder."""
    if error is not None:
        return
    linked = set[str]().union(*shown_files(app.env).values())
    for name in linked | {inner for folder in linked for inner in _within(ROOT / folder)}:
        path = ROOT / name
        page = Path(app.outdir) / page_of(name)
        page.parent.mkdir(parents=True, exist_ok=True)
        root = os.path.relpath(app.outdir, page.parent)
        page.write_text(
            _PAGE.format(
                name=escape(name),
                body=_listing(path) if path.is_dir() else _file(path),
                root=root,
                first=f"{root}/{app.config.root_doc}.html",
            ),
            encoding="utf-8",
        )


def _within(path: Path) -> Iterator[str]:
    if path.is_dir():
        yield from (str(inner.relative_to(ROOT)) for inner in path.iterdir() if _is_shown(inner))


def _is_shown(path: Path) -> bool:
    return path.is_file() and path.suffix != ".md" and b"\0" not in path.read_bytes()[:1000]


def _listing(folder: Path) -> str:
    entries = []
    for inner in sorted(folder.iterdir()):
        text = f"<code>{escape(inner.name)}</code>"
        if _is_shown(inner):
            text = f'<a href="{folder.name}/{inner.name}.html">{text}</a>'
        entries.append(f"<li>{text}</li>")
    return f"<ul>{''.join(entries)}</ul>"


def _file(path: Path) -> str:
    text, name = path.read_text(encoding="utf-8"), path.name
    if path.suffix == ".ipynb":
        text, name = notebook_text(text), f"{path.stem}.py"
    try:
        lexer = get_lexer_for_filename(name)
    except ClassNotFound:
        lexer = TextLexer()
    rest = "<p>The rest of the file is not shown.</p>" if len(text) > _SHOWN_CHARACTERS else ""
    return highlight(text[:_SHOWN_CHARACTERS], lexer, HtmlFormatter()) + rest


def notebook_text(text: str) -> str:
    """Returns the cells of a notebook as a program, with its prose as comments."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            source = "\n".join(f"# {line}".rstrip() for line in source.splitlines())
        parts.append(source)
    return "\n\n".join(parts) + "\n"


def write_first_page(app: Sphinx, error: Exception | None) -> None:
    """Leads whoever opens the site's folder to its first page."""
    if error is None:
        (Path(app.outdir) / "index.html").write_text(
            "<!doctype html><meta charset=utf-8><title>remy-farm</title>"
            f'<meta http-equiv=refresh content="0; url={app.config.root_doc}.html">'
            f'<a href="{app.config.root_doc}.html">remy-farm</a>\n',
            encoding="utf-8",
        )


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the parts of this extension."""
    app.connect("source-read", change_source)
    app.add_transform(DiagramsAsPictures)
    app.add_transform(LinksToFiles)
    app.add_transform(GlossaryLinks)
    app.connect("build-finished", write_file_pages)
    app.connect("build-finished", write_first_page)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": False}
