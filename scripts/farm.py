"""Runs a farm on this machine until Ctrl-C: `scripts/farm.py [--folder DIR]`.

It starts a coordinator, Redis, two workers and, if it is installed, Prometheus with the alert
rules. All of them listen on the loopback interface only, with TLS and tokens like a farm for a
team. Designs, certificate and tokens stay in the folder, and the next start uses them again.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import yaml

ROOT = Path(__file__).resolve().parent.parent
_BIN = Path(sys.executable).parent
_ROLES = ("viewer", "submitter", "worker", "admin")
_WORKERS = 2
_START_TIMEOUT_SECONDS = 120.0
# The line in the logs of coordinator and workers that has the address on which they listen.
_MESSAGE = r'"address": "([^"]+)".*"message": "{}"'


class FarmError(Exception):
    """The farm cannot start or continue; the message is one sentence for the user."""


class Program:
    """A process of the farm with its log file. It runs in a session of its own, without SIGINT."""

    def __init__(self, name: str, log: Path, *command: object) -> None:
        path = os.pathsep.join([str(_BIN), os.environ.get("PATH", "")])
        program = shutil.which(str(command[0]), path=path)
        if program is None:
            raise FarmError(f"{command[0]} is not installed; scripts/bootstrap farm installs it")
        # On Linux the process is terminated if this one dies, whatever the cause.
        guard = ["setpriv", "--pdeathsig", "TERM", "--"] if shutil.which("setpriv") else []
        self.name = name
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*guard, program, *map(str, command[1:])],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def wait_for_log(self, pattern: str) -> str:
        """Waits until the log matches the pattern; returns its first group.

        Raises FarmError if the process ends, or if the log does not match in time.
        """
        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        while not (match := re.search(pattern, self._log.read_text(errors="replace"))):
            self.check_running()
            if time.monotonic() > deadline:
                raise FarmError(f"{self.name} does not serve; see its log, {self._log}")
            time.sleep(0.05)
        return match.group(1)

    def check_running(self) -> None:
        """Raises FarmError if the process has ended."""
        if self._process.poll() is not None:
            *_, last = [f"exit code {self._process.returncode}", *self._log.open(errors="replace")]
            raise FarmError(f"{self.name} has ended: {last.strip()} (see its log, {self._log})")

    def terminate(self) -> None:
        """Asks the process to shut down, and kills it if that takes too long."""
        self._process.terminate()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def make_secrets(folder: Path) -> None:
    """Creates a self-signed certificate and a token per role, unless they exist."""
    folder.mkdir(exist_ok=True)
    if not (folder / "tls.crt").exists():
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-nodes", "-days", "3650", "-subj", "/CN=remy-farm"),
                *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
                *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
                *("-keyout", folder / "tls.key", "-out", folder / "tls.crt"),
            ],
            check=True,
            capture_output=True,
        )
    for role in _ROLES:
        if not (folder / role).exists():
            (folder / role).write_text(secrets.token_hex(20))
    tokens = [{"name": role, "role": role, "file": role} for role in _ROLES]
    (folder / "tokens.yaml").write_text(yaml.safe_dump({"tokens": tokens}))


class Farm:
    """The farm's processes. Entering the context starts them, leaving it terminates them."""

    def __init__(self, folder: Path, port: int, prometheus_port: int) -> None:
        """Port 0 chooses a free port."""
        self._folder = folder
        self._port = port
        self._prometheus_port = prometheus_port
        self._programs: list[Program] = []
        self._cleanup = ExitStack()
        self.secrets = folder / "secrets"
        #: The coordinator's HOST:PORT, once it serves.
        self.address = ""
        #: HOST:PORT of Prometheus; None if it is not installed.
        self.prometheus: str | None = None

    def __enter__(self) -> Farm:
        with ExitStack() as on_error:
            on_error.push(self._cleanup)
            self._lock_folder()
            make_secrets(self.secrets)
            socket = self._start_redis()
            scraped = [self._start_coordinator(socket)]
            scraped += [self._start_worker(number) for number in range(1, _WORKERS + 1)]
            self._start_prometheus(scraped)
            on_error.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def watch(self) -> NoReturn:
        """Waits until a process ends, and raises FarmError then."""
        while True:
            for program in self._programs:
                program.check_running()
            time.sleep(0.2)

    def _lock_folder(self) -> None:
        lock = self._cleanup.enter_context((self._folder / "lock").open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FarmError(
                f"another farm runs in {self._folder}; use another directory with --folder"
            ) from error

    def _start(self, name: str, *command: object) -> Program:
        """Starts a process; processes are terminated in the reverse order of their start."""
        program = Program(name, self._folder / f"{name}.log", *command)
        self._cleanup.callback(program.terminate)
        self._programs.append(program)
        return program

    def _start_redis(self) -> Path:
        data = self._folder / "redis"
        data.mkdir(exist_ok=True)
        socket = data / "redis.sock"
        listening = ("--port", 0, "--unixsocket", socket, "--dir", data)
        # Redis acknowledges a write only when it is on the disk.
        durable = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
        self._start("redis", "redis-server", *listening, *durable).wait_for_log("(eady to accept)")
        return socket

    def _start_coordinator(self, socket: Path) -> str:
        coordinator = self._start(
            "coordinator",
            *("remy-farm", "coordinator", f"--listen=localhost:{self._port}"),
            *("--evaluator=workers", f"--store=unix://{socket}", "--metrics-listen=127.0.0.1:0"),
            *(f"--tls-cert={self.secrets / 'tls.crt'}", f"--tls-key={self.secrets / 'tls.key'}"),
            f"--tokens-file={self.secrets / 'tokens.yaml'}",
        )
        self.address = coordinator.wait_for_log(_MESSAGE.format("serving"))
        return coordinator.wait_for_log(_MESSAGE.format("serving metrics"))

    def _start_worker(self, number: int) -> str:
        worker = self._start(
            f"worker-{number}",
            *("remy-worker", f"--coordinator={self.address}", "--metrics-listen=127.0.0.1:0"),
            *(f"--tls-ca={self.secrets / 'tls.crt'}", f"--token-file={self.secrets / 'worker'}"),
            f"--threads={max(1, len(os.sched_getaffinity(0)) // _WORKERS)}",
        )
        return worker.wait_for_log(_MESSAGE.format("serving metrics"))

    def _start_prometheus(self, scraped: list[str]) -> None:
        if shutil.which("prometheus") is None:
            return
        targets = {"targets": scraped, "labels": {"namespace": "local", "farm": "local"}}
        settings = {
            "global": {"scrape_interval": "5s"},
            "rule_files": [str(ROOT / "dashboards" / "rules" / "*.yaml")],
            "scrape_configs": [{"job_name": "remy-farm", "static_configs": [targets]}],
        }
        configuration = self._folder / "prometheus.yaml"
        configuration.write_text(yaml.safe_dump(settings))
        prometheus = self._start(
            "prometheus",
            *("prometheus", f"--config.file={configuration}"),
            f"--storage.tsdb.path={self._folder / 'prometheus'}",
            f"--web.listen-address=127.0.0.1:{self._prometheus_port}",
        )
        self.prometheus = prometheus.wait_for_log(r'"Listening on" address=(\S+)')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "farm")
    parser.add_argument(
        "--port", type=int, default=7390, help="the coordinator's port; 0 chooses a free one"
    )
    parser.add_argument(
        "--prometheus-port", type=int, default=9090, help="Prometheus' port; 0 chooses a free one"
    )
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    # Other users must not read designs, keys and tokens.
    os.umask(0o077)
    try:
        with Farm(arguments.folder.resolve(), arguments.port, arguments.prometheus_port) as farm:
            print(_notes(farm), flush=True)
            farm.watch()
    except FarmError as error:
        print(f"make farm: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("The farm has stopped; its designs are kept.")
    return 0


def _notes(farm: Farm) -> str:
    prometheus = "it is not installed" if farm.prometheus is None else f"http://{farm.prometheus}"
    return f"""\
The farm serves on {farm.address} until Ctrl-C. In another shell:

  export REMY_FARM_COORDINATOR={farm.address}
  export REMY_FARM_TLS_CA={farm.secrets / "tls.crt"}
  export REMY_FARM_TOKEN_FILE={farm.secrets / "submitter"}
  {_BIN / "remy-farm"} submit examples/demo.yaml --watch

Prometheus with the alert rules: {prometheus}"""


def _interrupt(*_: Any) -> NoReturn:
    # Later signals are ignored, so that they cannot interrupt the orderly shutdown.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
