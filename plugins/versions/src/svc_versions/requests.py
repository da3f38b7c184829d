"""What the routes read from a request in common: the caller, settings and flags."""

from __future__ import annotations

import falcon

from svc.errors import NotFound
from svc.plugin import Operation, context_of
from svc_versions.configuration import VersionsConfiguration

__all__ = ["CHANGES", "authorize_listing", "authorize_making", "settings_of"]

CHANGES = (Operation.CREATE, Operation.UPDATE, Operation.DELETE)
"""What one needs of, on some path, to make a snapshot or a fork: both stay until root removes them."""


def settings_of(req: falcon.Request) -> VersionsConfiguration:
    """Returns the plugin's settings in the database that is served."""
    configuration = req.context.configuration
    return configuration if isinstance(configuration, VersionsConfiguration) else VersionsConfiguration()


def authorize_listing(req: falcon.Request, missing: NotFound | None = None) -> None:
    """Lets everyone who has an account see which versions have names: the holder of a share link has none.

    Args:
        req: the request.
        missing: what one without an account is told; by default that there is no such resource.
    """
    if context_of(req).identity.user_id is None:
        raise missing or NotFound("There is no such resource.")


def authorize_making(req: falcon.Request) -> None:
    """Lets everyone make a version of everything who is not narrowed to some paths by a scoped key."""
    if context_of(req).identity.hides_denials:
        raise NotFound("There is no such resource.")
