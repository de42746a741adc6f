"""A farm on the cluster: installed by Helm, used by the command line through a port-forward."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.programs import ROOT
from tests.e2e.kubectl import Kubectl, run
from tests.e2e.settings import values_file
from tests.waiting import wait_until

CHART = ROOT / "charts" / "remy-farm"
CLI = [str(Path(sys.executable).with_name("remy-farm"))]
RELEASE = "farm"
FULL_NAME = "farm-remy-farm"
COORDINATOR = f"app.kubernetes.io/instance={FULL_NAME},app.kubernetes.io/component=coordinator"
REDIS = f"app.kubernetes.io/instance={FULL_NAME},app.kubernetes.io/component=redis"
WORKERS = f"app.kubernetes.io/instance={FULL_NAME},remy-farm/worker=true"
UNREACHABLE = 3
#: Each look is a process, which takes its share of the CPUs that the workers have.
_LOOK_SECONDS = 1.0
#: A design that has made no step for so long makes none any more, however busy the machine is.
_STANDSTILL_SECONDS = 600.0
FINAL = ("SUCCEEDED", "CANCELLED", "FAILED")


class Unreachable(AssertionError):
    """No coordinator answers: it may be on its way to another node."""


class Farm:
    """One release in a namespace of its own, and a client that reaches it."""

    def __init__(self, namespace: str, folder: Path) -> None:
        self.namespace = namespace
        self.kubectl = Kubectl(namespace)
        self._folder = folder
        self._forward: subprocess.Popen[str] | None = None
        self._environment: dict[str, str] = {}

    def install(self, values: Mapping[str, Any] | None = None, chart: Path = CHART) -> None:
        """Installs the chart, or upgrades what is there, and waits until it is ready."""
        command = ["helm", "upgrade", "--install", RELEASE, str(chart), "-n", self.namespace]
        command += ["--create-namespace", "-f", str(values_file()), "-f", "-"]
        run([*command, "--wait", "--timeout", "5m"], given=json.dumps(values or {}), seconds=400)
        self.close()

    def uninstall(self) -> None:
        self.close()
        run(["helm", "uninstall", RELEASE, "-n", self.namespace, "--wait", "--timeout", "3m"])

    def remove(self) -> None:
        """Leaves nothing behind."""
        self.close()
        run(["kubectl", "delete", "namespace", self.namespace, "--ignore-not-found"])
        classes = [f"{self.namespace}-{FULL_NAME}-{each}" for each in ("coordinator", "workers")]
        run(["kubectl", "delete", "priorityclass", *classes, "--ignore-not-found"])

    def test(self) -> str:
        """`helm test`, with what it printed."""
        command = ["helm", "test", RELEASE, "-n", self.namespace, "--logs", "--timeout", "5m"]
        said = run(command, seconds=400)
        # The one object of a release that outlasts it: its log was read when all was over.
        self.kubectl("delete", "pod", f"{FULL_NAME}-test")
        return said

    def secret(self, name: str, key: str) -> str:
        found = self.kubectl("get", "secret", f"{FULL_NAME}-{name}", "-o", "json")
        return base64.b64decode(json.loads(found)["data"][key]).decode()

    def cli(self, *arguments: str, role: str = "submitter") -> str:
        """What `remy-farm` prints, run with a token of this role."""
        done = self.try_cli(*arguments, role=role)
        said = f"remy-farm {' '.join(arguments)}\n{done.stderr}"
        if done.returncode == UNREACHABLE:
            raise Unreachable(said)
        assert done.returncode == 0, said
        return done.stdout

    def try_cli(
        self, *arguments: str, role: str | None = "submitter"
    ) -> subprocess.CompletedProcess[str]:
        """The same, whatever comes of it; without a token if there is no role."""
        environment = os.environ | self._reachable()
        if role is not None:
            environment["REMY_FARM_TOKEN"] = self.secret("tokens", role)
        done = subprocess.run(
            [*CLI, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        if done.returncode == UNREACHABLE:
            # A forward to a node that is gone lives on, and leads nowhere.
            self.close()
        return done

    def submit(self, spec: Path, name: str, *flags: str) -> str:
        """A new job; its id."""
        answer = json.loads(self.cli("submit", str(spec), "--name", name, "--json", *flags))
        return str(answer["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        """What `status` says."""
        found: dict[str, Any] = json.loads(self.cli("status", job_id, "--json"))
        return found

    def state(self, job_id: str) -> str:
        return _place_of(self.job(job_id))[0]

    def step(self, job_id: str) -> int:
        return _place_of(self.job(job_id))[1]

    def wait_until_done(self, job_id: str) -> str:
        """Its final state, however long the machine takes; fails if it stands still."""
        return self._follow(job_id, lambda state, _: state in FINAL)[0]

    def wait_for_step(self, job_id: str, step: int) -> None:
        """Until the job has made so many steps, however long; fails if it stands still."""
        state, made = self._follow(job_id, lambda state, made: state in FINAL or made >= step)
        assert made >= step, f"{job_id} is {state} after {made} steps, and not after {step}"

    def go_on(self, job_id: str, steps: int) -> None:
        """So many steps more, from where it is once the coordinator answers, and not its last."""
        _, before = self._follow(job_id, lambda *_: True)
        state, made = self._follow(
            job_id, lambda state, made: state in FINAL or made >= before + steps
        )
        assert state not in FINAL, (
            f"{job_id} ended after {made} steps, {state}, while it was to lose something: "
            "if it succeeded, give it more"
        )

    def fetch(self, job_id: str) -> bytes:
        """The job's RemyCC."""
        path = self._folder / f"{job_id}.json"
        self.cli("fetch", job_id, "-o", str(path))
        return path.read_bytes()

    def workers_of(self, job_id: str) -> list[dict[str, Any]]:
        return self.kubectl.pods(f"{WORKERS},remy-farm/job-id={job_id}")

    @contextmanager
    def forwarded(self, component: str, port: int) -> Iterator[int]:
        """The port here that leads to one of the component's Service."""
        forward, here = self._begin_forward(component, port)
        try:
            assert here is not None, f"no port-forward to the Service of {component}"
            yield here
        finally:
            forward.terminate()
            forward.communicate()

    def close(self) -> None:
        """Ends the port-forward; the next call makes another one."""
        forward, self._forward = self._forward, None
        if forward is not None:
            forward.terminate()
            forward.communicate()

    def _follow(self, job_id: str, enough: Callable[[str, int], bool]) -> tuple[str, int]:
        """Its state and steps, once they are enough; it may take any time that it goes on."""
        place: tuple[str, int] | None = None
        while place is None or not enough(*place):
            place = wait_until(
                lambda last=place: self._place_other_than(job_id, last),  # type: ignore[misc]
                f"{job_id} to go on from {place}",
                seconds=_STANDSTILL_SECONDS,
                every_seconds=_LOOK_SECONDS,
            )
        return place

    def _place_other_than(
        self, job_id: str, last: tuple[str, int] | None
    ) -> tuple[str, int] | None:
        """The state of a job and its step, once they have changed."""
        try:
            place = _place_of(self.job(job_id))
        except Unreachable:
            return None
        return place if place != last else None

    def _reachable(self) -> dict[str, str]:
        if self._forward is None or self._forward.poll() is not None:
            self.close()
            try:
                wait_until(self._try_forward, "a port-forward to the coordinator")
            except AssertionError as error:
                raise Unreachable(str(error)) from error
        return self._environment

    def _try_forward(self) -> bool:
        forward, port = self._begin_forward("coordinator", 7390)
        if port is None:
            return False
        self._forward = forward
        authority = self._folder / "ca.crt"
        authority.write_text(self.secret("tls", "ca.crt"))
        self._environment = {
            "REMY_FARM_COORDINATOR": f"localhost:{port}",
            "REMY_FARM_TLS_CA": str(authority),
            "REMY_FARM_PATIENCE": "10",
        }
        return True

    def _begin_forward(self, component: str, port: int) -> tuple[subprocess.Popen[str], int | None]:
        """kubectl's process, and the port here that it took; None: it could not, and has ended."""
        forward = subprocess.Popen(
            [
                *("kubectl", "-n", self.namespace, "port-forward"),
                *(f"service/{FULL_NAME}-{component}", f":{port}"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert forward.stdout is not None
        match = re.search(r"127\.0\.0\.1:(\d+)", forward.stdout.readline())
        if match is None:
            forward.kill()
            forward.communicate()
        return forward, None if match is None else int(match[1])


def _place_of(job: dict[str, Any]) -> tuple[str, int]:
    """Its state, and the steps that it has made."""
    state = str(job["state"]).removeprefix("JOB_STATE_").upper()
    return state, int(job.get("progress", {}).get("step", 0))


@contextmanager
def installed() -> Iterator[Farm]:
    """A farm in a namespace that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        farm = Farm(f"e2e-{int(time.time())}", Path(folder))
        try:
            farm.install()
            yield farm
        finally:
            with contextlib.suppress(AssertionError):
                farm.remove()
