"""Operations over HTTP: the responder that each declaration amounts to."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar

import falcon
import msgspec
from msgspec import Struct

from svc.errors import InternalError, PluginError
from svc.operations import DeclaredOperation, read_query
from svc.operations.values import check_query
from svc.pipeline.bodies import read_json
from svc.pipeline.context import RequestContext
from svc.pipeline.fairness import Responder, in_turn
from svc.pipeline.parameters import has_body
from svc.pipeline.responses import send_json

__all__ = ["Responder", "read_parameters", "responder_of"]

S = TypeVar("S", bound=Struct)

BODY_LIMIT = "maximum_json"
"""A plugin's setting of this name bounds the JSON bodies of its operations."""


def responder_of(operation: DeclaredOperation[..., Any]) -> Responder:
    """Returns the Falcon responder that answers requests for an operation.

    Raises:
        PluginError: the declaration can't be served.
    """
    operation.check()
    check_query(operation)
    if operation.responder is not None:
        module, _, attribute = operation.responder.partition(":")
        found: Any = import_module(module)
        for name in attribute.split("."):
            found = getattr(found, name, None)
        if not callable(found):
            raise PluginError(f"{operation!r} names the responder {operation.responder!r}: there is none.")
        responder: Responder = found
    else:
        responder = _generated(operation)
    return in_turn(responder, operation.weight)


def read_parameters(req: falcon.Request, form: type[S]) -> S:
    """Returns the parameters of a request's query as a struct; see ``svc.operations.read_query``."""
    return read_query(form, req.params)


def _generated(operation: DeclaredOperation[..., Any]) -> Responder:
    function, signature = operation.function, operation.signature
    query, body, needs_body = signature.query, signature.body, signature.needs_body
    status, creates, headers, cache = operation.status, signature.creates, operation.headers, operation.cache
    is_array, most = signature.is_array, operation.maximum_body
    is_limited = operation.time_limit is not None
    form = signature.answer
    # What is hot answers the JSON of what it declares, as a dictionary.
    forms = (form, dict) if isinstance(form, type) and issubclass(form, msgspec.Struct) else None

    def respond(req: falcon.Request, resp: falcon.Response, **arguments: Any) -> None:
        call: RequestContext = req.context  # type: ignore[assignment]  # the pipeline's own
        if query is not None:
            arguments["query"] = read_query(query, req.params)
        if body is not None and (needs_body or has_body(req)):
            limit = getattr(call.configuration, BODY_LIMIT, None) if most is None else most
            arguments["body"] = read_json(req, body, limit)
        if is_limited:
            call.deadline = operation.deadline(call.configuration)
        answer = function(call, **arguments)
        answered = status
        if creates:
            answered = status if answer.created else 200
            answer = answer.value
        if forms is not None and not isinstance(answer, forms):
            raise _misfit(operation, answer)
        for name, member in headers.items():
            value = getattr(answer, member)
            if value is not None:
                resp.set_header(name, str(value))
        if cache is not None:
            resp.set_header("Cache-Control", cache)
        send_json(resp, answer.items if is_array else answer, answered)

    return respond


def _misfit(operation: DeclaredOperation[..., Any], answer: Any) -> InternalError:
    """The fault of an operation whose answer is not of the type that it declares."""
    declared = operation.signature.answer.__name__
    return InternalError(
        f"The operation {operation.name} answers {type(answer).__name__}, and declares {declared}.",
        extension=operation.module.partition(".")[0],
    )
