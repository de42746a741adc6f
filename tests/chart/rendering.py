"""Renders the chart with the real Helm."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.programs import ROOT

CHART = ROOT / "charts" / "remy-farm"
EVERYTHING = CHART / "ci" / "everything-values.yaml"

#: The machine's Helm, or the one that `scripts/install_helm` has built; None if there is neither.
HELM = shutil.which(
    "helm", path=os.pathsep.join([os.environ.get("PATH", ""), str(Path(sys.executable).parent)])
)

needs_helm = pytest.mark.skipif(
    HELM is None,
    reason="Helm is not installed; scripts/install_helm reports why",
)


def objects_in(text: str) -> list[dict[str, Any]]:
    """Parses Kubernetes objects in YAML, with the C parser because CRDs are large."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [each for each in yaml.load_all(text, Loader=loader) if each]


class Rendered:
    """The objects of a release."""

    def __init__(self, text: str) -> None:
        self.objects = objects_in(text)

    def kinds(self) -> set[str]:
        return {each["kind"] for each in self.objects}

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.objects if each["kind"] == kind]

    def one(self, kind: str, ending: str = "") -> dict[str, Any]:
        found = [each for each in self.all(kind) if each["metadata"]["name"].endswith(ending)]
        assert len(found) == 1, f"{len(found)} {kind} whose names end in {ending!r}"
        return found[0]

    def pods(self) -> dict[str, dict[str, Any]]:
        """Returns the pod specifications, by kind and name of the object that creates the pod."""
        found = {
            f"{each['kind']}/{each['metadata']['name']}": each["spec"]["template"]["spec"]
            for each in self.objects
            if "template" in each.get("spec", {})
        }
        found |= {f"Pod/{each['metadata']['name']}": each["spec"] for each in self.all("Pod")}
        if self.has_launcher():
            found["Job/launcher"] = self.launcher()["template"]["spec"]["template"]["spec"]
        return found

    def has_launcher(self) -> bool:
        return any("launcher.yaml" in each.get("data", {}) for each in self.all("ConfigMap"))

    def launcher(self) -> dict[str, Any]:
        """Returns the launcher's settings."""
        text = self.one("ConfigMap", "-launcher")["data"]["launcher.yaml"]
        loaded: dict[str, Any] = yaml.safe_load(text)
        return loaded


def render(values: Mapping[str, Any] | None = None, *flags: str) -> Rendered:
    """Renders the chart with these values. The test fails if Helm reports an error."""
    done = template(json.dumps(values or {}), *flags)
    assert done.returncode == 0, done.stderr
    return Rendered(done.stdout)


def refusal(values: Mapping[str, Any]) -> str:
    """Returns Helm's error message for invalid values."""
    done = template(json.dumps(values))
    assert done.returncode != 0, "Helm accepts them"
    return done.stderr


@functools.cache
def template(values: str, *flags: str) -> subprocess.CompletedProcess[str]:
    options = ["--namespace", "research", *flags, "--values", "-"]
    return helm("template", "farm", str(CHART), *options, stdin=values)


def helm(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs Helm and captures its output."""
    assert HELM is not None
    return subprocess.run(
        [HELM, *arguments], input=stdin, capture_output=True, text=True, check=False
    )
