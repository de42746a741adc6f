"""Runs a design in its own process: python one_run.py OUT [size=BYTES] [signal=NAME].

Prints a line at the start, a line for every event, and a line on how the run ended. `size` limits
the size of files, which has the effect of a full disk. `signal` makes the process send itself that
signal at the third event.
"""

import resource
import signal
import sys

from library.tests.driver.test_design_run import SPEC
from remy_farm.driver.directory import OutDirectory
from remy_farm.driver.progress import DesignObserver
from remy_farm.driver.run import DesignRun
from remy_farm.files import FileError
from remy_proto.v1 import progress_pb2


class _Announcer(DesignObserver):
    def __init__(self, to_raise: str | None) -> None:
        self._to_raise = to_raise
        self._events = 0

    def started(self, steps: int, *, resumed: bool) -> None:
        print(f"started after {steps} steps", flush=True)

    def event(self, event: progress_pb2.ProgressEvent) -> None:
        print(f"event {event.sequence}", flush=True)
        self._events += 1
        if self._to_raise is not None and self._events == 3:
            signal.raise_signal(signal.Signals[self._to_raise])


def main() -> None:
    out, *arguments = sys.argv[1:]
    options = dict(argument.split("=") for argument in arguments)
    if "size" in options:
        size = int(options["size"])
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        resume = OutDirectory(out).has_run
        run = DesignRun(SPEC, out, resume=resume, checkpoint_seconds=0)
        result = run.run(_Announcer(options.get("signal")))
    except FileError as error:
        print(f"refused: {error}")
    else:
        print("interrupted" if result.reason is None else "finished")


if __name__ == "__main__":
    main()
