"""Finds what a member imports and does not declare in its pyproject.toml.

Sources may import what `dependencies` and the extras name; tests what the group `test` names, too.
A member's tests may use helpers of the repository: their own, those beside the tests of members
that it declares, and those in `tests/`; what these import is checked as if it were the test's own.
They import no tests of others, and no programs of the repository.
"""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: Where the sources of each member are.
SOURCES = {
    "proto": "src",
    "simulator": "python",
    "library": "src",
    "rpc": "src",
    "services": "src",
    "laboratory": "src",
    "workers": "src",
}
#: Packages of the members, which may be installed in place, and of namespaces that are shared.
_DISTRIBUTIONS = {
    "remy_cli": "remy-farm-services",
    "remy_farm": "remy-farm",
    "remy_laboratory": "remy-farm-laboratory",
    "remy_proto": "remy-farm-proto",
    "remy_rpc": "remy-farm-rpc",
    "remy_services": "remy-farm-services",
    "remy_simulator": "remy-simulator",
    "remy_workers": "remy-farm-worker",
    "google.protobuf": "protobuf",
    "google.rpc": "googleapis-common-protos",
    "opentelemetry.exporter": "opentelemetry-exporter-otlp-proto-grpc",
    "opentelemetry": "opentelemetry-sdk",
}


@dataclass(frozen=True)
class Member:
    """A distribution of the repository, as its pyproject.toml declares it."""

    folder: Path
    name: str
    extras: frozenset[str]
    #: Distributions that sources may import, and those that tests may.
    of_sources: frozenset[str]
    of_tests: frozenset[str]


def read_member(folder: Path) -> Member:
    """Reads what a member declares."""
    tree = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    project = tree["project"]
    extras = project.get("optional-dependencies", {})
    name = project["name"]
    sources = {name, *_names(project["dependencies"]), *_names(*extras.values())}
    tests = sources | set(_names(tree["dependency-groups"]["test"]))
    return Member(folder, name, frozenset(extras), frozenset(sources), frozenset(tests))


def _names(*requirements: Sequence[str]) -> Iterator[str]:
    """The distributions that requirements ask for; an extra's are those that provide it."""
    for requirement in (each for some in requirements for each in some):
        match = re.match(r"([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?", requirement)
        assert match, requirement
        name, extras = _normal(match[1]), filter(None, (match[2] or "").split(","))
        yield name
        wanted = {extra.strip() for extra in extras}
        for each in importlib.metadata.requires(name) or [] if wanted else []:
            if (of := re.search(r"extra == ['\"]([^'\"]+)", each)) and of[1] in wanted:
                yield from _names([each])


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _providers() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


def _distributions(module: str) -> set[str]:
    """The distributions of which any has this module."""
    for prefix, name in _DISTRIBUTIONS.items():
        if f"{module}.".startswith(f"{prefix}."):
            return {name}
    return {_normal(name) for name in _providers().get(module.partition(".")[0], [])}


def _imports(path: Path) -> Iterator[str]:
    """What a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file_of(root: Path, module: str) -> Path | None:
    """A file of the repository that is imported by its place; None for what is installed."""
    path = root.joinpath(*module.split("."))
    return next((each for each in (path.with_suffix(".py"), path) if each.exists()), None)


def undeclared(member: Member) -> list[str]:
    """What is imported without being declared, a sentence each."""
    root = member.folder.parent
    found: list[str] = []
    for path in sorted((member.folder / SOURCES[member.folder.name]).rglob("*.py")):
        found += _missing(path, path, member.of_sources)
    for path in sorted((member.folder / "tests").rglob("*.py")):
        waiting, seen = [path], {path}
        while waiting:
            current = waiting.pop()
            found += _missing(path, current, member.of_tests)
            for module in _imports(current):
                helper = _file_of(root, module)
                if helper is None or not helper.is_file() or helper in seen:
                    continue
                seen.add(helper)
                waiting.append(helper)
                if current == path and not _may_use(member, helper.relative_to(root)):
                    found.append(f"{path} imports {module}, which is no helper of its tests")
    return list(dict.fromkeys(found))


def _missing(path: Path, current: Path, allowed: frozenset[str]) -> Iterator[str]:
    for module in _imports(current):
        top = module.partition(".")[0]
        if top in sys.stdlib_module_names:
            continue
        having = _distributions(module)
        if having and not having & allowed:
            by = "" if current == path else f" (by {current})"
            yield f"{path} imports {top}{by}, which is of {' or '.join(sorted(having))}"


def _may_use(member: Member, helper: Path) -> bool:
    folder = helper.parts[0]
    if folder == member.folder.name:
        return True
    if helper.name.startswith("test_"):
        return False
    if folder == "tests":
        return True
    if folder not in SOURCES or helper.parts[1] != "tests":
        return False
    return read_member(member.folder.parent / folder).name in member.of_tests
