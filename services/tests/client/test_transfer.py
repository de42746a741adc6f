import hashlib

import pytest

from remy_farm.files import FileError
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_services.client.connection import Connection
from remy_services.client.design_client import export_job, import_job
from remy_services.client.status import ServerFailed
from services.tests.client.scripted_service import ScriptedService, retry_later

ARCHIVE = bytes(range(256)) * 3000
SEALED = job_pb2.SealedJobArchive(
    archive=ARCHIVE, sha256=hashlib.sha256(ARCHIVE).digest()
).SerializeToString()


def parts(content: bytes, size: int) -> list[messages.ExportJobResponse]:
    return [
        messages.ExportJobResponse(part=content[start : start + size])
        for start in range(0, len(content), size)
    ]


def test_an_interrupted_export_is_restarted(
    service: ScriptedService, connection: Connection
) -> None:
    whole = parts(SEALED, 100_000)
    service.script("ExportJob", [*whole[:3], retry_later(0.001)], [*whole])
    assert export_job(connection, "demo") == SEALED
    assert len(service.requests) == 2


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (SEALED[:-1], "is not an exported job"),
        (SEALED.replace(b"\x07\x08", b"\x07\x07", 1), "is corrupt"),
        (b"", "is not an exported job"),
    ],
    ids=["truncated", "a bit", "nothing"],
)
def test_corrupt_archives_are_neither_exported_nor_imported(
    content: bytes, problem: str, service: ScriptedService, connection: Connection
) -> None:
    service.script("ExportJob", [*parts(content, 100_000)])
    with pytest.raises(ServerFailed, match=problem):
        export_job(connection, "demo")
    with pytest.raises(FileError, match=rf"^demo\.job {problem}"):
        import_job(connection, content, source="demo.job")
