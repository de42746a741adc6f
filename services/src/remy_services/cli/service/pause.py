"""`remy-farm pause`."""

from remy_services.cli.service.changing import changing_command
from remy_services.client import DesignClient

command = changing_command(
    "pause",
    DesignClient.pause,
    "Have a job keep what it has and evaluate nothing until it is resumed.",
)
