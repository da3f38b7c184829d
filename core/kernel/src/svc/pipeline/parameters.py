"""What responders ask of a request: what the pipeline knows of it, and whether it brings a body."""

from __future__ import annotations

import falcon

from svc.pipeline.context import RequestContext

__all__ = ["context_of", "has_body"]


def context_of(req: falcon.Request) -> RequestContext:
    """Returns what the pipeline knows of the request."""
    context: RequestContext = req.context  # type: ignore[assignment]
    return context


def has_body(req: falcon.Request) -> bool:
    """Whether a request brings a body."""
    return bool(req.content_length) or bool(req.env.get("HTTP_TRANSFER_ENCODING"))
