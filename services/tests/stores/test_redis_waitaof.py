"""Tests servers on which only WAITAOF confirms that a write is durable."""

import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from remy_services.stores import open_store
from remy_services.stores.contract import Commit, Conflict, StoreUnavailable
from services.tests.stores.local_redis import PROGRAM, LocalRedis
from services.tests.stores.redis_stand_in import RedisStandIn


def test_every_write_waits_for_waitaof(tmp_path: Path) -> None:
    with RedisStandIn(tmp_path) as server, closing(open_store(server.url)) as store:
        assert store.durability().durable
        assert "WAITAOF" in store.durability().description

        server.requests.clear()
        assert store.acquire("job", "me") == 2
        # The second EVAL is the barrier write, which extends the wait to state that the script only
        # read.
        assert server.requests == [("EVAL",), ("EVAL",), ("WAITAOF", "1", "0", "5000")]

        server.on_disks = 0
        for write in (
            store.check,
            lambda: store.create("job", Commit(b"", [b"one"])),
            lambda: store.acquire("job", "me"),
            lambda: store.commit("job", 1, 1, Commit(b"", [b"two"])),
            lambda: store.prune_snapshots("job", 1, keep=1),
            lambda: store.delete("job", 1),
        ):
            with pytest.raises(StoreUnavailable) as raised:
                write()
            assert str(raised.value) == (
                f"Redis at {server.url} did not force a write to its disk within 5 s"
            )


def _has_waitaof() -> bool:
    text = subprocess.run([PROGRAM, "--version"], stdout=subprocess.PIPE, text=True, check=True)
    version = text.stdout.partition("v=")[2].split()[0]
    return tuple(int(each) for each in version.split(".")[:2]) >= (7, 2)


@pytest.mark.skipif(not _has_waitaof(), reason=f"{PROGRAM} has no WAITAOF; Redis 7.2 does")
def test_a_real_server_has_the_write_on_its_disk(tmp_path: Path) -> None:
    settings = ("--appendonly", "yes", "--appendfsync", "everysec")
    with (
        LocalRedis(tmp_path, *settings) as server,
        closing(open_store(server.url)) as store,
    ):
        store.create("job", Commit(b"", [b"one"]))
        token = store.acquire("job", "me")
        assert store.commit("job", token, 1, Commit(b"new", [b"two"], b"state", 1)) == 2
        with pytest.raises(Conflict):
            store.commit("job", token, 1, Commit(b"new", [b"two"]))
        files = [each.read_bytes() for each in tmp_path.glob("appendonlydir/*.aof")]
        assert any(b"state" in content for content in files)

        server.kill()
        server.start()
        assert store.job("job").record == b"new"
