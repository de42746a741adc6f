"""`remy-farm cancel`."""

from remy_services.cli.service.changing import changing_command
from remy_services.client import DesignClient

command = changing_command(
    "cancel", DesignClient.cancel, "End a job. Its best table stays, and 'extend' has it go on."
)
