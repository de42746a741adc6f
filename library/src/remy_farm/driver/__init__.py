"""Driving a designer: one run loop, and the directory of a design on this machine.

`loop` carries requests to an evaluator and outcomes back, whatever keeps the design; `run` does so
in one process, with files, clocks and signals around. The other sink, a store, is the
coordinator's.
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
