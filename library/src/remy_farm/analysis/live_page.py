"""Makes the page of the live network: the simulator in WebAssembly, without external resources."""

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

#: Files that scripts/live_page.py builds from play/.
BUILT: Final = resources.files("remy_farm") / "live"
_TABLES: Final = '<script type="application/json" id="tables">'
_SIMULATOR: Final = '<script type="text/plain" id="simulator">'


def live_network_page(remyccs: Mapping[str, RemyCC]) -> str:
    """Returns the page with these tables by name. Its presets use the first table.

    The page's own Content-Security-Policy forbids it to load anything, wherever it is opened.
    """
    page = (BUILT / "page.html").read_text(encoding="utf-8")
    simulator = base64.b64encode((BUILT / "simulator.wasm").read_bytes()).decode("ascii")
    tables = [{"name": name, "json": table_tree(remycc)} for name, remycc in remyccs.items()]
    # "<" is the only character with a special meaning within a script element.
    text = json.dumps(tables, separators=(",", ":")).replace("<", "\\u003c")
    return page.replace(_TABLES, _TABLES + text).replace(_SIMULATOR, _SIMULATOR + simulator)


def policy_within() -> str:
    """Returns the Content-Security-Policy directives for a page that embeds the live network."""
    page = (BUILT / "page.html").read_text(encoding="utf-8")
    rights = re.search(r"script-src [^;]*", page)
    assert rights is not None
    return f"; frame-src data:; worker-src blob:; {rights[0]}"


def table_tree(remycc: RemyCC) -> dict[str, object]:
    """Returns the table as the page reads it: the JSON form of the message RuleTable."""
    message = rule_table_pb2.RuleTable()
    message.CopyFrom(remycc.to_message())
    message.ClearField("dna_metadata")
    tree: dict[str, object] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return tree
