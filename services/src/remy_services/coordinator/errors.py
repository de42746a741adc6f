"""What goes wrong between a coordinator's parts."""


class JobLost(Exception):
    """Another coordinator has the job now, or it was deleted: nothing may be done for it here."""


class StoreInTrouble(Exception):
    """The store takes no commits at present. One sentence that says why."""


class RequestIdTaken(Exception):
    """A client's name for a request stands for another one. One sentence for people."""
