"""The routes of the plugin, and what they read from a request in common."""

from __future__ import annotations

import falcon

from svc.plugin import context_of, query_number
from svc_sharing.configuration import SharingConfiguration

__all__ = ["MAXIMUM_JSON", "page_limit", "settings_of"]

MAXIMUM_JSON = 4 * 1024 * 1024
"""Most bytes of a JSON body."""

_USUAL_LIMIT = 100
_MAXIMUM_LIMIT = 1000


def settings_of(req: falcon.Request) -> SharingConfiguration:
    """Returns the plugin's settings in the database that is served."""
    configuration = context_of(req).configuration
    return configuration if isinstance(configuration, SharingConfiguration) else SharingConfiguration()


def page_limit(req: falcon.Request) -> int:
    """Returns the most items of a page of a listing."""
    limit = query_number(req, "limit", _USUAL_LIMIT, minimum=1, maximum=_MAXIMUM_LIMIT)
    return _USUAL_LIMIT if limit is None else limit
