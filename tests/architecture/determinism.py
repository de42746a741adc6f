"""Finds source code that could make two runs of the designer differ.

It examines the names, calls, operators and imports of the syntax tree. It does not know the types
of values, and so overlooks iteration over a set that is passed in without annotation, and `sum()`
of floats. (Sums of integers are exact, and the designer has some.) Reviews and the tests of digests
cover these.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

# These functions are exact or correctly rounded on every machine. All others in `math` call libm,
# whose last bit depends on the processor.
EXACT_MATH = frozenset(
    "ceil copysign fabs floor frexp fsum gcd inf isclose isfinite isinf isnan isqrt ldexp modf nan"
    " nextafter sqrt trunc ulp".split()
)
INEXACT_NUMPY = frozenset(
    "arccos arccosh arcsin arcsinh arctan arctan2 arctanh average cbrt convolve correlate cos cosh"
    " cumprod dot einsum exp exp2 expm1 fft float_power geomspace hypot inner interp linalg"
    " log log10 log1p log2 logaddexp logspace matmul mean median nanmean nansum outer percentile"
    " power prod quantile random sin sinh std sum tan tanh tensordot trapezoid var vdot".split()
)
REDUCING_METHODS = frozenset("cumprod dot mean prod std sum var".split())
FORBIDDEN_BUILTINS = {
    "eval": "code from data",
    "exec": "code from data",
    "hash": "differs between processes",
    "id": "differs between processes",
    "input": "I/O",
    "open": "I/O",
    "pow": "libm's pow",
    "print": "I/O",
}
FORBIDDEN_MODULES = {
    "cmath": "libm's functions",
    "random": "randomness that is not keyed by the seed",
    "statistics": "sums whose rounding depends on the Python version",
}
SET_MAKERS = frozenset({"frozenset", "set"})
ORDERED_CONSUMERS = frozenset({"enumerate", "iter", "list", "map", "next", "sum", "tuple", "zip"})


@dataclass(frozen=True, order=True)
class Hazard:
    """A line of source code that could make two runs differ."""

    line: int
    reason: str


def find_hazards(source: str) -> list[Hazard]:
    """Returns the hazards in `source`, in the order of its lines."""
    tree = ast.parse(source)
    return sorted({Hazard(line, reason) for line, reason in _hazards(tree)})


def _hazards(tree: ast.Module) -> Iterator[tuple[int, str]]:
    modules = _imported_modules(tree)
    sets = _names_of_sets(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for reason in _import(node):
                yield node.lineno, reason
        elif isinstance(node, ast.Attribute):
            for reason in _attribute(node, modules):
                yield node.lineno, reason
        elif isinstance(node, ast.BinOp | ast.AugAssign):
            for reason in _operator(node):
                yield node.lineno, reason
        elif isinstance(node, ast.Call):
            for reason in _call(node, sets):
                yield node.lineno, reason
        elif isinstance(node, ast.For | ast.comprehension | ast.Starred):
            iterated = node.value if isinstance(node, ast.Starred) else node.iter
            if _is_set(iterated, sets):
                yield iterated.lineno, "the order of a set"


def _imported_modules(tree: ast.Module) -> dict[str, str]:
    """Returns the module of each local name that `import module [as name]` binds."""
    return {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }


def _import(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name in FORBIDDEN_MODULES:
                yield f"{alias.name}: {FORBIDDEN_MODULES[alias.name]}"
        return
    for alias in node.names:
        if node.module in FORBIDDEN_MODULES:
            yield f"{node.module}: {FORBIDDEN_MODULES[node.module]}"
        elif node.module == "math" and alias.name not in EXACT_MATH:
            yield f"math.{alias.name}: last bit depends on the processor"
        elif node.module == "numpy" and alias.name in INEXACT_NUMPY:
            yield f"numpy.{alias.name}: last bit depends on the processor"


def _attribute(node: ast.Attribute, modules: dict[str, str]) -> Iterator[str]:
    if not isinstance(node.value, ast.Name):
        return
    module = modules.get(node.value.id)
    if module == "math" and node.attr not in EXACT_MATH:
        yield f"math.{node.attr}: last bit depends on the processor"
    elif module == "numpy" and node.attr in INEXACT_NUMPY:
        yield f"numpy.{node.attr}: last bit depends on the processor"


def _operator(node: ast.BinOp | ast.AugAssign) -> Iterator[str]:
    if isinstance(node.op, ast.MatMult):
        yield "@: the order of its sums depends on the processor"
    elif isinstance(node.op, ast.Pow):
        # A power of two integer literals is exact; any other power may call libm's pow.
        operands = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
        if not operands or not all(_is_integer(operand) for operand in operands):
            yield "**: libm's pow"


def _is_integer(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _call(node: ast.Call, sets: frozenset[str]) -> Iterator[str]:
    if isinstance(node.func, ast.Name):
        name = node.func.id
        if name in FORBIDDEN_BUILTINS:
            yield f"{name}(): {FORBIDDEN_BUILTINS[name]}"
        if name in ORDERED_CONSUMERS and any(_is_set(value, sets) for value in node.args):
            yield "the order of a set"
    elif isinstance(node.func, ast.Attribute):
        method = node.func.attr
        if method in REDUCING_METHODS and not isinstance(node.func.value, ast.Name | ast.Constant):
            yield f".{method}(): the order of its sums depends on the processor"
        elif _takes_set_in_order(node.func.value, method, node.args, sets):
            yield "the order of a set"


def _takes_set_in_order(
    owner: ast.expr, method: str, arguments: list[ast.expr], sets: frozenset[str]
) -> bool:
    if method == "join":
        return any(_is_set(argument, sets) for argument in arguments)
    return method == "pop" and not arguments and _is_set(owner, sets)


def _is_set(node: ast.expr, names: frozenset[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub):
        return _is_set(node.left, names)
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in SET_MAKERS
    )


def _names_of_sets(tree: ast.Module) -> frozenset[str]:
    """Returns the names that are bound to a set or annotated as one anywhere in the module."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _is_set(node.value, frozenset()):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if _annotates_set(node.annotation):
                names.add(node.target.id)
        elif isinstance(node, ast.arg) and node.annotation and _annotates_set(node.annotation):
            names.add(node.arg)
    return frozenset(names)


def _annotates_set(node: ast.expr) -> bool:
    outer = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(outer, ast.Name) and outer.id in SET_MAKERS | {"AbstractSet", "Set"}
