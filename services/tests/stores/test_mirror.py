"""The second place for jobs."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import fsspec
import pytest

from remy_services.stores.archive import Backup, export_job, import_job
from remy_services.stores.contract import StoreError
from remy_services.stores.sqlite import SqliteStore
from services.tests.stores.contents import contents
from services.tests.stores.model_store import ModelStore
from services.tests.stores.real_job import make_job

WITHOUT_S3FS = """
import sys
sys.modules["s3fs"] = None
from remy_services.stores.archive import Backup
from remy_services.stores.contract import StoreError
try:
    Backup("s3://bucket/farm")
except StoreError as error:
    print(error)
"""


@pytest.fixture
def store() -> ModelStore:
    store = ModelStore()
    make_job(store, "a")
    return store


@pytest.fixture
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    """An object store in this process."""
    files = fsspec.filesystem("memory")
    yield files
    files.store.clear()


def test_a_directory(tmp_path: Path, store: ModelStore) -> None:
    folder = tmp_path / "to be" / "made"
    mirror = Backup(f"file://{folder}/")

    assert mirror.save(store, "a") is None
    assert mirror.save(store, "a") is None

    assert [each.name for each in folder.iterdir()] == ["a.remyjob"]
    assert (folder / "a.remyjob").read_bytes() == export_job(store, "a")
    with closing(SqliteStore(tmp_path / "restored.db")) as restored:
        import_job(restored, (folder / "a.remyjob").read_bytes())
        assert contents(restored)["a"].events == store.events("a")

    assert mirror.remove("a") is None
    assert mirror.remove("a") is None
    assert list(folder.iterdir()) == []


def test_an_object_store(memory: fsspec.AbstractFileSystem, store: ModelStore) -> None:
    mirror = Backup("memory://bucket/farm")

    assert mirror.save(store, "a") is None
    assert memory.cat_file("/bucket/farm/a.remyjob") == export_job(store, "a")
    assert mirror.remove("a") is None
    assert mirror.remove("a") is None
    assert memory.find("/bucket") == []


def test_what_goes_wrong_is_said_and_not_raised(
    tmp_path: Path, store: ModelStore, memory: fsspec.AbstractFileSystem
) -> None:
    mirror = Backup(f"file://{tmp_path}/farm")
    (tmp_path / "farm").write_text("in the way")
    assert mirror.save(store, "missing") == "there is no job missing in the store"
    for said in (mirror.save(store, "a"), mirror.remove("a")):
        assert said is not None
        assert said.startswith(f"file://{tmp_path}/farm/a.remyjob cannot be ")

    class Down(type(memory)):  # type: ignore[misc]
        protocol = "memory"

        def pipe_file(self, path: str, value: bytes, **options: object) -> None:
            raise RuntimeError("the service\nis down")

    mirror._files = Down()
    assert mirror.save(store, "a") == (
        f"file://{tmp_path}/farm/a.remyjob cannot be written (the service is down)"
    )


@pytest.mark.parametrize("job_id", ["", "..", "../b", "/etc/b", "a/b", "a\0b", "a" * 200])
def test_no_file_is_outside_of_its_folder(tmp_path: Path, job_id: str) -> None:
    mirror = Backup(f"file://{tmp_path}/farm")

    said = mirror.write(job_id, b"archive")

    assert said is not None
    assert "cannot have a file for a job with the id" in said
    assert mirror.remove(job_id) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "has scheme ''; one of file://, s3://, memory:// is needed"),
        ("/var/backups", "has scheme ''"),
        ("http://farm", "has scheme 'http'"),
        ("file://var/backups", "does not name a place"),
        ("file://", "does not name a place"),
        ("s3://", "does not name a place"),
        ("s3://key:hush@bucket", "does not name a place"),
        ("s3://bucket?key=hush", "does not name a place"),
    ],
)
def test_other_urls_are_refused(url: str, message: str) -> None:
    with pytest.raises(StoreError) as raised:
        Backup(url)

    assert message in str(raised.value)
    assert "hush" not in str(raised.value)


def test_an_object_store_needs_its_library() -> None:
    # In a process of its own: fsspec keeps what another test has imported.
    said = subprocess.run(
        [sys.executable, "-c", WITHOUT_S3FS], capture_output=True, text=True, check=True
    ).stdout

    assert said == (
        "a mirror at s3:// needs s3fs, which is not installed: "
        "pip install 'remy-farm-services[s3]'\n"
    )
