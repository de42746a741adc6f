"""The live network: the simulator in WebAssembly, in a page that loads nothing else (play/)."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Final

from google.protobuf import json_format

from remy_farm.remycc import RemyCC
from remy_proto.v1 import rule_table_pb2

#: As built by scripts/live_page.py.
BUILT: Final = resources.files("remy_farm") / "live"
_TABLES: Final = '<script type="application/json" id="tables">'
_SIMULATOR: Final = '<script type="text/plain" id="simulator">'


def live_network_page(remyccs: Mapping[str, RemyCC]) -> str:
    """The page with these tables by name; the first is the one that its presets are about.

    Its own Content-Security-Policy lets it load nothing, wherever it is hosted or opened.
    """
    page = (BUILT / "page.html").read_text(encoding="utf-8")
    simulator = base64.b64encode((BUILT / "simulator.wasm").read_bytes()).decode("ascii")
    tables = [{"name": name, "json": table_tree(remycc)} for name, remycc in remyccs.items()]
    # Within a script element only "<" can mean anything.
    text = json.dumps(tables, separators=(",", ":")).replace("<", "\\u003c")
    return page.replace(_TABLES, _TABLES + text).replace(_SIMULATOR, _SIMULATOR + simulator)


def policy_within() -> str:
    """What a page must allow that has the live network in a frame."""
    page = (BUILT / "page.html").read_text(encoding="utf-8")
    rights = re.search(r"script-src [^;]*", page)
    assert rights is not None
    return f"; frame-src data:; worker-src blob:; {rights[0]}"


def table_tree(remycc: RemyCC) -> dict[str, object]:
    """The table as the page reads it, which is the JSON form of the message RuleTable."""
    message = rule_table_pb2.RuleTable()
    message.CopyFrom(remycc.to_message())
    message.ClearField("dna_metadata")
    tree: dict[str, object] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return tree
