"""What a designer refuses. Every message is one sentence for the user."""


class DesignerError(Exception):
    """A designer cannot do what it was asked for."""


class CheckpointError(DesignerError):
    """A checkpoint is damaged, or belongs to another specification or version."""


class OtherVersionError(CheckpointError):
    """A checkpoint was made by another version of the program or of the simulator."""


class OutcomeError(DesignerError):
    """An outcome does not answer the request."""
