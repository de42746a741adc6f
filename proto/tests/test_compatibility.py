"""`buf breaking` rejects changes that break older clients and accepts the others."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

_PROTO = Path(__file__).resolve().parent.parent
_BUF = Path(sys.executable).parent / "buf"


def _breaks(folder: Path, edits: dict[str, str]) -> str:
    """The complaints of `buf` about the service with these edits; empty if it accepts them."""
    edited = folder / "proto"
    shutil.copytree(_PROTO, edited, ignore=shutil.ignore_patterns("src", "tests"))
    source = edited / "remy_farm" / "v1" / "design_service.proto"
    text = source.read_text()
    for before, after in edits.items():
        assert text.count(before) == 1
        text = text.replace(before, after)
    source.write_text(text)
    command = (_BUF, "breaking", edited, "--against", _PROTO / "baseline.binpb")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert (done.returncode == 0) == (done.stdout == "")
    return done.stdout


def test_every_breaking_change_is_reported(tmp_path: Path) -> None:
    complaints = _breaks(
        tmp_path,
        {
            "  optional string campaign = 7;\n": "  optional string campaign = 17;\n",
            "  optional int32 priority = 5;\n": "  optional string priority = 5;\n",
            "  REMY_CC_FORMAT_DNA = 2;\n": "",
            "  rpc ListEpochs(ListEpochsRequest) returns (ListEpochsResponse);\n": "",
        },
    )
    for what in ('field "7"', "changed type", 'enum value "2"', 'RPC "ListEpochs"'):
        assert what in complaints


def test_a_new_field_is_accepted(tmp_path: Path) -> None:
    before = "message GetServerInfoRequest {}"
    assert not _breaks(tmp_path, {before: f"{before[:-1]}\n  bool in_full = 1;\n}}"})
