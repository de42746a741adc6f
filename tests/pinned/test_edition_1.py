"""What the first edition left behind goes on to the same bytes; `tests/data/edition-1` has it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import grpc
import pytest

from benchmarks.programs import ROOT
from remy_proto.completion import NEWEST_EDITION
from tests.pinned.command_line import call, call_json, coordinator
from tests.pinned.records import digest
from tests.waiting import wait_until

_DATA: Final = ROOT / "tests" / "data" / "edition-1"
_EXPECTED: Final = json.loads((_DATA / "expected.json").read_text(encoding="utf-8"))
_DESIGNS: Final = sorted(path.name for path in (_DATA / "designs").iterdir())
_PAUSED: Final = ("paused-paper", "paused-pattern", "paused-joint", "paused-fork")
_SERVICE: Final = "/remy_farm.v1.DesignService/"


@pytest.mark.parametrize("name", _DESIGNS)
def test_an_unfinished_design_goes_on(name: str, tmp_path: Path) -> None:
    out = tmp_path / name
    shutil.copytree(_DATA / "designs" / name, out)
    kept = (out / "progress.jsonl").read_text(encoding="utf-8")
    result = call("design", _DATA / f"{name}.yaml", "--out", out, "--resume", "--quiet")
    assert result.exit_code == 0, result.output
    assert {file: digest((out / file).read_bytes()) for file in _EXPECTED[name]} == _EXPECTED[name]
    assert (out / "progress.jsonl").read_text(encoding="utf-8").startswith(kept)


def _on(address: str) -> Callable[..., dict[str, Any]]:
    return lambda *words: call_json(*words, REMY_FARM_COORDINATOR=address)


def _check_result(ask: Callable[..., dict[str, Any]], job: str, expected: str, out: Path) -> None:
    """Waits for the job to end, and compares its table in both formats; with that of a new design
    where what is expected is a specification."""
    wait_until(lambda: ask("status", job)["state"] not in ("pending", "scheduling", "running"))
    ended = ask("status", job)
    assert ended["state"] == "succeeded", ended
    if expected.endswith(".yaml"):
        assert ended["spec"]["edition"] == NEWEST_EDITION
        result = call("design", _DATA / expected, "--out", out / expected, "--quiet")
        assert result.exit_code == 0, result.output
        designed = digest((out / expected / "remycc.json").read_bytes())
        assert ask("fetch", job, "-o", out / f"{job}.json")["sha256"] == designed
        return
    for file, sha256 in _EXPECTED[expected].items():
        assert ask("fetch", job, "-o", out / f"{job}-{file}")["sha256"] == sha256, job


def test_the_jobs_of_a_store_go_on(tmp_path: Path) -> None:
    shutil.copy(_DATA / "farm.db", tmp_path / "farm.db")
    with coordinator(tmp_path) as address:
        ask = _on(address)
        for job in _PAUSED:
            assert ask("status", job)["state"] == "paused"
            ask("resume", job)
        # That one ran when its coordinator ended, and needs nobody to go on.
        for job in (*_PAUSED, "running", "finished"):
            _check_result(ask, job, job, tmp_path)


def test_an_archive_goes_on(tmp_path: Path) -> None:
    with coordinator(tmp_path) as address:
        ask = _on(address)
        job = ask("import-job", _DATA / "paused-joint.archive")
        assert (job["name"], job["state"]) == ("paused-joint", "paused")
        ask("resume", "paused-joint")
        _check_result(ask, "paused-joint", "paused-joint", tmp_path)


def test_requests_of_its_clients_are_understood(tmp_path: Path) -> None:
    ids: dict[str, str] = {}
    with coordinator(tmp_path) as address, grpc.insecure_channel(address) as channel:
        ask = _on(address)
        for each in json.loads((_DATA / "requests.json").read_text(encoding="utf-8")):
            request = bytes.fromhex(each["request"])
            for name, old in each.get("ids", {}).items():
                ids[name] = ask("status", name)["id"]
                assert len(ids[name]) == len(old)
                request = request.replace(old.encode(), ids[name].encode())
            is_stream = each["method"] in ("WatchJob", "ExportJob")
            method: Any = (channel.unary_stream if is_stream else channel.unary_unary)(
                _SERVICE + each["method"]
            )
            if is_stream:
                assert list(method(request))
            elif "fails" in each:
                with pytest.raises(grpc.RpcError) as refused:
                    method(request)
                assert refused.value.code().name == each["fails"]
            else:
                method(request)
            for name, expected in each.get("makes", {}).items():
                _check_result(ask, name, expected, tmp_path)
