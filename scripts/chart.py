"""Generates files of the Helm chart: `scripts/chart.py [--check]`.

From charts/remy-farm/values.schema.yaml it generates the JSON schema by which Helm checks values,
and the table of values in the chart's README.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "charts" / "remy-farm"
BEGIN, END = "<!-- values -->\n", "<!-- end of values -->\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a file is stale")
    check = parser.parse_args().check
    made = files()
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    if check:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale: run scripts/chart.py")
        return 1 if stale else 0
    for path in stale:
        path.write_text(made[path])
    return 0


def files() -> dict[Path, str]:
    """Returns the content of every generated file."""
    source = yaml.safe_load((CHART / "values.schema.yaml").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    definitions = source.pop("$defs")
    resolved = resolve(source, definitions)
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **json_schema(resolved)}
    readme = (CHART / "README.md").read_text()
    before, after = readme.partition(BEGIN)[0], readme.partition(END)[2]
    table = "\n".join(rows(resolved, defaults))
    return {
        CHART / "values.schema.json": json.dumps(schema, indent=2) + "\n",
        CHART / "README.md": f"{before}{BEGIN}\n{table}\n\n{END}{after}",
    }


def resolve(node: Any, definitions: dict[str, Any]) -> Any:
    """Returns the schema with every `$ref` replaced by the definition that it names."""
    if isinstance(node, list):
        return [resolve(each, definitions) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        node = {**definitions[node["$ref"]], **{k: v for k, v in node.items() if k != "$ref"}}
    return {key: resolve(value, definitions) for key, value in node.items()}


def json_schema(node: Any) -> Any:
    """Returns the schema in Helm's form: objects accept no other keys unless they are `open`."""
    if isinstance(node, list):
        return [json_schema(each) for each in node]
    if not isinstance(node, dict):
        return node
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            made[key] = {name: json_schema(each) for name, each in value.items()}
        elif key not in ("open", "values"):
            made[key] = json_schema(value)
    if node.get("type") == "object":
        made["additionalProperties"] = node.get("values", True) if node.get("open") else False
    return made


def rows(schema: dict[str, Any], defaults: dict[str, Any]) -> Iterator[str]:
    """Yields the lines of the table of values."""
    yield "| Value | Default | Meaning |"
    yield "|---|---|---|"
    for path, node, default in leaves(schema, defaults, ()):
        allowed = f" One of {', '.join(map(code, node['enum']))}." if "enum" in node else ""
        yield f"| `{'.'.join(path)}` | {code(default)} | {node['description']}{allowed} |"


def leaves(
    schema: dict[str, Any], defaults: Any, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], dict[str, Any], Any]]:
    """Yields every value's path, schema and default, in the order of the schema."""
    strays = set(defaults or {}) - set(schema["properties"])
    if strays:
        raise SystemExit(f"values.schema.yaml lacks {'.'.join((*path, sorted(strays)[0]))}")
    for name, node in schema["properties"].items():
        default = (defaults or {}).get(name)
        if "properties" in node:
            yield from leaves(node, default, (*path, name))
        elif "description" not in node:
            raise SystemExit(f"values.schema.yaml does not describe {'.'.join((*path, name))}")
        elif name != "global":
            yield (*path, name), node, default


def code(value: Any) -> str:
    """Formats a value as code in a cell of a Markdown table."""
    return f"`{json.dumps(value)}`".replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
