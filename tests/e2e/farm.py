"""Installs a farm on the cluster with Helm and uses it by the command line and a port-forward."""

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
#: The time between two polls. Each poll starts a process, which takes CPU time from the workers.
_POLL_SECONDS = 1.0
#: A design that makes no step for this long is considered stuck, even on a busy machine.
_STANDSTILL_SECONDS = 600.0
FINAL = ("SUCCEEDED", "CANCELLED", "FAILED")


class Unreachable(AssertionError):
    """No coordinator answers; it may be moving to another node."""


class Farm:
    """A release in its own namespace, and a client that reaches it."""

    def __init__(self, namespace: str, folder: Path) -> None:
        self.namespace = namespace
        self.kubectl = Kubectl(namespace)
        self._folder = folder
        self._forward: subprocess.Popen[str] | None = None
        self._environment: dict[str, str] = {}

    def install(self, values: Mapping[str, Any] | None = None, chart: Path = CHART) -> None:
        """Installs or upgrades the release and waits until it is ready."""
        command = ["helm", "upgrade", "--install", RELEASE, str(chart), "-n", self.namespace]
        command += ["--create-namespace", "-f", str(values_file()), "-f", "-"]
        run([*command, "--wait", "--timeout", "5m"], stdin=json.dumps(values or {}), seconds=400)
        self.close()

    def uninstall(self) -> None:
        self.close()
        run(["helm", "uninstall", RELEASE, "-n", self.namespace, "--wait", "--timeout", "3m"])

    def remove(self) -> None:
        """Uninstalls the release and deletes the namespace."""
        self.close()
        run(["kubectl", "delete", "namespace", self.namespace, "--ignore-not-found"])
        classes = [f"{self.namespace}-{FULL_NAME}-{each}" for each in ("coordinator", "workers")]
        run(["kubectl", "delete", "priorityclass", *classes, "--ignore-not-found"])

    def test(self) -> str:
        """Runs `helm test` and returns its output."""
        command = ["helm", "test", RELEASE, "-n", self.namespace, "--logs", "--timeout", "5m"]
        output = run(command, seconds=400)
        # The test pod is not removed with the release, because its log is read after the test.
        self.kubectl("delete", "pod", f"{FULL_NAME}-test")
        return output

    def secret(self, name: str, key: str) -> str:
        found = self.kubectl("get", "secret", f"{FULL_NAME}-{name}", "-o", "json")
        return base64.b64decode(json.loads(found)["data"][key]).decode()

    def cli(self, *arguments: str, role: str = "submitter") -> str:
        """Runs `remy-farm` with a token of this role, which must succeed; returns its output."""
        done = self.try_cli(*arguments, role=role)
        failure = f"remy-farm {' '.join(arguments)}\n{done.stderr}"
        if done.returncode == UNREACHABLE:
            raise Unreachable(failure)
        assert done.returncode == 0, failure
        return done.stdout

    def try_cli(
        self, *arguments: str, role: str | None = "submitter"
    ) -> subprocess.CompletedProcess[str]:
        """Runs `remy-farm` with a token of this role, or without one; the command may fail."""
        environment = os.environ | self._forwarded_environment()
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
            # A port-forward to a lost node keeps running without working.
            self.close()
        return done

    def submit(self, spec: Path, name: str, *flags: str) -> str:
        """Submits a job and returns its ID."""
        answer = json.loads(self.cli("submit", str(spec), "--name", name, "--json", *flags))
        return str(answer["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        """Returns the output of `status --json`."""
        found: dict[str, Any] = json.loads(self.cli("status", job_id, "--json"))
        return found

    def state(self, job_id: str) -> str:
        return _progress_of(self.job(job_id))[0]

    def step(self, job_id: str) -> int:
        return _progress_of(self.job(job_id))[1]

    def wait_until_done(self, job_id: str) -> str:
        """Waits for the job's end and returns its state; fails if the job makes no progress."""
        return self._follow(job_id, lambda state, _: state in FINAL)[0]

    def wait_for_step(self, job_id: str, step: int) -> None:
        """Waits until the job has made this many steps; fails if the job makes no progress."""
        state, made = self._follow(job_id, lambda state, made: state in FINAL or made >= step)
        assert made >= step, f"{job_id} ended as {state} after {made} steps, before step {step}"

    def wait_for_more_steps(self, job_id: str, steps: int) -> None:
        """Waits for this many more steps once the coordinator answers; the job must not end."""
        _, before = self._follow(job_id, lambda *_: True)
        state, made = self._follow(
            job_id, lambda state, made: state in FINAL or made >= before + steps
        )
        assert state not in FINAL, (
            f"{job_id} ended as {state} after {made} steps, but the test needs a running job: "
            "if it succeeded, give it more steps"
        )

    def fetch(self, job_id: str) -> bytes:
        """Returns the job's RemyCC."""
        path = self._folder / f"{job_id}.json"
        self.cli("fetch", job_id, "-o", str(path))
        return path.read_bytes()

    def workers_of(self, job_id: str) -> list[dict[str, Any]]:
        return self.kubectl.pods(f"{WORKERS},remy-farm/job-id={job_id}")

    @contextmanager
    def forwarded(self, component: str, port: int) -> Iterator[int]:
        """Forwards a local port to a port of the component's Service; yields the local port."""
        forward, local_port = self._begin_forward(component, port)
        try:
            assert local_port is not None, f"no port-forward to the Service of {component}"
            yield local_port
        finally:
            forward.terminate()
            forward.communicate()

    def close(self) -> None:
        """Ends the port-forward; the next call starts another one."""
        forward, self._forward = self._forward, None
        if forward is not None:
            forward.terminate()
            forward.communicate()

    def _follow(self, job_id: str, is_enough: Callable[[str, int], bool]) -> tuple[str, int]:
        """Polls the job until `is_enough` is true of its state and step, and returns these.

        There is no time limit while the job makes progress.
        """
        progress: tuple[str, int] | None = None
        while progress is None or not is_enough(*progress):
            described = "to be reported" if progress is None else f"to change from {progress}"
            progress = wait_until(
                lambda last=progress: self._changed_progress(job_id, last),  # type: ignore[misc]
                f"the progress of {job_id} {described}",
                seconds=_STANDSTILL_SECONDS,
                every_seconds=_POLL_SECONDS,
            )
        return progress

    def _changed_progress(
        self, job_id: str, last: tuple[str, int] | None
    ) -> tuple[str, int] | None:
        """Returns the job's state and step if they differ from `last`, else None."""
        try:
            progress = _progress_of(self.job(job_id))
        except Unreachable:
            return None
        return progress if progress != last else None

    def _forwarded_environment(self) -> dict[str, str]:
        """Returns the variables by which a client finds the port-forward; starts it if needed."""
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
        ca_certificate = self._folder / "ca.crt"
        ca_certificate.write_text(self.secret("tls", "ca.crt"))
        self._environment = {
            "REMY_FARM_COORDINATOR": f"localhost:{port}",
            "REMY_FARM_TLS_CA": str(ca_certificate),
            "REMY_FARM_PATIENCE": "10",
        }
        return True

    def _begin_forward(self, component: str, port: int) -> tuple[subprocess.Popen[str], int | None]:
        """Starts a port-forward; returns its process and local port, which is None if it failed."""
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


def _progress_of(job: dict[str, Any]) -> tuple[str, int]:
    """Returns a job's state and step."""
    state = str(job["state"]).removeprefix("JOB_STATE_").upper()
    return state, int(job.get("progress", {}).get("step", 0))


@contextmanager
def installed() -> Iterator[Farm]:
    """Installs a farm in a new namespace, which is deleted at the end of the context."""
    with tempfile.TemporaryDirectory() as folder:
        farm = Farm(f"e2e-{int(time.time())}", Path(folder))
        try:
            farm.install()
            yield farm
        finally:
            with contextlib.suppress(AssertionError):
                farm.remove()
