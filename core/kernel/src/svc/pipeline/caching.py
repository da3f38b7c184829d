"""What caches may do with an answer, for every route, method and status.

What may change is asked for again each time (``no-cache``), an error is never kept (``no-store``), and what a
route calls immutable may be kept for ever. Answers that depend on who asks are ``private``: a shared cache
would hand them to those who may not read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import falcon

if TYPE_CHECKING:
    from svc.pipeline.framework import LeanRequest, LeanResponse

__all__ = ["NO_STORE", "CachePolicy", "mark_immutable", "vary_by"]

NO_STORE = "no-store"
_NO_CACHE = "no-cache"
_PRIVATE_NO_CACHE = "private, no-cache"
_FOR_EVER = "max-age=31536000, immutable"
_NOT_MODIFIED = 304
_OK = falcon.HTTP_200


def mark_immutable(resp: falcon.Response) -> None:
    """Says that the answer depends on nothing but a version or a hash, so that caches may keep it.

    Errors are never kept.
    """
    own: LeanResponse = resp  # type: ignore[assignment]  # the pipeline's own
    own.is_immutable = True


def vary_by(resp: falcon.Response, field: str) -> None:
    """Adds a request's field to ``Vary``, unless it is there."""
    own: LeanResponse = resp  # type: ignore[assignment]  # the pipeline's own
    fields = own.header_fields
    present = fields.get("vary")
    if present is None:
        fields["vary"] = field
    elif field.lower() not in [name.strip().lower() for name in present.split(",")]:
        fields["vary"] = f"{present}, {field}"


class CachePolicy:
    """Gives every answer its ``Cache-Control``; a route that set one itself keeps it, unless it failed."""

    def process_response(
        self, req: LeanRequest, resp: LeanResponse, _resource: object, _succeeded: bool
    ) -> None:
        """Sets the field, and leaves out a date that a client would take for no change."""
        headers = resp.header_fields
        status = resp.status
        if status is not _OK and _code(status) >= 400:
            headers["cache-control"] = NO_STORE
            return
        if "HTTP_IF_MODIFIED_SINCE" in req.env and _code(status) != _NOT_MODIFIED:
            # Dates go back, as by a restore. A client that compares them itself would keep what it has.
            headers.pop("last-modified", None)
        if "cache-control" in headers:
            return
        endpoint = req.env.get("svc.endpoint")
        is_public = endpoint is None or endpoint.is_public
        if not resp.is_immutable:
            headers["cache-control"] = _NO_CACHE if is_public else _PRIVATE_NO_CACHE
            return
        headers["cache-control"] = f"{'public' if is_public else 'private'}, {_FOR_EVER}"
        if not is_public:
            # One browser may serve several callers, one after the other.
            vary_by(resp, "Authorization")
            if "svc.by_session" in req.env:
                vary_by(resp, "Cookie")


def _code(status: object) -> int:
    return int(status) if isinstance(status, int) else falcon.http_status_to_code(status)
