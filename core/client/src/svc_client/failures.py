"""Answers that report an error, as the errors of ``svc.errors`` that the server raised."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import msgspec
import urllib3.exceptions

from svc import errors

__all__ = ["error_of_answer", "error_of_connection", "foreign_answer"]

_BY_STATUS: dict[int, type[errors.SvcError]] = {
    401: errors.AuthRequired,
    403: errors.Forbidden,
    404: errors.NotFound,
    405: errors.MethodNotAllowed,
    409: errors.Conflict,
    412: errors.PreconditionFailed,
    413: errors.PayloadTooLarge,
    415: errors.UnsupportedMediaType,
    416: errors.RangeNotSatisfiable,
    429: errors.RateLimited,
    502: errors.ServiceUnavailable,
    503: errors.ServiceUnavailable,
    504: errors.ServiceUnavailable,
    507: errors.InsufficientStorage,
}

_OF_PROXIES = frozenset((401, 403, 407, 408, 413, 429, 500, 502, 503, 504, 507))
"""What a proxy answers where there is a server of svc behind it."""


def error_of_answer(
    url: str, status: int, reason: str, headers: Mapping[str, str], content: bytes
) -> errors.SvcError:
    """Returns the error that an answer reports, of the class that the server raised.

    Its further members and ``request_id`` are in the details.
    """
    kind = _BY_STATUS.get(status, errors.InternalError if status >= 500 else errors.InvalidInput)
    request_id = headers.get("X-Request-Id")
    details: dict[str, Any] = {} if request_id is None else {"request_id": request_id}
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("error"), str):
        answered = f"answered {status} {reason}".rstrip()
        # A proxy may answer some things for a server of svc, whose own answers all carry an id.
        if request_id is None and status not in _OF_PROXIES:
            return errors.ServiceUnavailable(f"{url} does not answer as an svc server does: it {answered}.")
        advice = f" 'svc login {url}' signs in." if status == 401 else ""
        return kind(f"{url} {answered}.{advice}", **details)
    # A batch answers 409 whatever refuses one of its operations, and says the code in "reason".
    kind = errors.BY_CODE.get(str(body.get("reason")), errors.BY_CODE.get(str(body.get("code")), kind))
    members = {
        key: value
        for key, value in body.items()
        if isinstance(key, str) and key not in ("error", "code", "message")
    }
    return kind(body["error"], **members, **details)


def error_of_connection(url: str, error: Exception, timeout: float) -> errors.ServiceUnavailable:
    """Returns the error that says why there was no answer, or none to its end."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__ or _first_argument(link)
    for one in chain:
        if isinstance(one, ssl.SSLCertVerificationError):
            return errors.ServiceUnavailable(
                f"The certificate of {url} cannot be trusted ({one.verify_message}); "
                "--tls-ca names the authority that signed it."
            )
    for one in chain:
        if isinstance(one, OSError) and one.strerror and not _is_lost(one):
            return errors.ServiceUnavailable(f"{url} cannot be reached: {one.strerror.lower()}.")
    if any(isinstance(one, TimeoutError | urllib3.exceptions.TimeoutError) for one in chain):
        return errors.ServiceUnavailable(f"{url} did not answer within {timeout:g} seconds.")
    return errors.ServiceUnavailable(f"The connection to {url} ended before the answer did.")


def foreign_answer(url: str) -> errors.ServiceUnavailable:
    """Returns the error for an answer that no server of svc gives."""
    return errors.ServiceUnavailable(f"{url} does not answer as an svc server does.")


def _is_lost(error: OSError) -> bool:
    return isinstance(error, ConnectionResetError | BrokenPipeError | TimeoutError)


def _first_argument(error: BaseException) -> BaseException | None:
    for argument in error.args:
        if isinstance(argument, BaseException):
            return argument
    return None
