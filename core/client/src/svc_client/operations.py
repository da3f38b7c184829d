"""From the declaration of an operation to a request, and from the answer back to its value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

import msgspec

from svc.operations import Created, DeclaredOperation, Page, bind_arguments
from svc.operations.values import pages_of
from svc_client.transport import Body, Response, Transport

__all__ = ["Operations"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_JSON = {"Content-Type": "application/json"}


class Operations:
    """Calls the operations of a server, each by its declaration. Methods block."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def call(self, operation: DeclaredOperation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Returns what an operation answers; its arguments are given as to its function, without the call.

        Raises:
            SvcError: what the server raised.
            ServiceUnavailable: it can't be reached, or is no server of svc.
        """
        answer: R = _answer_of(operation, self._send(operation, args, kwargs, None, {}))
        return answer

    def items(
        self, operation: DeclaredOperation[P, Page[T]], *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[T]:
        """Yields the items of all pages that an operation answers; raises as ``call``."""
        return pages_of(self.call, operation, args, kwargs)

    def stream(
        self,
        operation: DeclaredOperation[..., Any],
        *args: Any,
        content: Body = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool | None = None,
        **kwargs: Any,
    ) -> Response:
        """Returns the answer of an operation once its head has arrived; raises as ``call``.

        Args:
            operation: the operation.
            args: its arguments.
            content: a raw body, where it takes one.
            headers: further header fields of the request.
            repeatable: whether it may be sent again when its answer is lost; None: as is declared.
            kwargs: its arguments by name.
        """
        return self._send(operation, args, kwargs, content, headers or {}, repeatable)

    def request(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, str | list[str]] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Body = None,
    ) -> Response:
        """Returns the answer to any request once its head has arrived; blocks.

        Args:
            method: HTTP method.
            url: encoded path below the server's URL.
            query: parameters of its query.
            headers: header fields.
            body: the body; bytes, or a function that begins it anew, can be sent again.

        Raises:
            SvcError: what the server raised.
            ServiceUnavailable: it can't be reached, or is no server of svc.
        """
        return self.transport.request(method, url, query=query, headers=headers, body=body)

    def _send(
        self,
        operation: DeclaredOperation[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        content: Body,
        headers: Mapping[str, str],
        repeatable: bool | None = None,
    ) -> Response:
        said = bind_arguments(operation, args, kwargs)
        return self.transport.request(
            operation.method,
            said.url,
            query=said.query,
            headers=headers if said.body is None else {**_JSON, **headers},
            body=content if said.body is None else said.body,
            repeatable=operation.repeatable if repeatable is None else repeatable,
        )


def _answer_of(operation: DeclaredOperation[..., Any], response: Response) -> Any:
    signature = operation.signature
    if signature.is_array:
        (items,) = msgspec.structs.fields(signature.answer)[:1]
        name = next(name for name, member in operation.headers.items() if member == "next_cursor")
        cursor = response.headers.get(name)
        return signature.answer(response.json(items.type), has_more=cursor is not None, next_cursor=cursor)
    value = response.json(signature.answer)
    if isinstance(value, Page) and value.has_more and value.next_cursor is None:
        raise response.foreign()
    return Created(value, response.status == 201) if signature.creates else value
