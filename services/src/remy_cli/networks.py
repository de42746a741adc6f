"""Builds a network description from a file, --set options and flags such as --rate-mbps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from remy_farm.evaluation import format_choice, vary_network
from remy_farm.specification import Tree, load_tree, parse_setting
from remy_proto.v1 import evaluation_pb2

#: Maps the parameter of a short flag to the key path of the network that it sets.
SHORT_FLAGS: Final = {
    "rate_mbps": "rate_mbps",
    "rtt_ms": "rtt_ms",
    "buffer_packets": "buffer.packets",
    "loss_probability": "loss_probability",
    "queue": "queue",
    "transport": "transport",
    "on_ms": "traffic.exponential_time.mean_ms",
    "on_bytes": "traffic.exponential_bytes.mean_bytes",
    "off_ms": "traffic.mean_off_ms",
}


def network_from_options(
    path: str | None, settings: tuple[str, ...], short: Mapping[str, Any], *, name: str
) -> tuple[Tree, Path, str]:
    """Reads a network file, if `path` is given, and applies the short flags and --set options.

    Returns the network's keys, the directory that its file names are relative to, and the name
    for error messages: `path`, or `name` without a file. Raises SpecError or FileError.
    """
    source, directory = path or name, Path(path or "").parent
    tree: Tree = {} if path is None else load_tree(path)
    for flag, value in short.items():
        if value is not None:
            setting = format_choice(value) if isinstance(value, evaluation_pb2.Choice) else value
            tree = vary_network(tree, SHORT_FLAGS[flag], setting, source=source)
    for text in settings:
        key_path, setting = parse_setting(text, "--set", source=source)
        tree = vary_network(tree, key_path, setting, source=source)
    return tree, directory, source
