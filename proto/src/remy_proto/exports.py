"""Exports that a package imports lazily, on first use (PEP 562).

A package lists its exports once, where type checkers look for them:

    if TYPE_CHECKING:
        from remy_farm.analysis.campaign import Member as Member
    else:
        __all__, __getattr__, __dir__ = lazy_exports(__name__, __file__)
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Exports = tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]


def lazy_exports(package: str, file: str, extras: Mapping[str, str] | None = None) -> Exports:
    """Returns `__all__`, `__getattr__` and `__dir__` for a package with lazy exports.

    The exports are the names that `file` imports under `if TYPE_CHECKING`, after those already in
    the package's `__all__`. `extras` maps each optional dependency to what `pip install` needs for
    it. A name from a dependency that is not installed is left out of `__dir__`, and accessing it
    raises an ImportError that says what to install.
    """
    modules = modules_of(file)
    optional = extras or {}
    namespace = vars(sys.modules[package])
    names = [*namespace.get("__all__", ()), *modules]

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(modules[name]), name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name not in optional:
                raise
            raise ImportError(
                f"{name} needs {error.name}, which is not installed: "
                f"pip install '{optional[error.name]}'"
            ) from error
        namespace[name] = value
        return value

    def is_there(name: str) -> bool:
        top = modules.get(name, package).partition(".")[0]
        return top not in optional or find_spec(top) is not None

    return names, load, lambda: sorted({*namespace, *filter(is_there, names)})


def modules_of(file: str) -> dict[str, str]:
    """Maps each name that a file imports under `if TYPE_CHECKING` to its module."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {
        alias.name: node.module
        for branch in tree.body
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in branch.body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }
