"""Runs kubectl and helm like a user."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


def run(command: Sequence[str], *, stdin: str | None = None, seconds: float = 300.0) -> str:
    """Runs a command and returns its output. If it fails, so does the test, with the output."""
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, timeout=seconds
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Kubectl:
    """kubectl in one namespace."""

    namespace: str

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        return run(["kubectl", "-n", self.namespace, *arguments], stdin=stdin)

    def objects(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        """Returns the objects of a kind that match the selector."""
        chosen = ["-l", selector] if selector else []
        found: list[dict[str, Any]] = json.loads(self("get", kind, *chosen, "-o", "json"))["items"]
        return found

    def pods(self, selector: str) -> list[dict[str, Any]]:
        """Returns the running pods that are not being deleted."""
        return [
            pod
            for pod in self.objects("pods", selector)
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]

    def node_of(self, selector: str) -> str:
        """Returns the node of the only pod that matches."""
        (pod,) = self.pods(selector)
        return str(pod["spec"]["nodeName"])

    def exists(self, kind: str, name: str) -> bool:
        return bool(self("get", kind, name, "--ignore-not-found", "-o", "name").strip())


def nodes(label: str = "") -> dict[str, bool]:
    """Returns the nodes with the label, and whether each is ready."""
    chosen = ["-l", label] if label else []
    text = run(["kubectl", "get", "nodes", *chosen, "-o", "json"])
    return {
        node["metadata"]["name"]: any(
            each["type"] == "Ready" and each["status"] == "True"
            for each in node["status"]["conditions"]
        )
        for node in json.loads(text)["items"]
    }
