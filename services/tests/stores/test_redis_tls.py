"""Tests Redis over TLS."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from remy_services.stores import open_store
from remy_services.stores.contract import Commit, StoreUnavailable
from services.tests.stores.certificates import Certificates, make_certificates
from services.tests.stores.local_redis import DURABLE, LocalRedis


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def server(tmp_path: Path, certificates: Certificates) -> Iterator[LocalRedis]:
    """A server that requires client certificates."""
    flags = (*DURABLE, *certificates.settings, "--tls-auth-clients", "yes")
    with LocalRedis(tmp_path, *flags, listens="--tls-port") as server:
        yield server


def test_mutual_tls_succeeds(server: LocalRedis, certificates: Certificates) -> None:
    url = (
        f"rediss://127.0.0.1:{server.port}?tls_ca={certificates.authority}"
        f"&tls_cert={certificates.certificate}&tls_key={certificates.key}"
    )
    with closing(open_store(url)) as store:
        store.create("job", Commit(b"record", [b"one"]))
        assert store.job("job").record == b"record"


def test_untrusted_connections_fail(
    server: LocalRedis, certificates: Certificates, tmp_path: Path
) -> None:
    address = f"127.0.0.1:{server.port}"
    for url, message in (
        (f"rediss://{address}", "certificate verify failed"),
        (f"rediss://{address}?tls_ca={certificates.authority}", "cannot be reached"),
        (f"redis://{address}", "cannot be reached"),
        (f"rediss://{address}?tls_ca={tmp_path}/none.pem", "no such file or directory"),
        (f"rediss://{address}?tls_ca={certificates.key}", "cannot be reached"),
    ):
        with pytest.raises(StoreUnavailable) as raised:
            open_store(url)
        assert message in str(raised.value)
