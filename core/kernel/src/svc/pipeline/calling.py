"""Operations called in the process that serves, on behalf of a request: for pages that show what they answer.

The call goes the whole way of a request, with the credentials of the one that it belongs to, so that rights,
limits and errors are those that a client gets. Only the connection is left out.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import unquote_to_bytes, urlencode

import msgspec

from svc import errors
from svc.operations import Created, DeclaredOperation, bind_arguments
from svc.operations.json import decode_json
from svc.pipeline.access import pairs_of
from svc.pipeline.bodies import body_of

if TYPE_CHECKING:
    from svc.pipeline.application import Application
    from svc.pipeline.context import SvcRequest

__all__ = ["OperationAnswer", "call_operation", "send_operation"]

P = ParamSpec("P")
R = TypeVar("R")

MOST_BYTES = 16 * 1024 * 1024
"""An answer that is taken as a value may have so many."""

_OWN_FIELDS = (
    "HTTP_IF_",
    "HTTP_RANGE",
    "HTTP_EXPECT",
    "HTTP_TRANSFER_ENCODING",
    "HTTP_CONTENT_",
    "HTTP_ACCEPT",
)
"""What a request says of its own body and of the answer that it wants."""
_OF_CONNECTION = frozenset(
    (
        *("REMOTE_ADDR", "REMOTE_PORT", "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "SCRIPT_NAME"),
        *("wsgi.version", "wsgi.url_scheme", "wsgi.errors", "wsgi.multithread", "wsgi.multiprocess"),
        *("wsgi.run_once", "svc.request_id", "svc.application", "svc.by_session"),
    )
)


class OperationAnswer:
    """What an operation has answered, before it is read.

    Attributes:
        status: HTTP status, below 400.
        headers: header fields by name in lower case.
        pieces: the body; whoever does not hand it on reads it or closes it.
    """

    def __init__(self, status: int, headers: Mapping[str, str], pieces: Iterator[bytes], close: Any) -> None:
        self.status = status
        self.headers = headers
        self.pieces = pieces
        self._close = close

    def read(self, most: int = MOST_BYTES) -> bytes:
        """Returns the body.

        Raises:
            PayloadTooLarge: it has more than ``most`` bytes.
        """
        gathered = bytearray()
        try:
            for piece in self.pieces:
                gathered += piece
                if len(gathered) > most:
                    raise errors.PayloadTooLarge(f"The answer has more than {most} bytes.", limit=most)
        finally:
            self.close()
        return bytes(gathered)

    def close(self) -> None:
        """Says that nobody reads on; a second call does nothing."""
        close, self._close = self._close, None
        if close is not None:
            close()


def call_operation(
    req: SvcRequest, operation: DeclaredOperation[P, R], *args: P.args, **kwargs: P.kwargs
) -> R:
    """Returns what an operation answers to the sender of a request; blocks as a request does.

    Args:
        req: the request; who has sent it must be known, or the operation be public.
        operation: the operation, of whatever plugin is in use.
        args: its arguments.
        kwargs: its arguments by name.

    Raises:
        SvcError: what a client would be told.
    """
    answer = send_operation(req, operation, *args, **kwargs)  # type: ignore[arg-type]
    signature = operation.signature
    form = signature.answer
    if signature.is_array:
        (items,) = msgspec.structs.fields(form)[:1]
        name = next(name for name, member in operation.headers.items() if member == "next_cursor")
        cursor = answer.headers.get(name.lower())
        page: R = form(
            decode_json(answer.read(), items.type), has_more=cursor is not None, next_cursor=cursor
        )
        return page
    value = decode_json(answer.read(), form)
    if signature.creates:
        made: Any = Created(value, answer.status == 201)
        value = made
    return value  # type: ignore[no-any-return]


def send_operation(
    req: SvcRequest,
    operation: DeclaredOperation[..., Any],
    *args: Any,
    method: str | None = None,
    fields: Mapping[str, str] | None = None,
    content: tuple[str, bytes] | None = None,
    **kwargs: Any,
) -> OperationAnswer:
    """As ``call_operation``, for an answer that is no JSON, or is wanted as it is.

    Args:
        req: the request.
        operation: the operation.
        args: its arguments.
        method: ``HEAD`` for the head of the answer to a GET alone; None: the operation's.
        fields: further header fields of the request, such as ``Range``.
        content: the type and the bytes of the body, where the operation takes bytes.
        kwargs: its arguments by name.
    """
    application: Application = req.env["svc.application"]
    said = bind_arguments(operation, args, kwargs)
    content_type, body = content or ("application/json", said.body)
    environ = {
        name: value
        for name, value in req.env.items()
        if name in _OF_CONNECTION or (name.startswith("HTTP_") and not name.startswith(_OWN_FIELDS))
    }
    query = urlencode(said.query, doseq=True)
    environ |= {
        "REQUEST_METHOD": method or operation.method,
        "PATH_INFO": unquote_to_bytes(said.url).decode("latin-1"),
        "RAW_URI": said.url + (f"?{query}" if query else ""),
        "QUERY_STRING": query,
        "wsgi.input": io.BytesIO(body or b""),
        "HTTP_ACCEPT": "application/json",
    }
    if body is not None:
        environ |= {"CONTENT_TYPE": content_type, "CONTENT_LENGTH": str(len(body))}
    for name, value in (fields or {}).items():
        environ[f"HTTP_{name.upper().replace('-', '_')}"] = value
    environ["svc.input"] = body_of(environ, None)
    status_line, answered, pieces = application.answer(environ)
    answer = OperationAnswer(
        int(status_line[:3]),
        {name.lower(): value for name, value in pairs_of(answered)},
        iter(pieces),
        getattr(pieces, "close", None),
    )
    if answer.status >= 400:
        raise _error_of(answer)
    return answer


def _error_of(answer: OperationAnswer) -> errors.SvcError:
    try:
        body = msgspec.json.decode(answer.read())
    except msgspec.DecodeError:  # a HEAD has no body
        body = {}
    kind = errors.BY_CODE.get(str(body.pop("reason", body.get("code"))))
    if kind is None or kind.status != answer.status:
        kind = errors.BY_CODE.get(str(body.get("code")), _of_status(answer.status))
    body.pop("code", None)
    message = body.pop("error", "The request failed.")
    return kind(message, **{name: value for name, value in body.items() if name not in ("message", "self")})


def _of_status(status: int) -> type[errors.SvcError]:
    found = [kind for kind in errors.BY_CODE.values() if kind.status == status]
    return found[0] if found else errors.InternalError
