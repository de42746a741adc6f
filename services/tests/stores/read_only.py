"""Uses a store whose files become read-only: python -m services.tests.stores.read_only PATH

Prints results and errors. To be run as an unprivileged user.
"""

import stat
import sys
from contextlib import closing
from pathlib import Path

from remy_services.stores.contract import CheckpointStore, Commit, StoreError, StoreUnavailable
from remy_services.stores.sqlite import SqliteStore

_READ_ONLY = stat.S_IRUSR


def main() -> None:
    path = Path(sys.argv[1])
    with closing(SqliteStore(path)) as store:
        store.create("job", Commit(b"record", [b"one"]))
        token = store.acquire("job", "me")
    _set_modes(path, _READ_ONLY)
    with closing(SqliteStore(path)) as store:
        print(f"read: {store.job('job').record!r}")
        _print_write_errors(store, token)
        _set_modes(path, _READ_ONLY | stat.S_IWUSR)
        store.check()
        print(f"after chmod: {store.commit('job', token, 1, Commit(b'', [b'two']))}")
    path.parent.chmod(_READ_ONLY | stat.S_IXUSR)
    for name in ("other.db", path.name):
        try:
            SqliteStore(path.parent / name)
        except StoreError as error:
            print(f"{'temporary' if isinstance(error, StoreUnavailable) else 'permanent'}: {error}")


def _set_modes(path: Path, mode: int) -> None:
    """Sets the modes of the file and its write-ahead log."""
    for each in path.parent.glob(f"{path.name}*"):
        each.chmod(mode)


def _print_write_errors(store: CheckpointStore, token: int) -> None:
    for call in (store.check, lambda: store.commit("job", token, 1, Commit(b"", [b"no"]))):
        try:
            call()
        except StoreUnavailable as error:
            print(f"error: {error}")


if __name__ == "__main__":
    main()
