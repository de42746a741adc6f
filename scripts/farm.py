"""A farm on this machine, from one command until Ctrl-C: `scripts/farm.py [--folder DIR]`.

Coordinator, Redis, two workers, and Prometheus with the alert rules where there is one, all on the
loopback interface, with TLS and tokens as a farm for a team has them. Designs, certificate and
tokens stay in the folder, and the next start takes them up. `docs/operations.md` says more.
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
_PATIENCE_SECONDS = 120.0
# How the coordinator and workers say in their logs where they serve.
_MESSAGE = r'"address": "([^"]+)".*"message": "{}"'


class FarmError(Exception):
    """The farm cannot go on; the message is one sentence for people."""


class Program:
    """A program of the farm, with a log in the folder; Ctrl-C does not reach it."""

    def __init__(self, name: str, log: Path, *command: object) -> None:
        path = os.pathsep.join([str(_BIN), os.environ.get("PATH", "")])
        program = shutil.which(str(command[0]), path=path)
        if program is None:
            raise FarmError(f"{command[0]} is not installed; scripts/bootstrap farm installs it")
        # Linux alone has a program end with the one that started it, however that ends.
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

    def says(self, pattern: str) -> str:
        """The first group of what its log is to match soon. Raises FarmError."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not (found := re.search(pattern, self._log.read_text(errors="replace"))):
            self.must_run()
            if time.monotonic() > deadline:
                raise FarmError(f"{self.name} does not serve: {self._log} may tell why")
            time.sleep(0.05)
        return found.group(1)

    def must_run(self) -> None:
        """Raises FarmError if it has ended."""
        if self._process.poll() is not None:
            *_, last = [f"exit code {self._process.returncode}", *self._log.open(errors="replace")]
            raise FarmError(f"{self.name} has ended: {last.strip()} ({self._log} has all of it)")

    def end(self) -> None:
        """Lets it leave what it has in order."""
        self._process.terminate()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def make_secrets(folder: Path) -> None:
    """A certificate of this machine and a token for each role, unless they are there."""
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
    """The programs, from entering its context to leaving it."""

    def __init__(self, folder: Path, port: int, prometheus_port: int) -> None:
        """Port 0 is any that is free."""
        self._folder = folder
        self._port = port
        self._prometheus_port = prometheus_port
        self._programs: list[Program] = []
        self._ending = ExitStack()
        self.secrets = folder / "secrets"
        #: HOST:PORT, once they serve; None: there is no Prometheus on this machine.
        self.address = ""
        self.prometheus: str | None = None

    def __enter__(self) -> Farm:
        with ExitStack() as undone:
            undone.push(self._ending)
            self._only_one()
            make_secrets(self.secrets)
            socket = self._start_redis()
            scraped = [self._start_coordinator(socket)]
            scraped += [self._start_worker(number) for number in range(1, _WORKERS + 1)]
            self._start_prometheus(scraped)
            undone.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def watch(self) -> NoReturn:
        """Raises FarmError when a program has ended."""
        while True:
            for program in self._programs:
                program.must_run()
            time.sleep(0.2)

    def _only_one(self) -> None:
        lock = self._ending.enter_context((self._folder / "lock").open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FarmError(f"another farm runs in {self._folder}; --folder names one") from error

    def _start(self, name: str, *command: object) -> Program:
        """Is ended before those that were started earlier."""
        program = Program(name, self._folder / f"{name}.log", *command)
        self._ending.callback(program.end)
        self._programs.append(program)
        return program

    def _start_redis(self) -> Path:
        data = self._folder / "redis"
        data.mkdir(exist_ok=True)
        socket = data / "redis.sock"
        listening = ("--port", 0, "--unixsocket", socket, "--dir", data)
        # A commit is acknowledged when it is on the disk.
        durable = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
        self._start("redis", "redis-server", *listening, *durable).says("(eady to accept)")
        return socket

    def _start_coordinator(self, socket: Path) -> str:
        coordinator = self._start(
            "coordinator",
            *("remy-farm", "coordinator", f"--listen=localhost:{self._port}"),
            *("--evaluator=workers", f"--store=unix://{socket}", "--metrics-listen=127.0.0.1:0"),
            *(f"--tls-cert={self.secrets / 'tls.crt'}", f"--tls-key={self.secrets / 'tls.key'}"),
            f"--tokens-file={self.secrets / 'tokens.yaml'}",
        )
        self.address = coordinator.says(_MESSAGE.format("serving"))
        return coordinator.says(_MESSAGE.format("serving metrics"))

    def _start_worker(self, number: int) -> str:
        worker = self._start(
            f"worker-{number}",
            *("remy-worker", f"--coordinator={self.address}", "--metrics-listen=127.0.0.1:0"),
            *(f"--tls-ca={self.secrets / 'tls.crt'}", f"--token-file={self.secrets / 'worker'}"),
            f"--threads={max(1, len(os.sched_getaffinity(0)) // _WORKERS)}",
        )
        return worker.says(_MESSAGE.format("serving metrics"))

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
        self.prometheus = prometheus.says(r'"Listening on" address=(\S+)')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "farm")
    parser.add_argument("--port", type=int, default=7390, help="of the coordinator; 0: any")
    parser.add_argument("--prometheus-port", type=int, default=9090, help="0: any")
    given = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    given.folder.mkdir(parents=True, exist_ok=True)
    # Designs, keys and tokens are nobody else's.
    os.umask(0o077)
    try:
        with Farm(given.folder.resolve(), given.port, given.prometheus_port) as farm:
            print(_notes(farm), flush=True)
            farm.watch()
    except FarmError as error:
        print(f"make farm: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("The farm has ended; its designs stay.")
    return 0


def _notes(farm: Farm) -> str:
    watched = "prometheus is not installed" if farm.prometheus is None else ""
    return f"""\
The farm serves on {farm.address}, until Ctrl-C. In another shell:

  export REMY_FARM_COORDINATOR={farm.address}
  export REMY_FARM_TLS_CA={farm.secrets / "tls.crt"}
  export REMY_FARM_TOKEN_FILE={farm.secrets / "submitter"}
  {_BIN / "remy-farm"} submit examples/demo.yaml --watch

Prometheus, with the alert rules: {watched or f"http://{farm.prometheus}"}"""


def _interrupted(*_: Any) -> NoReturn:
    # Once is enough: programs that end in order must not be left behind.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
