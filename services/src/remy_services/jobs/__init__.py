"""The life of a design job as a state machine: states, transitions, progress. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remy_proto.exports import lazy_exports

if TYPE_CHECKING:
    from remy_services.jobs.history import EPOCH_COLUMNS as EPOCH_COLUMNS
    from remy_services.jobs.history import STEP_COLUMNS as STEP_COLUMNS
    from remy_services.jobs.history import epoch_rows as epoch_rows
    from remy_services.jobs.history import step_rows as step_rows
    from remy_services.jobs.progress import QueueLimits as QueueLimits
    from remy_services.jobs.wording import history_sentence as history_sentence
    from remy_services.jobs.wording import job_tree as job_tree
    from remy_services.jobs.wording import message_tree as message_tree
    from remy_services.jobs.wording import state as state
    from remy_services.jobs.wording import state_name as state_name
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, __file__)
