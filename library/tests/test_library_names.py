"""Tests that public names are few, documented, and import only the packages that they need."""

import importlib
import inspect
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import remy_farm as rf
from remy_proto.exports import modules_of

#: Packages that neither the import nor a local call may load.
_HEAVY_PACKAGES = (
    "grpc",
    "redis",
    "matplotlib",
    "prometheus_client",
    "kubernetes",
    "pandas",
    "IPython",
)
#: The module of each public name.
_MODULES = modules_of(rf.__file__)
_ROOT = Path(__file__).parents[2]
_DISTRIBUTIONS = {"remy_services": "service", "remy_laboratory": "laboratory"}


def loaded_after(program: str) -> set[str]:
    """The packages that a new process has loaded after running the program."""
    report = "import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{report}"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}


def test_the_import_loads_no_other_packages() -> None:
    loaded = loaded_after("import remy_farm as rf\ndir(rf)")
    assert not loaded & {*_HEAVY_PACKAGES, "numpy", "google", "remy_simulator", "remy_services"}


@pytest.mark.parametrize(
    "call",
    [
        "rf.simulate(rf.Network(rate_mbps=10, rtt_ms=50, senders=['cubic']), seconds=1)",
        "rf.design(joint_spec())",
        "rf.evaluate(small_table(), joint_spec(), networks=2)",
        "rf.explain(small_table(), joint_spec(), networks=2).to_dict()",
    ],
)
def test_local_calls_load_neither_service_nor_plotting_packages(call: str) -> None:
    program = (
        "import remy_farm as rf\n"
        "from library.tests.library_examples import joint_spec, small_table\n"
        f"repr({call})"
    )
    assert not loaded_after(program) & {*_HEAVY_PACKAGES, *_DISTRIBUTIONS}


def test_there_are_at_most_45_public_names() -> None:
    names = {*vars(rf)["__all__"]}
    assert len(names) <= 45
    assert {"Spec", "Network", "Table", "Design", "Scores", "Run", "Client", "Job"} <= names
    absent = {package for package in _DISTRIBUTIONS if find_spec(package) is None}
    assert {name for name in names if _MODULES[name].partition(".")[0] not in absent} <= {*dir(rf)}


def own_names() -> list[str]:
    return [name for name, where in _MODULES.items() if where.startswith("remy_farm")]


@pytest.mark.parametrize("name", own_names())
def test_each_public_name_documents_arguments_result_and_errors(name: str) -> None:
    value = getattr(rf, name)
    text = inspect.getdoc(value) or ""
    assert text
    if not inspect.isfunction(value):
        public = [each for each in vars(value) if not each.startswith("_")]
        assert all(
            inspect.getdoc(getattr(value, each))
            for each in public
            if callable(getattr(value, each))
        )
        return
    parameters = inspect.signature(value).parameters
    if len(parameters) > 1:
        assert "Args:" in text
        assert [each for each in parameters if f"{each}: " not in text] == []
        assert "Returns:" in text
    assert not parameters or "Raises" in text


@pytest.mark.parametrize(("package", "extra"), _DISTRIBUTIONS.items())
def test_a_name_that_is_not_installed_names_its_extra(
    package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Absent:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name.partition(".")[0] == package:
                raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    for name in [*sys.modules]:
        if name.partition(".")[0] == package:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    exported = [name for name, where in _MODULES.items() if where.startswith(package)]
    assert exported
    for name in exported:
        monkeypatch.delitem(vars(rf), name, raising=False)
        with pytest.raises(ImportError, match=rf"pip install 'remy-farm\[{extra}\]'$"):
            getattr(rf, name)


def test_an_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'desgin'"):
        importlib.import_module("remy_farm").desgin  # noqa: B018


@pytest.mark.parametrize(("package", "extra"), [("pandas", "pandas"), ("pyarrow", "parquet")])
def test_data_frames_without_their_package_name_the_extra(
    package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    table = rf.load_table("generalist")
    with pytest.raises(ImportError, match=rf"pip install 'remy-farm\[{extra}\]'$"):
        table.to_pandas() if package == "pandas" else table.to_arrow()
