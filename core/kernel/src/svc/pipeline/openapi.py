"""The OpenAPI 3.1 document of a server, made of what its operations declare.

See https://spec.openapis.org/oas/v3.1.0. Schemas come from the structs (JSON Schema 2020-12, by msgspec),
words from docstrings and from ``Meta(description=...)`` of fields.
"""

from __future__ import annotations

import logging
import typing
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from svc import __version__
from svc.errors import (
    AuthRequired,
    Conflict,
    Forbidden,
    InternalError,
    InvalidInput,
    NotFound,
    PayloadTooLarge,
    RateLimited,
    ServiceUnavailable,
    SvcError,
    UnsupportedMediaType,
)
from svc.operations import AccessKind, DeclaredOperation
from svc.operations.declaration import TEMPLATE_FIELD, Signature
from svc.pipeline.binding import all_routes, endpoints_of
from svc.plugins import Plugins, enabled_plugins
from svc.plugins.registry import KERNEL

if typing.TYPE_CHECKING:
    from svc.operations import Call
    from svc.pipeline.routing import Endpoint

__all__ = ["describe_operations", "has_schema"]

logger = logging.getLogger(__name__)

Document = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"
_JSON = "application/json"


class Error(Struct):
    """Why a request was refused; ``code`` is for programs. Further members say more."""

    error: str
    code: str


def describe_operations(call: Call) -> Document:
    """Returns the OpenAPI document of everything that the server of a call answers; not to be changed.

    Only operations of plugins that the database has enabled are described.
    """
    return _described(call.plugins, frozenset(enabled_plugins(call.database)))


@lru_cache(maxsize=4)
def _described(plugins: Plugins, enabled: frozenset[str]) -> Document:
    endpoints = [
        (route.template, method, endpoint)
        for route in all_routes(plugins)
        if route.plugin_id == KERNEL or route.plugin_id in enabled
        for method, endpoint in endpoints_of(route).items()
    ]
    try:
        types = _schemas_of(endpoints)
    except TypeError:
        endpoints = [
            (template, method, endpoint if has_schema(endpoint) else replace(endpoint, operation=None))
            for template, method, endpoint in endpoints
        ]
        types = _schemas_of(endpoints)
    paths: Document = {}
    for template, method, endpoint in endpoints:
        shown = TEMPLATE_FIELD.sub(lambda field: f"{{{field[1]}}}", template)
        described = _described_endpoint(template, method, endpoint, types)
        paths.setdefault(shown, {})[method.lower()] = described
    tags = sorted({endpoint.plugin_id for _, _, endpoint in endpoints})
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "svc",
            "version": __version__,
            "summary": "A database of files that keeps every version.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag, "description": _summary_of(plugins, tag)} for tag in tags],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": types.components,
            "responses": types.errors,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An access token, or an API key where the auth mode takes keys as tokens.",
                }
            },
        },
    }


def _summary_of(plugins: Plugins, plugin_id: str) -> str:
    descriptor = plugins.descriptors.get(plugin_id)
    return "The kernel: health, findings, plugins" if descriptor is None else descriptor.summary


class _Schemas:
    """The schemas of everything that operations take and answer, and where each is in the document."""

    def __init__(self, operations: Iterable[DeclaredOperation[..., Any]]) -> None:
        types: list[Any] = [Error]
        for operation in operations:
            types += _json_forms(operation.signature)
        unique = list({repr(form): form for form in types}.values())
        schemas, self.components = msgspec.json.schema_components(unique, ref_template=_REFERENCE)
        self.errors: Document = {}
        self._schemas = {repr(form): schema for form, schema in zip(unique, schemas, strict=True)}

    def of(self, form: Any) -> Document:
        return self._schemas[repr(form)]

    def error(self, kinds: list[type[SvcError]]) -> Document:
        """Where the answer that reports one of some errors is in the document."""
        name = "Or".join(dict.fromkeys(kind.__name__ for kind in kinds))
        words = " ".join(dict.fromkeys((kind.__doc__ or "").partition("\n")[0] for kind in kinds))
        self.errors[name] = {"description": words, "content": {_JSON: {"schema": self.of(Error)}}}
        return {"$ref": f"#/components/responses/{name}"}

    def parameters_of(self, form: type[Struct]) -> Iterator[Document]:
        """The members of a struct, each as a parameter of a query."""
        name = self.of(form)["$ref"].rpartition("/")[2]
        schema = self.components[name]
        for member, declared in schema.get("properties", {}).items():
            parameter = {"name": member, "in": "query", "required": member in schema.get("required", ())}
            described = _without_null(declared)
            words = described.pop("description", None)
            yield {**parameter, **({} if words is None else {"description": words}), "schema": described}


