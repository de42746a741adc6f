"""The command line imports only public names: those in the `__all__` of a package or top module."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.programs import ROOT
from remy_proto.exports import modules_of

COMMANDS = sorted((ROOT / "services" / "src" / "remy_cli").glob("*.py"))
#: Packages of messages, all of which are public.
_MESSAGES = "remy_proto.v1"
LAZY = sorted(
    path
    for member in ("library", "services", "laboratory")
    for path in (ROOT / member / "src").rglob("__init__.py")
    if "lazy_exports(" in path.read_text(encoding="utf-8")
)


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yields the module and name of each import from members other than the command line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("remy_"):
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name.rpartition(".")[::2] for alias in node.names)


def is_public(module: str, name: str) -> bool:
    """Whether a name is in the `__all__` of a package or of a module at the top of its member.

    A module at the top may also be imported as a whole.
    """
    found = importlib.import_module(module)
    if module.count(".") > 1 and not hasattr(found, "__path__"):
        return False
    if name in getattr(found, "__all__", ()):
        return True
    value = getattr(found, name, None)
    is_at_top = isinstance(value, ModuleType) and module.count(".") == 0
    return is_at_top and hasattr(value, "__all__")


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_commands_import_only_public_names(path: Path) -> None:
    private = [
        f"{module}.{name}"
        for module, name in imports(path)
        if module.startswith("remy_")
        and not module.startswith(("remy_cli", _MESSAGES))
        and not is_public(module, name)
    ]
    assert private == []


def package_of(path: Path) -> str:
    parts = path.parts[path.parts.index("src") + 1 : -1]
    return ".".join(parts)


@pytest.mark.parametrize("path", LAZY, ids=package_of)
def test_exported_name_is_the_declared_object(path: Path) -> None:
    """This holds even after modules with the name of an export were imported."""
    package = importlib.import_module(package_of(path))
    modules = modules_of(str(path))
    assert {*modules} <= {*package.__all__}
    submodules = {each.name for each in pkgutil.iter_modules(package.__path__)}
    assert submodules & {*modules} == set()
    for name, module in modules.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), name)


def test_some_packages_load_their_exports_lazily() -> None:
    assert {package_of(path) for path in LAZY} >= {"remy_farm", "remy_farm.analysis"}
