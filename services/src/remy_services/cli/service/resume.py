"""`remy-farm resume`."""

from remy_services.cli.service.changing import changing_command
from remy_services.client import DesignClient

command = changing_command(
    "resume",
    DesignClient.resume,
    "Have a job that is paused, or that failed for a cause which was put right, go on.",
)
