"""What goes wrong between a coordinator's parts."""


class JobLost(Exception):
    """Another coordinator has the job now, or it was deleted: nothing may be done for it here."""
