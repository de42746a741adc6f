"""A Kubernetes control plane without nodes: etcd, API server, controllers and scheduler.

Suffices to test the launcher, except for running pods. The programs are searched in
`KUBEBUILDER_ASSETS`, like in Kubernetes' own test tools, and in PATH.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.waiting import wait_until

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_CONTROLLERS = (
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
)


def programs() -> dict[str, str]:
    """Returns the paths of the available programs."""
    path = os.pathsep.join([os.environ.get("KUBEBUILDER_ASSETS", ""), os.environ["PATH"]])
    found = {name: shutil.which(name, path=path) for name in PROGRAMS}
    return {name: each for name, each in found.items() if each is not None}


class ControlPlane:
    """Runs a control plane on the loopback interface while the context is open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs = programs()
        self._ending = ExitStack()
        self._etcd, self._etcd_peers, self._port = _free_port(), _free_port(), _free_port()
        self._token = secrets.token_hex(16)
        self._certificate = folder / "pki" / "apiserver.crt"
        #: Kubeconfig of an administrator.
        self.kubeconfig = folder / "kubeconfig"

    def __enter__(self) -> ControlPlane:
        with ExitStack() as undone:
            undone.push(self._ending.__exit__)
            self._start_store()
            self.start_api_server()
            self._start_controllers()
            undone.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    @property
    def store_url(self) -> str:
        """URL of etcd."""
        return f"http://127.0.0.1:{self._etcd}"

    def stop_api_server(self) -> None:
        """Kills the API server."""
        self._api_server.kill()
        self._api_server.wait()

    def start_api_server(self) -> None:
        """Starts the API server at the same address, with the stored objects."""
        key, public = self._signing_keys()
        tokens = self._folder / "tokens.csv"
        tokens.write_text(f"{self._token},admin,admin,system:masters\n")
        self._api_server = self._run(
            "kube-apiserver",
            {
                "etcd-servers": self.store_url,
                "bind-address": "127.0.0.1",
                # An unused documentation address; without a default route the server cannot choose
                # one itself.
                "advertise-address": "192.0.2.1",
                "secure-port": self._port,
                "cert-dir": self._certificate.parent,
                "service-cluster-ip-range": "10.96.0.0/24",
                "service-account-key-file": public,
                "service-account-signing-key-file": key,
                "service-account-issuer": "https://kubernetes.default.svc",
                "authorization-mode": "RBAC",
                "token-auth-file": tokens,
            },
        )
        wait_until(self._is_ready, "the API server")
        self._write_kubeconfig()

    def _start_store(self) -> None:
        peers = f"http://127.0.0.1:{self._etcd_peers}"
        self._run(
            "etcd",
            {
                "data-dir": self._folder / "etcd",
                "listen-client-urls": self.store_url,
                "advertise-client-urls": self.store_url,
                "listen-peer-urls": peers,
                "initial-advertise-peer-urls": peers,
                "initial-cluster": f"default={peers}",
            },
        )

    def _start_controllers(self) -> None:
        self._run(
            "kube-controller-manager",
            {
                "kubeconfig": self.kubeconfig,
                "controllers": ",".join(_CONTROLLERS),
                "leader-elect": "false",
                "secure-port": 0,
            },
        )
        self._run(
            "kube-scheduler",
            {"kubeconfig": self.kubeconfig, "leader-elect": "false", "secure-port": 0},
        )

    def _run(self, name: str, options: Mapping[str, object]) -> subprocess.Popen[bytes]:
        log = self._ending.enter_context((self._folder / f"{name}.log").open("ab"))
        command = [self._programs[name], *(f"--{key}={value}" for key, value in options.items())]
        process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)
        self._ending.callback(process.wait)
        self._ending.callback(process.kill)
        return process

    def _signing_keys(self) -> tuple[Path, Path]:
        private, public = self._folder / "accounts.key", self._folder / "accounts.pub"
        if not private.exists():
            key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            pem = serialization.Encoding.PEM
            private.write_bytes(
                key.private_bytes(
                    pem,
                    serialization.PrivateFormat.TraditionalOpenSSL,
                    serialization.NoEncryption(),
                )
            )
            public.write_bytes(
                key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
            )
        return private, public

    def _is_ready(self) -> bool:
        if not self._certificate.exists():
            return False
        request = urllib.request.Request(
            f"https://127.0.0.1:{self._port}/readyz",
            headers={"Authorization": f"Bearer {self._token}"},
        )
        try:
            context = ssl.create_default_context(cafile=self._certificate)
            with urllib.request.urlopen(request, context=context, timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def _write_kubeconfig(self) -> None:
        cluster = {
            "server": f"https://127.0.0.1:{self._port}",
            "certificate-authority": str(self._certificate),
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self._token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(config))


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
