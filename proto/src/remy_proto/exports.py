"""Names that a package exports, and loads when they are first used.

A package lists them once, where type checkers look:

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
    """`__all__`, `__getattr__` and `__dir__` of a package for what its file imports for type
    checkers alone, and for what its `__all__` had already.

    `extras` names what is to be installed for packages that may be absent. What is in one that is
    absent is no part of `__dir__`, and an ImportError when it is asked for.
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
    """Where each name is that a file imports for type checkers alone."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {
        alias.name: node.module
        for branch in tree.body
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in branch.body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }
