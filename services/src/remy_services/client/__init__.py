"""What a program needs to talk to a coordinator: address, TLS, token, deadlines, retries.

`settings_of` puts together how to reach it, a `Connection` carries the calls, `DesignClient` has a
method for each request, `watch_job` follows a job through lost connections, and `doctor`
says what is in the way.
"""

from remy_services.client.connection import Connection
from remy_services.client.design_client import (
    FINAL_STATES,
    MOST_ARCHIVE_BYTES,
    WORKING_STATES,
    DesignClient,
    export_job,
    import_job,
)
from remy_services.client.settings import (
    ConnectionSettings,
    Given,
    configuration_path,
    read_configuration,
    settings_of,
)
from remy_services.client.status import (
    BadRequest,
    NotAllowed,
    Refused,
    ServerFailed,
    ServiceError,
    Unreachable,
)
from remy_services.client.watching import ConnectionBack, ConnectionLost, Update, watch_job

__all__ = [
    "FINAL_STATES",
    "MOST_ARCHIVE_BYTES",
    "WORKING_STATES",
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
    "Unreachable",
    "Update",
    "configuration_path",
    "export_job",
    "import_job",
    "read_configuration",
    "settings_of",
    "watch_job",
]
