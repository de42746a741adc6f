"""Tests mirrors of job archives."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import fsspec
import pytest

from remy_services.stores.archive import Mirror, export_job, import_job
from remy_services.stores.contract import StoreError
from remy_services.stores.sqlite import SqliteStore
from services.tests.stores.contents import contents
from services.tests.stores.model_store import ModelStore
from services.tests.stores.real_job import make_job

WITHOUT_S3FS = """
import sys
sys.modules["s3fs"] = None
from remy_services.stores.archive import Mirror
from remy_services.stores.contract import StoreError
try:
    Mirror("s3://bucket/farm")
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
    """An in-memory object store."""
    files = fsspec.filesystem("memory")
    yield files
    files.store.clear()


def test_a_directory_holds_importable_archives(tmp_path: Path, store: ModelStore) -> None:
    folder = tmp_path / "new" / "folder"
    mirror = Mirror(f"file://{folder}/")

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


def test_an_object_store_holds_archives(
    memory: fsspec.AbstractFileSystem, store: ModelStore
) -> None:
    mirror = Mirror("memory://bucket/farm")

    assert mirror.save(store, "a") is None
    assert memory.cat_file("/bucket/farm/a.remyjob") == export_job(store, "a")
    assert mirror.remove("a") is None
    assert mirror.remove("a") is None
    assert memory.find("/bucket") == []


def test_errors_are_returned_and_not_raised(
    tmp_path: Path, store: ModelStore, memory: fsspec.AbstractFileSystem
) -> None:
    mirror = Mirror(f"file://{tmp_path}/farm")
    (tmp_path / "farm").write_text("in the way")
    assert mirror.save(store, "missing") == "there is no job missing in the store"
    for problem in (mirror.save(store, "a"), mirror.remove("a")):
        assert problem is not None
        assert problem.startswith(f"file://{tmp_path}/farm/a.remyjob cannot be ")

    class Down(type(memory)):  # type: ignore[misc]
        protocol = "memory"

        def pipe_file(self, path: str, value: bytes, **options: object) -> None:
            raise RuntimeError("the service\nis down")

    mirror._files = Down()
    assert mirror.save(store, "a") == (
        f"file://{tmp_path}/farm/a.remyjob cannot be written (the service is down)"
    )


@pytest.mark.parametrize("job_id", ["", "..", "../b", "/etc/b", "a/b", "a\0b", "a" * 200])
def test_unsafe_job_ids_write_no_file(tmp_path: Path, job_id: str) -> None:
    mirror = Mirror(f"file://{tmp_path}/farm")

    problem = mirror.write(job_id, b"archive")

    assert problem is not None
    assert "cannot hold a job with the id" in problem
    assert mirror.remove(job_id) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "has scheme ''; it must be one of file://, s3://, memory://"),
        ("/var/backups", "has scheme ''"),
        ("http://farm", "has scheme 'http'"),
        ("file://var/backups", "must be of the form file:///DIRECTORY or s3://BUCKET/FOLDER"),
        ("file://", "must be of the form file:///DIRECTORY or s3://BUCKET/FOLDER"),
        ("s3://", "must be of the form file:///DIRECTORY or s3://BUCKET/FOLDER"),
        ("s3://key:hush@bucket", "must be of the form file:///DIRECTORY or s3://BUCKET/FOLDER"),
        ("s3://bucket?key=hush", "must be of the form file:///DIRECTORY or s3://BUCKET/FOLDER"),
    ],
)
def test_invalid_urls_are_refused(url: str, message: str) -> None:
    with pytest.raises(StoreError) as raised:
        Mirror(url)

    assert message in str(raised.value)
    assert "hush" not in str(raised.value)


def test_a_missing_s3fs_names_the_extra_to_install() -> None:
    # In a child process, because fsspec caches modules that other tests imported.
    problem = subprocess.run(
        [sys.executable, "-c", WITHOUT_S3FS], capture_output=True, text=True, check=True
    ).stdout

    assert problem == (
        "a mirror at s3:// requires s3fs, which is not installed: "
        "pip install 'remy-farm-services[s3]'\n"
    )
