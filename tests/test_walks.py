"""The walks of docs/architecture.md name files that there are, and leave none out."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from click.testing import CliRunner

import remy_simulator
from benchmarks.programs import ROOT
from remy_cli.submit import submit_command
from remy_farm.designer import Designer
from remy_farm.evaluation.local import LocalEvaluator
from remy_farm.specification import parse_spec
from services.tests.coordinator.running_server import RunningServer, settings_for
from tests.observability.local_worker import LocalWorker
from tests.waiting import wait_until

MOST_FILES = 25
STEPS = 3
#: What names a design by its digest, and seals its state: met once, and no part of a step. Nor are
#: recordings where no link follows any.
DIGESTS = {
    "library/src/remy_farm/specification/enclosures.py",
    "services/src/remy_services/stores/recordings.py",
    "library/src/remy_farm/specification/writing.py",
    "library/src/remy_farm/designer/checkpoint.py",
    "library/src/remy_farm/designer/joint/divisions.py",
    "simulator/python/remy_simulator/fingerprint.py",
    "simulator/python/remy_simulator/traces.py",
}
#: How a client finds its coordinator and knows a misspelt variable, and what is around calls and
#: threads: no part of a job.
AROUND = {
    "proto/src/remy_proto/v1/design_service_pb2_grpc.py",
    "rpc/src/remy_rpc/channel.py",
    "rpc/src/remy_rpc/files.py",
    "rpc/src/remy_rpc/retry.py",
    "rpc/src/remy_rpc/settings.py",
    "services/src/remy_cli/common.py",
    "services/src/remy_cli/connecting.py",
    "services/src/remy_cli/coordinator.py",
    "services/src/remy_cli/failures.py",
    "services/src/remy_cli/views.py",
    "services/src/remy_services/client/settings.py",
    "services/src/remy_services/coordinator/maintenance.py",
    "library/src/remy_farm/files.py",
    "services/src/remy_services/telemetry/grpc_metrics.py",
    "simulator/python/remy_simulator/cpus.py",
}
SIMULATOR = Path(remy_simulator.__file__).parent


def walks() -> list[list[str]]:
    """The files of each numbered list, in order."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.partition("## A newcomer's walk\n")[2].partition("\n## ")[0]
    lists = re.findall(r"(?:^\d+\. .*\n)+", section, re.MULTILINE)
    return [re.findall(r"^\d+\. `([^`]+)`: \S", each, re.MULTILINE) for each in lists]


def ours(file: str) -> str | None:
    """A Python file's path in this repository; None for what is not ours."""
    path = Path(file)
    if path.is_relative_to(SIMULATOR):
        return f"simulator/python/remy_simulator/{path.relative_to(SIMULATOR)}"
    if path.is_relative_to(ROOT) and "src" in path.parts:
        return str(path.relative_to(ROOT))
    return None


@pytest.mark.parametrize("number", [0, 1])
def test_a_walk_is_short_and_its_files_exist(number: int) -> None:
    walk = walks()[number]
    assert 15 < len(set(walk)) == len(walk) <= MOST_FILES
    assert [file for file in walk if not (ROOT / file).is_file()] == []


@contextmanager
def entered_files() -> Iterator[set[str]]:
    """The files of ours whose functions are called meanwhile, here and in threads that begin now;
    emptying the set forgets what there was until then."""
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and (file := ours(frame.f_code.co_filename)) is not None:
            entered.add(file)

    before, before_in_threads = sys.getprofile(), threading.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield entered
    finally:
        sys.setprofile(before)
        threading.setprofile(before_in_threads)


def test_a_design_enters_no_file_beside_the_walk() -> None:
    text = (ROOT / "examples" / "demo.yaml").read_text(encoding="utf-8")
    evaluator = LocalEvaluator(1)
    with entered_files() as entered:
        designer = Designer(parse_spec(text))
        while designer.steps < STEPS and (request := designer.next_request()) is not None:
            designer.receive(evaluator.evaluate(request))
    evaluator.close()
    assert designer.steps == STEPS
    assert entered - set(walks()[0]) - DIGESTS == set()


def test_a_submitted_job_enters_every_file_of_its_walk_and_none_beside(tmp_path: Path) -> None:
    spec = str(ROOT / "examples" / "demo.yaml")
    with (
        entered_files() as entered,
        RunningServer(settings_for(tmp_path, evaluator="workers")) as at,
        LocalWorker(at.address, tmp_path / "worker.log"),
    ):
        wait_until(lambda: at.farm.evaluator.status().workers)
        entered.clear()
        flags = ["--coordinator", at.address, "--quiet"]
        submitted = CliRunner().invoke(submit_command, [spec, *flags])
        assert submitted.exit_code == 0, submitted.output
        wait_until(lambda: [each for each in at.farm.catalogue if each.job.progress.step >= STEPS])
        of_the_job = set(entered)
    first, second = map(set, walks())
    assert second - of_the_job == set()
    assert of_the_job - second - first - DIGESTS - AROUND == set()
