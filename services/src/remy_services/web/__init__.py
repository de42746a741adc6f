"""Web page of a farm: sessions, feed of job changes, and HTTP server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remy_proto.exports import lazy_exports

if TYPE_CHECKING:
    from remy_services.web.server import PageSettings as PageSettings
    from remy_services.web.server import serve_page as serve_page
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, __file__)
