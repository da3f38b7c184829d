"""Every error that svc raises on purpose, with what it means to HTTP and to the shell.

The error tables of the documentation are generated from these classes, and the pipeline's serializer and the
command line print nothing but what stands here.
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "AlreadyExists",
    "AuthRequired",
    "Conflict",
    "CorruptRecord",
    "DamagedView",
    "DatabaseBusy",
    "DatabaseClosed",
    "DatabaseLatched",
    "DatabaseNotFound",
    "Forbidden",
    "ForeignFile",
    "InsufficientStorage",
    "InternalError",
    "InvalidInput",
    "InvalidPath",
    "LengthRequired",
    "MethodNotAllowed",
    "NotFound",
    "PayloadTooLarge",
    "PluginError",
    "PluginMissing",
    "PreconditionFailed",
    "RangeNotSatisfiable",
    "RateLimited",
    "ReadOnly",
    "RefusedFile",
    "RequestTimeout",
    "ServiceUnavailable",
    "SvcError",
    "TruncatedFile",
    "UnsupportedFormat",
    "UnsupportedMediaType",
    "UsageError",
    "VerificationFailed",
    "VersionCollected",
]


class SvcError(Exception):
    """The root of all errors of svc.

    Args:
        message: one sentence a person can act on; it may be shown to any caller, so it never
            holds a secret or a path of the server's machine that the caller did not give.
        details: extra members of the error body (``path``, ``field``, ``limit``, ``retry_after``).

    Attributes:
        status: HTTP status of a response that reports the error.
        code: machine-readable code of that response.
        exit_code: exit code of a command that ends with the error.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "INTERNAL_ERROR"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def as_body(self) -> dict[str, Any]:
        """The JSON object that reports this error over HTTP: ``error``, ``code``, details."""
        return {"error": self.message, "code": self.code, **self.details}


class InternalError(SvcError):
    """Something failed that should not have; the log holds the reason."""


class UsageError(SvcError):
    """A command was called with options that do not fit together."""

    status = 400
    code = "INVALID_INPUT"
    exit_code = 2


class InvalidInput(SvcError):
    """A request, option or document that is not of the required form."""

    status = 400
    code = "INVALID_INPUT"
    exit_code = 2


class InvalidPath(InvalidInput):
    """A path that breaks the path rules: ``..``, NUL, control characters, too long, not UTF-8."""

    code = "INVALID_PATH"


class AuthRequired(SvcError):
    """The request carries no valid credentials and the route needs them."""

    status = 401
    code = "AUTH_REQUIRED"
    exit_code = 5


class Forbidden(SvcError):
    """The caller is known and may not do this."""

    status = 403
    code = "FORBIDDEN"
    exit_code = 5


class NotFound(SvcError):
    """Nothing is there, or nothing that the caller may know of."""

    status = 404
    code = "NOT_FOUND"
    exit_code = 3


class VersionCollected(NotFound):
    """A version whose contents a collection has destroyed: the log still names it, nothing can be read."""

    def __init__(self, message: str | None = None, **details: Any) -> None:
        super().__init__(
            message or "This version was collected: what it held is gone, and only the log knows of it.",
            **{"collected": True, **details},
        )


class MethodNotAllowed(SvcError):
    """The resource exists and does not take this method."""

    status = 405
    code = "METHOD_NOT_ALLOWED"


class RequestTimeout(SvcError):
    """The client was too slow to send its request."""

    status = 408
    code = "SERVICE_UNAVAILABLE"
    exit_code = 8


class Conflict(SvcError):
    """The request does not fit the present state: a file where a directory is needed, say."""

    status = 409
    code = "CONFLICT"
    exit_code = 4


class AlreadyExists(Conflict):
    """The name is taken."""

    code = "ALREADY_EXISTS"


class LengthRequired(InvalidInput):
    """The request says neither how long its body is, nor that it comes in chunks."""

    status = 411


