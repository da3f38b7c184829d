"""What responders read from a request: parameters of its query, and whether it brings a body.

What is malformed raises ``InvalidInput``, which names the parameter.
"""

from __future__ import annotations

import falcon

from svc.errors import InvalidInput
from svc.pipeline.context import RequestContext

__all__ = ["context_of", "has_body", "query_flag", "query_number", "query_text"]

_TRUE = frozenset({"true", "1", "yes", "on", ""})
_FALSE = frozenset({"false", "0", "no", "off"})


def context_of(req: falcon.Request) -> RequestContext:
    """Returns what the pipeline knows of the request."""
    context: RequestContext = req.context  # type: ignore[assignment]
    return context


def has_body(req: falcon.Request) -> bool:
    """Whether a request brings a body."""
    return bool(req.content_length) or bool(req.env.get("HTTP_TRANSFER_ENCODING"))


def query_text(req: falcon.Request, name: str) -> str | None:
    """Returns a parameter of the query; the last one when it is repeated, None when it is absent."""
    value = req.params.get(name)
    if isinstance(value, list):
        value = value[-1] if value else None
    return value


def query_flag(req: falcon.Request, name: str) -> bool:
    """Returns a boolean parameter of the query; absent means false, a bare name true.

    Raises:
        InvalidInput: it is neither ``true`` nor ``false``.
    """
    if not req.query_string:
        return False
    value = query_text(req, name)
    if value is None or value.lower() in _FALSE:
        return False
    if value.lower() in _TRUE:
        return True
    raise InvalidInput(f"The parameter {name} is true or false.", field=name)


def query_number(
    req: falcon.Request, name: str, default: int | None, *, minimum: int = 0, maximum: int | None = None
) -> int | None:
    """Returns an integer parameter of the query, or ``default`` when it is absent.

    Raises:
        InvalidInput: it is no integer, or out of bounds; ``limit`` states the bound.
    """
    value = query_text(req, name)
    if value is None:
        return default
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise InvalidInput(f"The parameter {name} is an integer.", field=name)
    result = int(value)
    if result < minimum:
        raise InvalidInput(f"The parameter {name} is at least {minimum}.", field=name, limit=minimum)
    if maximum is not None and result > maximum:
        raise InvalidInput(f"The parameter {name} is at most {maximum}.", field=name, limit=maximum)
    return result