def _without_null(schema: Document) -> Document:
    """A parameter that may be left out is never null: it is absent."""
    forms = [form for form in schema.get("anyOf", ()) if form != {"type": "null"}]
    found = {name: value for name, value in schema.items() if name != "anyOf"}
    found |= forms[0] if len(forms) == 1 else {"anyOf": forms} if forms else {}
    if found.get("default", ...) is None:
        del found["default"]
    return found


def _schemas_of(endpoints: Iterable[tuple[str, str, Endpoint]]) -> _Schemas:
    return _Schemas(endpoint.operation for _, _, endpoint in endpoints if endpoint.operation is not None)


def _json_forms(signature: Signature) -> list[Any]:
    asked = [form for form in (signature.query, signature.body) if form not in (None, bytes)]
    return asked + _json_answers(signature)


def has_schema(endpoint: Endpoint) -> bool:
    """Whether all that an operation takes and answers has a schema; one without is logged."""
    if endpoint.operation is None:
        return True
    try:
        msgspec.json.schema_components(_json_forms(endpoint.operation.signature))
    except TypeError as error:
        logger.warning("%r of the plugin %s has no schema: %s", endpoint.operation, endpoint.plugin_id, error)
        return False
    return True


def _json_answers(signature: Signature) -> list[Any]:
    answer = signature.answer
    if signature.is_array:
        return [msgspec.structs.fields(answer)[0].type]
    if isinstance(answer, typing.Hashable) and answer is bytes:
        return []
    found = [form for form in typing.get_args(answer) if form is not bytes] if _is_union(answer) else [answer]
    return [form for form in found if form is not type(None)]


def _is_union(form: Any) -> bool:
    import types

    return typing.get_origin(form) in (typing.Union, types.UnionType)


def _described_endpoint(template: str, method: str, endpoint: Endpoint, types: _Schemas) -> Document:
    operation = endpoint.operation
    is_public = endpoint.is_public
    described: Document = {"tags": [endpoint.plugin_id], "security": [] if is_public else [{"bearer": []}]}
    parameters: list[Document] = [
        {"name": field[1], "in": "path", "required": True, "schema": {"type": "string"}}
        for field in TEMPLATE_FIELD.finditer(template)
    ]
    if operation is None:
        described["operationId"] = f"{endpoint.plugin_id}.{method}.{template}"
        described["responses"] = {"default": {"description": "What the plugin answers."}}
        return {**described, "parameters": parameters}
    signature = operation.signature
    place = operation.templates.index(template)
    described["operationId"] = f"{endpoint.plugin_id}.{operation.name}" + (f".{place}" if place else "")
    described["summary"] = operation.summary
    described |= {"description": operation.description} if operation.description else {}
    if place:
        described["deprecated"] = True
    if signature.query is not None:
        parameters += types.parameters_of(signature.query)
    if signature.body is not None:
        raw = signature.body is bytes
        form = {operation.media_types[0]: {}} if raw else {_JSON: {"schema": types.of(signature.body)}}
        described["requestBody"] = {"required": signature.needs_body, "content": form}
    described["parameters"] = parameters
    described["responses"] = dict(_responses(operation, types))
    described["x-svc-weight"] = operation.weight.value
    described["x-svc-requires"] = {
        "kind": operation.access.kind.value,
        "operations": [needed.name.lower() for needed in operation.access.operations],
    }
    return described


def _responses(operation: DeclaredOperation[..., Any], types: _Schemas) -> Iterator[tuple[str, Document]]:
    signature = operation.signature
    content: Document = {}
    answers = _json_answers(signature)
    if len(answers) == 1:
        content[_JSON] = {"schema": types.of(answers[0])}
    elif answers:
        content[_JSON] = {"schema": {"anyOf": [types.of(form) for form in answers]}}
    if signature.answer is bytes or bytes in typing.get_args(signature.answer):
        content[operation.media_types[1]] = {}
    headers = {name: {"schema": {"type": "string"}} for name in operation.headers}
    success: Document = {"description": operation.summary}
    success |= {"headers": headers} if headers else {}
    success |= {"content": content} if content else {}
    yield str(operation.status), success
    if signature.creates and operation.status != 200:
        yield "200", {**success, "description": "It was there already, or was replaced."}
    by_status: dict[int, list[type[SvcError]]] = {}
    for error in _errors(operation):
        by_status.setdefault(error.status, []).append(error)
    for status, errors in sorted(by_status.items()):
        yield str(status), types.error(errors)


def _errors(operation: DeclaredOperation[..., Any]) -> Iterator[type[SvcError]]:
    """What it raises: what it names, and what follows from the rest of its declaration."""
    signature, access = operation.signature, operation.access
    yield from operation.errors
    yield from (InvalidInput, InternalError, ServiceUnavailable)
    if not operation.reads:
        yield Conflict  # others may change the same all the time
    if signature.body is not None:
        yield from (PayloadTooLarge, UnsupportedMediaType)
    if access.kind is not AccessKind.PUBLIC:
        yield from (AuthRequired, Forbidden, NotFound, RateLimited)
    elif signature.fields:
        yield NotFound
