"""Drives a designer: has its requests evaluated, persists its results, and watches its budgets.

`loop.py` is the run loop, which the command line and the coordinator share. `run.py` runs a design
in one process, and `directory.py` stores it in a directory. The coordinator stores designs in Redis
instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remy_proto.exports import lazy_exports

if TYPE_CHECKING:
    from remy_farm.driver.directory import OutDirectory as OutDirectory
    from remy_farm.driver.progress import DesignObserver as DesignObserver
    from remy_farm.driver.run import DesignResult as DesignResult
    from remy_farm.driver.run import with_budget as with_budget
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, __file__)
