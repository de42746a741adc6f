"""Finds imports of a member that its pyproject.toml does not declare.

A member's sources may import packages in `dependencies` and in its extras. Its tests may also
import packages in the dependency group `test`, and helper modules: their own, those in the tests
of declared members, and those in `tests/`. Imports of helper modules count as the test's own.
Tests import neither test modules of other members nor programs of the repository.
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

#: The directory of each member's sources.
SOURCES = {
    "proto": "src",
    "simulator": "python",
    "library": "src",
    "rpc": "src",
    "services": "src",
    "laboratory": "src",
    "workers": "src",
}
#: The distribution of packages for which the installed metadata does not tell it: those of members,
#: which may be installed in place, and those in namespaces that several distributions share.
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
    allowed_in_sources: frozenset[str]
    allowed_in_tests: frozenset[str]


def read_member(folder: Path) -> Member:
    """Reads a member's declarations from its pyproject.toml."""
    tree = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    project = tree["project"]
    extras = project.get("optional-dependencies", {})
    name = project["name"]
    sources = {name, *_names(project["dependencies"]), *_names(*extras.values())}
    tests = sources | set(_names(tree["dependency-groups"]["test"]))
    return Member(folder, name, frozenset(extras), frozenset(sources), frozenset(tests))


def _names(*requirements: Sequence[str]) -> Iterator[str]:
    """Yields the distributions that requirements name, and those that their extras require."""
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
    """Returns the distributions that provide a module."""
    for prefix, name in _DISTRIBUTIONS.items():
        if f"{module}.".startswith(f"{prefix}."):
            return {name}
    return {_normal(name) for name in _providers().get(module.partition(".")[0], [])}


def _imports(path: Path) -> Iterator[str]:
    """Yields the names of all modules that a file imports at any level."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file_of(root: Path, module: str) -> Path | None:
    """Returns the file of a module that is imported by its path in the repository, else None."""
    path = root.joinpath(*module.split("."))
    return next((each for each in (path.with_suffix(".py"), path) if each.exists()), None)


def undeclared(member: Member) -> list[str]:
    """Returns one sentence per import that is not declared."""
    root = member.folder.parent
    problems: list[str] = []
    for path in sorted((member.folder / SOURCES[member.folder.name]).rglob("*.py")):
        problems += _missing(path, path, member.allowed_in_sources)
    for path in sorted((member.folder / "tests").rglob("*.py")):
        pending, visited = [path], {path}
        while pending:
            current = pending.pop()
            problems += _missing(path, current, member.allowed_in_tests)
            for module in _imports(current):
                helper = _file_of(root, module)
                if helper is None or not helper.is_file() or helper in visited:
                    continue
                visited.add(helper)
                pending.append(helper)
                if current == path and not _may_use(member, helper.relative_to(root)):
                    problems.append(f"{path} imports {module}, which its tests may not use")
    return list(dict.fromkeys(problems))


def _missing(path: Path, current: Path, allowed: frozenset[str]) -> Iterator[str]:
    for module in _imports(current):
        top = module.partition(".")[0]
        if top in sys.stdlib_module_names:
            continue
        providers = _distributions(module)
        if providers and not providers & allowed:
            via = "" if current == path else f" (via {current})"
            yield f"{path} imports {top}{via}, which belongs to {' or '.join(sorted(providers))}"


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
    return read_member(member.folder.parent / folder).name in member.allowed_in_tests
