"""Client of a coordinator: settings, TLS, tokens, deadlines and retries.

`load_settings` determines how to connect, `Connection` makes calls with retries, `DesignClient` has
a method per request, `watch_job` follows a job across reconnects, and `diagnose` finds connection
problems.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remy_proto.exports import lazy_exports

if TYPE_CHECKING:
    from remy_services.client.connection import Connection as Connection
    from remy_services.client.design_client import FINAL_STATES as FINAL_STATES
    from remy_services.client.design_client import MAX_ARCHIVE_BYTES as MAX_ARCHIVE_BYTES
    from remy_services.client.design_client import DesignClient as DesignClient
    from remy_services.client.design_client import export_job as export_job
    from remy_services.client.design_client import import_job as import_job
    from remy_services.client.design_client import upload_trace as upload_trace
    from remy_services.client.doctor import Check as Check
    from remy_services.client.doctor import Finding as Finding
    from remy_services.client.doctor import Verdict as Verdict
    from remy_services.client.doctor import diagnose as diagnose
    from remy_services.client.settings import PATIENCE_SECONDS as PATIENCE_SECONDS
    from remy_services.client.settings import ConnectionSettings as ConnectionSettings
    from remy_services.client.settings import SettingsSource as SettingsSource
    from remy_services.client.settings import load_settings as load_settings
    from remy_services.client.status import Refused as Refused
    from remy_services.client.status import ServiceError as ServiceError
    from remy_services.client.status import Unreachable as Unreachable
    from remy_services.client.watching import ConnectionBack as ConnectionBack
    from remy_services.client.watching import ConnectionLost as ConnectionLost
    from remy_services.client.watching import watch_job as watch_job
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, __file__)
