"""One form for every error: status, header fields and a JSON body.

Messages of ``SvcError`` are shown; of all else only that it failed: the log has it under the request's id.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import falcon
from msgspec import Struct, field

from svc.errors import (
    AuthRequired,
    Forbidden,
    InsufficientStorage,
    InternalError,
    InvalidInput,
    MethodNotAllowed,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
    RangeNotSatisfiable,
    RateLimited,
    ServiceUnavailable,
    SvcError,
    UnsupportedMediaType,
)
from svc.operations.json import JSON_MEDIA_TYPE, json_body
from svc.paths import Path, format_path
from svc.pipeline.caching import NO_STORE
from svc.pipeline.responses import CONTENT_POLICY

__all__ = ["ErrorAnswer", "answer_for", "apply_answer", "path_not_found"]

_KEPT_HEADERS = (
    "x-content-type-options",
    "x-request-id",
    "strict-transport-security",
    "accept-patch",
    "vary",
    "access-control-allow-origin",
    "access-control-expose-headers",
)
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))

_OF_STATUS: dict[int, tuple[type[SvcError], str]] = {
    400: (InvalidInput, "The request is not valid."),
    401: (AuthRequired, "This needs valid credentials."),
    403: (Forbidden, "You may not do this."),
    404: (NotFound, "There is no such resource."),
    405: (MethodNotAllowed, "The resource does not take this method."),
    412: (PreconditionFailed, "The state is another than the request asks for."),
    413: (PayloadTooLarge, "The body is too large."),
    415: (UnsupportedMediaType, "The resource does not take this media type."),
    416: (RangeNotSatisfiable, "No byte of the range exists."),
    429: (RateLimited, "Too many requests."),
    503: (ServiceUnavailable, "The server can't do this now."),
    507: (InsufficientStorage, "The disk is full."),
}


class ErrorAnswer(Struct, frozen=True):
    """An error as it goes to the client. Where it is not ``expected``, its traceback belongs into the log."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    expected: bool = True


def answer_for(error: BaseException, challenge: str = "Bearer") -> ErrorAnswer:
    """Returns what a client is told about ``error``."""
    if isinstance(error, SvcError):
        return _of_svc_error(error, challenge)
    if isinstance(error, falcon.HTTPError):
        return _of_http_error(error, challenge)
    if isinstance(error, OSError) and error.errno in _FULL:
        return _of_svc_error(InsufficientStorage("The disk is full; nothing was written."), challenge)
    message = "The server failed to handle the request; its log has the reason under the request id."
    return ErrorAnswer(500, InternalError(message).as_body(), expected=False)


def apply_answer(resp: falcon.Response, answer: ErrorAnswer) -> None:
    """Makes ``resp`` report an error, whatever a responder had put into it before."""
    kept = {name: value for name in _KEPT_HEADERS if (value := resp.get_header(name)) is not None}
    for name in list(resp.headers):
        resp.delete_header(name)
    for name, value in (*kept.items(), *answer.headers.items()):
        resp.set_header(name, value)
    resp.set_header("Cache-Control", NO_STORE)
    resp.set_header("Content-Security-Policy", CONTENT_POLICY)
    resp.status = answer.status
    resp.stream = None
    resp.text = None
    resp.content_type = JSON_MEDIA_TYPE
    resp.data = json_body(answer.body)


def path_not_found(path: Path) -> NotFound:
    """The error for a path with nothing at it, or nothing that the caller may know of: the same words."""
    return NotFound("There is nothing at this path.", path=format_path(path))


def _of_svc_error(error: SvcError, challenge: str) -> ErrorAnswer:
    headers: dict[str, str] = {}
    body = error.as_body()
    if error.status == 401:
        headers["WWW-Authenticate"] = challenge
    elif error.status in (429, 503):
        retry_after = error.details.get("retry_after", 1)
        headers["Retry-After"] = str(max(1, round(retry_after))) if _is_number(retry_after) else "1"
    elif error.status == 416 and "size" in error.details:
        headers["Content-Range"] = f"bytes */{error.details['size']}"
    elif error.status == 405 and "allowed" in error.details:
        headers["Allow"] = ", ".join(error.details["allowed"])
    return ErrorAnswer(error.status, body, headers, expected=error.status < 500 or error.status in (503, 507))


def _of_http_error(error: falcon.HTTPError, challenge: str) -> ErrorAnswer:
    status = error.status_code
    form, message = _OF_STATUS.get(status, (InternalError if status >= 500 else InvalidInput, ""))
    text = error.description or message or _phrase(status)
    headers = {name: str(value) for name, value in _header_items(error)}
    if status == 401:
        headers.setdefault("WWW-Authenticate", challenge)
    return ErrorAnswer(status, {"error": text, "code": form.code}, headers, expected=status != 500)


def _header_items(error: falcon.HTTPError) -> list[tuple[str, str]]:
    headers = error.headers
    if not headers:
        return []
    return list(headers.items()) if isinstance(headers, Mapping) else list(headers)


def _phrase(status: int) -> str:
    try:
        return f"{HTTPStatus(status).phrase}."
    except ValueError:
        return "The request failed."


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
