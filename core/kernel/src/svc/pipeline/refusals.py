"""Writes to the log whom the server has refused, and what: one line for each, with no secret.

These are callers who are not signed in or may not do what they ask for, whether they were told so or not,
those who ask too often, and paths that break the rules. Routes that sign callers in write for themselves.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from svc.errors import AuthRequired, Forbidden, InvalidPath, NotFound, RateLimited
from svc.metrics import Counter
from svc.paths import Path, format_path
from svc.pipeline.address_log import AddressLog

if TYPE_CHECKING:
    from svc.pipeline.context import SvcRequest
    from svc.pipeline.routing import Endpoint

__all__ = ["HiddenPath", "RefusalLog", "hidden_path"]

_MOST_CHARACTERS = 256

REFUSED_REQUESTS = Counter("svc_refused_requests", "Requests of those who may not do that.", ("reason",))

_log = logging.getLogger("svc.refused")


class HiddenPath(NotFound):
    """A path that the caller may not know of. To the client it is one with nothing at it."""


def hidden_path(path: Path) -> HiddenPath:
    """The error for a path that the caller may not know of: the words of ``path_not_found``."""
    return HiddenPath("There is nothing at this path.", path=format_path(path))


class RefusalLog:
    """Writes the refusals of one application. Safe in every thread."""

    def __init__(self) -> None:
        self._log = AddressLog(_log, "refusals")

    def note(self, req: SvcRequest, error: Exception) -> None:
        """Writes an error of a request if it is a refusal."""
        reason = _reason_of(req, error)
        if reason is None:
            return
        REFUSED_REQUESTS.add(1, reason)
        context = req.context
        identity = context.identity_or_none
        fields = {
            "reason": reason,
            "method": req.method[:32],
            "path": req.path[:_MOST_CHARACTERS],
            "user": None if identity is None else identity.name,
            "key_id": None if identity is None else identity.key_id,
            "remote": context.client_address,
            "request_id": context.request_id,
        }
        self._log.warn_about("a request was refused", context.client_address, fields)


def _reason_of(req: SvcRequest, error: Exception) -> str | None:
    """Why a request was refused, in our own words; None where it was not, or where its route says it."""
    if isinstance(error, InvalidPath):
        return "the path breaks the rules"
    if isinstance(error, HiddenPath):
        return "the path is hidden from the caller"
    endpoint: Endpoint | None = req.env.get("svc.endpoint")
    if endpoint is None or endpoint.is_public:
        return None
    if isinstance(error, AuthRequired):
        return (
            "no credentials" if req.env.get("HTTP_AUTHORIZATION") is None else "the credentials are not good"
        )
    if isinstance(error, Forbidden):
        return "the caller may not do this"
    if isinstance(error, RateLimited):
        return "the caller asks too often"
    return None
