"""Uses a store on a disk that fills up: python -m services.tests.stores.full_disk PATH

A file size limit (RLIMIT_FSIZE) simulates the full disk, and is lifted afterwards. Prints the
error, the state after it, and the state after a retry.
"""

import resource
import signal
import sys
from contextlib import closing

from remy_services.stores.contract import Commit, StoreUnavailable
from remy_services.stores.sqlite import SqliteStore

_LARGE = bytes(300_000)


def main() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(SqliteStore(sys.argv[1])) as store:
        store.create("job", Commit(b"old", [b"one"]))
        token = store.acquire("job", "me")
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, most))
        try:
            store.commit("job", token, 1, Commit(b"new", [b"two"], _LARGE, 1, epochs={0: _LARGE}))
        except StoreUnavailable as error:
            print(f"error: {error}")
        job = store.job("job")
        print(
            f"after error: {job.record!r} {job.revision} {store.snapshots('job')} "
            f"{store.epochs('job')}"
        )
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        store.check()
        store.commit("job", token, 1, Commit(b"new", [b"two"], _LARGE, 1, epochs={0: _LARGE}))
        print(f"after retry: {store.job('job').record!r} {len(store.snapshots('job'))}")


if __name__ == "__main__":
    main()
