"""What the routes read from a request in common: the caller, settings and flags."""

from __future__ import annotations

from typing import cast

import falcon

from svc.errors import InvalidInput, NotFound
from svc.pipeline import RequestContext, hides_denials
from svc_versions.configuration import VersionsConfiguration

__all__ = ["authorize_making", "context_of", "flag", "settings_of", "text"]

_TRUE = frozenset({"true", "1", "yes", "on", ""})
_FALSE = frozenset({"false", "0", "no", "off"})


def settings_of(req: falcon.Request) -> VersionsConfiguration:
    """Returns the plugin's settings in the database that is served."""
    configuration = req.context.configuration
    return configuration if isinstance(configuration, VersionsConfiguration) else VersionsConfiguration()


def context_of(req: falcon.Request) -> RequestContext:
    """Returns what the pipeline knows of the request."""
    return cast(RequestContext, req.context)


def text(req: falcon.Request, name: str) -> str | None:
    """Returns a parameter of the query; the last one when it is repeated, None when it is absent."""
    value = req.params.get(name)
    if isinstance(value, list):
        value = value[-1] if value else None
    return value


def flag(req: falcon.Request, name: str) -> bool:
    """Returns a boolean parameter of the query; absent means false, a bare name true.

    Raises:
        InvalidInput: it is neither ``true`` nor ``false``.
    """
    value = text(req, name)
    if value is None or value.lower() in _FALSE:
        return False
    if value.lower() in _TRUE:
        return True
    raise InvalidInput(f"The parameter {name} is true or false.", field=name)


def authorize_making(req: falcon.Request) -> None:
    """Lets everyone make a version of everything who is not narrowed to some paths by a scoped key.

    Raises:
        NotFound: a scoped key asks: these routes do not exist for it.
    """
    if hides_denials(context_of(req).identity):
        raise NotFound("There is no such resource.")
