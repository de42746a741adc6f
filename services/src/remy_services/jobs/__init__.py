"""State machine of a job: states, transitions, progress and formatting. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remy_proto.exports import lazy_exports

if TYPE_CHECKING:
    from remy_services.jobs.formatting import describe_history as describe_history
    from remy_services.jobs.formatting import describe_state as describe_state
    from remy_services.jobs.formatting import job_dict as job_dict
    from remy_services.jobs.formatting import message_dict as message_dict
    from remy_services.jobs.formatting import state_name as state_name
    from remy_services.jobs.history import EPOCH_COLUMNS as EPOCH_COLUMNS
    from remy_services.jobs.history import STEP_COLUMNS as STEP_COLUMNS
    from remy_services.jobs.history import epoch_rows as epoch_rows
    from remy_services.jobs.history import step_rows as step_rows
    from remy_services.jobs.progress import QueueLimits as QueueLimits
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, __file__)
