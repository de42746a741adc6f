"""Runs a Prometheus server with the project's rules."""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import yaml

from dashboards.prometheus import Prometheus
from services.tests.stores.local_redis import free_port
from tests.observability.programs import prometheus
from tests.observability.queries import Tree, rule_files
from tests.waiting import wait_until

#: Short, so that rates are available within a short test.
SCRAPE_SECONDS = 1.0


class LocalPrometheus:
    """A Prometheus server with its data in a folder; it runs within the context."""

    def __init__(
        self, folder: Path, scrape_configs: Sequence[Tree], rules: Sequence[Path] | None = None
    ) -> None:
        """`rules` are the project's by default; they are evaluated at each scrape."""
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        interval = f"{SCRAPE_SECONDS:g}s"
        settings = {
            "global": {"scrape_interval": interval, "evaluation_interval": interval},
            "rule_files": [
                str(_paced(path, interval, folder))
                for path in (rule_files() if rules is None else rules)
            ],
            "scrape_configs": list(scrape_configs),
        }
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(settings))

    def __enter__(self) -> Prometheus:
        self._launch()
        try:
            wait_until(self._is_ready)
        except BaseException:
            self._kill()
            raise
        return Prometheus(self._address)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._kill()

    @property
    def _address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def _log(self) -> Path:
        return self._folder / "prometheus.log"

    def _launch(self) -> None:
        self._port = free_port()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    prometheus(),
                    f"--config.file={self._folder / 'prometheus.yaml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                ],
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )

    def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            # Another process may have taken the port first.
            assert "address already in use" in self._log.read_text(), self._log.read_text()
            self._launch()
        try:
            with urllib.request.urlopen(f"{self._address}/-/ready", timeout=60) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, ConnectionError):
            return False

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _paced(rules: Path, interval: str, folder: Path) -> Path:
    """Copies a file of rules and sets the evaluation interval of its groups."""
    tree = yaml.safe_load(rules.read_text(encoding="utf-8"))
    for group in tree["groups"]:
        group["interval"] = interval
    copy = folder / f"paced-{rules.name}"
    copy.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return copy
