"""What a program needs to talk to a coordinator: address, TLS, token, deadlines, retries.

`settings_of` puts together how to reach it, a `Connection` carries the calls, `DesignClient` has a
method for each request, and `watch_job` follows a job through lost connections.
"""

from remy_services.client.address import Address, parse_address
from remy_services.client.configuration import configuration_path, read_configuration
from remy_services.client.connection import Connection
from remy_services.client.design_client import DesignClient
from remy_services.client.errors import (
    BadRequest,
    NotAllowed,
    Refused,
    ServerFailed,
    ServiceError,
    SettingsError,
    Unreachable,
)
from remy_services.client.job_states import FINAL_STATES, WORKING_STATES
from remy_services.client.settings import (
    ConnectionSettings,
    Given,
    TlsSettings,
    settings_of,
)
from remy_services.client.token import Token, read_token_file
from remy_services.client.transfer import MOST_ARCHIVE_BYTES, export_job, import_job
from remy_services.client.watching import ConnectionBack, ConnectionLost, Update, watch_job

__all__ = [
    "FINAL_STATES",
    "MOST_ARCHIVE_BYTES",
    "WORKING_STATES",
    "Address",
    "BadRequest",
    "Connection",
    "ConnectionBack",
    "ConnectionLost",
    "ConnectionSettings",
    "DesignClient",
    "Given",
    "NotAllowed",
    "Refused",
    "ServerFailed",
    "ServiceError",
    "SettingsError",
    "TlsSettings",
    "Token",
    "Unreachable",
    "Update",
    "configuration_path",
    "export_job",
    "import_job",
    "parse_address",
    "read_configuration",
    "read_token_file",
    "settings_of",
    "watch_job",
]
