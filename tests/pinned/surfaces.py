"""What other programs hold on to: commands and flags, metrics, and the objects of the chart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.programs import ROOT
from remy_cli.main import main
from tests.chart.rendering import CHART, EVERYTHING, helm, objects_in
from tests.pinned.records import Record, digest_of_tree

#: Defaults that are the machine's.
_OWN_DEFAULTS: Final = ("threads", "name")


def _type(kind: click.ParamType[Any]) -> str:
    """What is allowed; the class that says so may be renamed."""
    if isinstance(kind, click.Choice):
        return " | ".join(map(str, kind.choices))
    limits = re.fullmatch(r"<\w+ (\S*x\S*)>", repr(kind))
    return f"{kind.name} {limits[1]}" if limits else kind.name


def _parameter(parameter: click.Parameter) -> str:
    words = [" / ".join([*parameter.opts, *parameter.secondary_opts])]
    if not (isinstance(parameter, click.Option) and parameter.is_flag):
        words.append(_type(parameter.type))
    if parameter.required:
        words.append("required")
    if parameter.multiple or parameter.nargs != 1:
        words.append("several")
    known = parameter.to_info_dict().get("default")
    if known is not False and known is not None and parameter.name not in _OWN_DEFAULTS:
        words.append(f"default {known!r}")
    if parameter.envvar:
        names = parameter.envvar
        words.append("or " + (names if isinstance(names, str) else ", ".join(names)))
    return ", ".join(words)


def _flags(_: Path) -> Any:
    context = click.Context(main, info_name="remy-farm")
    found = {"remy-farm": sorted(map(_parameter, main.params))}
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        found[name] = sorted(map(_parameter, command.params))
        for part, each in getattr(command, "commands", {}).items():
            found[f"{name} {part}"] = sorted(map(_parameter, each.params))
    return found


def _metrics(_: Path) -> Any:
    """As the catalogue has them; other tests compare it with what is exported."""
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", re.MULTILINE)
    label = re.compile(r"`(\w+)`")
    return {
        name: " ".join([kind, *sorted(label.findall(labels))])
        for name, kind, labels in row.findall(text)
    }


_VALUES: Final[dict[str, tuple[str, ...]]] = {
    "nothing": (),
    "everything": ("--values", str(EVERYTHING)),
    "deployment": ("--set", "workers.backend=deployment"),
    "ray": ("--set", "workers.backend=ray"),
    "eks": ("--values", str(ROOT / "deploy" / "eks" / "values.yaml")),
}
_RELEASE: Final = ("farm", str(CHART), "--namespace", "research", "--kube-version", "1.35.0")


def _chart(_: Path) -> Any:
    found = {}
    for name, flags in _VALUES.items():
        done = helm("template", *_RELEASE, *flags)
        assert done.returncode == 0, done.stderr
        found[name] = {
            f"{each['kind']}/{each['metadata']['name']}": _parts(each)
            for each in objects_in(done.stdout)
        }
    return found


def _parts(tree: dict[str, Any]) -> dict[str, Any]:
    """A digest of each part that is looked for by name when objects differ; secrets are drawn."""
    parts: dict[str, Any] = {}
    if tree["kind"] == "Secret":
        drawn = tree.get("stringData", {}) | tree.get("data", {})
        tree = {**tree, "stringData": sorted(drawn), "data": {}}
    for key, value in tree.items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        for of, each in inner:
            is_short = len(str(each)) <= 40
            parts[f"{key}.{of}".rstrip(".")] = each if is_short else digest_of_tree(each)
    return parts


FLAGS_AND_METRICS: Final = (Record("flags", _flags), Record("metrics", _metrics))
CHART_RECORD: Final = Record("chart", _chart)
RECORDS: Final = FLAGS_AND_METRICS
