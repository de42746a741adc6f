"""Upgrades of a Helm release on a real API server keep generated Secrets."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from services.tests.kubernetes.control_plane import PROGRAMS, ControlPlane, programs
from tests.chart.rendering import CHART, HELM, needs_helm

pytestmark = [
    needs_helm,
    pytest.mark.skipif(
        bool(set(PROGRAMS) - set(programs())),
        reason="neither KUBEBUILDER_ASSETS nor PATH has a Kubernetes control plane",
    ),
]

config = pytest.importorskip(
    "kubernetes.config", reason="remy-farm-services[kubernetes] is not installed"
)
dynamic = pytest.importorskip("kubernetes.dynamic")


class Release:
    """A release of the chart on an API server without nodes."""

    def __init__(self, kubeconfig: Path) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        self._api = dynamic.DynamicClient(config.new_client_from_config(str(kubeconfig)))

    def close(self) -> None:
        self._api.client.close()

    def upgrade(self, **values: Any) -> None:
        """Installs or upgrades the release."""
        command = ["upgrade", "--install", "farm", str(CHART), "--namespace=research"]
        done = subprocess.run(
            [str(HELM), *command, "--create-namespace", "--values=-"],
            env=self._environment,
            input=json.dumps(values),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def secret(self, component: str) -> dict[str, bytes]:
        kind = self._api.resources.get(api_version="v1", kind="Secret")
        found = kind.get(name=f"farm-remy-farm-{component}", namespace="research").to_dict()
        return {key: base64.b64decode(value) for key, value in found["data"].items()}

    def make_secrets_of_older_chart(self) -> None:
        """Makes the Secrets those of an older chart: a certificate without its authority."""
        kind = self._api.resources.get(api_version="v1", kind="Secret")
        kind.delete(name="farm-remy-farm-authority", namespace="research")
        bare = {"metadata": {"annotations": {"remy-farm/names-sha256": None}}}
        kind.patch(name="farm-remy-farm-tls", namespace="research", body=bare)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    with ControlPlane(tmp_path_factory.mktemp("releases")) as plane:
        made = Release(plane.kubeconfig)
        yield made
        made.close()


def names_of(certificate: bytes) -> set[str]:
    extensions = x509.load_pem_x509_certificate(certificate).extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(names.get_values_for_type(x509.DNSName))


def test_upgrade_keeps_secrets_and_certifies_new_names(release: Release) -> None:
    release.upgrade()
    tls, tokens, password = map(release.secret, ("tls", "tokens", "redis"))

    release.upgrade(coordinator={"logLevel": "debug"})
    assert (release.secret("tls"), release.secret("tokens")) == (tls, tokens)
    assert release.secret("redis") == password

    release.upgrade(tls={"extraNames": ["farm.example"]})
    renamed = release.secret("tls")
    assert names_of(renamed["tls.crt"]) == names_of(tls["tls.crt"]) | {"farm.example"}
    # The authority is the same, so that clients trust the new certificate.
    assert renamed["ca.crt"] == tls["ca.crt"]
    authority, certificate = map(
        x509.load_pem_x509_certificate, (renamed["ca.crt"], renamed["tls.crt"])
    )
    certificate.verify_directly_issued_by(authority)
    key = load_pem_private_key(renamed["tls.key"], None)
    assert key.public_key() == certificate.public_key()
    assert "ca.key" not in renamed


def test_certificate_of_an_older_chart_is_kept_until_its_names_change(release: Release) -> None:
    release.upgrade()
    release.make_secrets_of_older_chart()
    before = release.secret("tls")
    release.upgrade()
    assert release.secret("tls") == before
    release.upgrade(tls={"extraNames": ["elsewhere.example"]})
    assert "elsewhere.example" in names_of(release.secret("tls")["tls.crt"])
