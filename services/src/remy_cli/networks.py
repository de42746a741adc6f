"""Options that describe a network: a file, settings of keys, and flags that are short for some."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from remy_farm.evaluation import choice_words, vary_network
from remy_farm.specification import Tree, load_tree, parse_setting
from remy_proto.v1 import evaluation_pb2

#: Flags that are short for a setting: the parameter and the path that it sets.
SHORT: Final = {
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


def described_network(
    path: str | None, settings: tuple[str, ...], short: Mapping[str, Any], *, name: str
) -> tuple[Tree, Path, str]:
    """The tree of the network in a file, if one is named, with flags and settings laid over it; the
    folder that its files count from, and what errors call it: the file, or `name`.

    Raises SpecError or FileError.
    """
    source, folder = path or name, Path(path or "").parent
    tree: Tree = {} if path is None else load_tree(path)
    for flag, value in short.items():
        if value is not None:
            said = choice_words(value) if isinstance(value, evaluation_pb2.Choice) else value
            tree = vary_network(tree, SHORT[flag], said, source=source)
    for text in settings:
        place, said = parse_setting(text, "--set", source=source)
        tree = vary_network(tree, place, said, source=source)
    return tree, folder, source