class PreconditionFailed(SvcError):
    """``If-Match``, ``If-None-Match`` or a compare-and-swap found another state."""

    status = 412
    code = "PRECONDITION_FAILED"
    exit_code = 4


class PayloadTooLarge(SvcError):
    """A body, batch or result is over its limit."""

    status = 413
    code = "PAYLOAD_TOO_LARGE"
    exit_code = 2


class UnsupportedMediaType(SvcError):
    """The body's media type is not one that the route takes."""

    status = 415
    code = "UNSUPPORTED_MEDIA_TYPE"
    exit_code = 2


class RangeNotSatisfiable(SvcError):
    """No byte of the requested range exists."""

    status = 416
    code = "RANGE_NOT_SATISFIABLE"
    exit_code = 2


class RateLimited(SvcError):
    """Too many requests; ``retry_after`` says when to come back, in seconds."""

    status = 429
    code = "RATE_LIMITED"
    exit_code = 8


class ServiceUnavailable(SvcError):
    """The server cannot do this now and may be able to later."""

    status = 503
    code = "SERVICE_UNAVAILABLE"
    exit_code = 8


class DamagedView(ServiceUnavailable):
    """What a view keeps is damaged. The view is made anew by itself, and can be asked again in a moment."""


class DatabaseBusy(ServiceUnavailable):
    """Another process holds the database in a way that excludes this opening."""


class DatabaseClosed(ServiceUnavailable):
    """The database object was closed, or belongs to another process (it was opened before a fork)."""


class DatabaseLatched(ServiceUnavailable):
    """An I/O error made durability uncertain: the database reads and takes no more writes."""


class ReadOnly(ServiceUnavailable):
    """The database was opened for reading only, or its medium cannot be written."""

    exit_code = 9


class InsufficientStorage(SvcError):
    """The disk is full; nothing of the write is visible. What it had appended before is garbage."""

    status = 507
    code = "INSUFFICIENT_STORAGE"
    exit_code = 9


class DatabaseNotFound(SvcError):
    """There is no database at the given place."""

    status = 404
    code = "NOT_FOUND"
    exit_code = 3


class ForeignFile(SvcError):
    """The file is not an svc database, or was written in another byte order."""

    status = 400
    code = "INVALID_INPUT"
    exit_code = 6


class UnsupportedFormat(SvcError):
    """The file is an svc database of a format version that this program does not read."""

    status = 400
    code = "INVALID_INPUT"
    exit_code = 6


class RefusedFile(SvcError):
    """A file that was to be imported is damaged, forged, or not what it claims; nothing of it was taken."""

    status = 400
    code = "INVALID_INPUT"
    exit_code = 7


class CorruptRecord(SvcError):
    """A stored record fails its checksum or its hash; ``offset`` names where it lies."""

    exit_code = 7


class TruncatedFile(CorruptRecord):
    """The file is shorter than what is known to be committed in it."""


class VerificationFailed(SvcError):
    """``svc verify`` found damage; the report names every damaged path."""

    exit_code = 7


class PluginError(SvcError):
    """A plugin is broken, doubled, too new, or its configuration is not valid."""

    status = 400
    code = "INVALID_INPUT"
    exit_code = 10


class PluginMissing(SvcError):
    """What was asked for needs a plugin that is not installed, not allowed or not enabled."""

    status = 404
    code = "NOT_FOUND"
    exit_code = 11


BY_CODE: dict[str, type[SvcError]] = {
    kind.code: kind
    for kind in (
        *(NotFound, AlreadyExists, Conflict, InvalidInput, InvalidPath, AuthRequired, Forbidden, RateLimited),
        *(PayloadTooLarge, MethodNotAllowed, PreconditionFailed, RangeNotSatisfiable, UnsupportedMediaType),
        *(ServiceUnavailable, InsufficientStorage),
    )
}
"""The class that a client raises for the code of an error answer; several errors may have one code."""
