"""Operations by their method and URL, for those that are not known when a command is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from svc.errors import UsageError

if TYPE_CHECKING:
    from svc.operations import DeclaredOperation
    from svc_cli.source import Source

__all__ = ["all_operations", "call_at_url"]


def call_at_url(
    source: Source,
    method: str,
    path: str,
    query: Mapping[str, str | list[str]],
    body: bytes | None,
) -> Any:
    """Calls the operation of a method and an encoded path on a file, and returns its answer.

    Raises:
        NotFound: no operation of the plugins here is at this URL; MethodNotAllowed: none takes the method.
        UsageError: it streams.
    """
    from svc.operations.json import decode_json
    from svc.operations.matching import match_operation
    from svc.operations.values import read_query

    found = match_operation(all_operations(), method, path)
    operation, signature = found.operation, found.operation.signature
    if operation.responder is not None:
        raise UsageError(f"{method} {operation.templates[0]} streams: it needs a server's URL.", field="url")
    arguments: dict[str, Any] = dict(found.fields)
    if signature.query is not None:
        arguments["query"] = read_query(signature.query, query)
    if signature.body is not None and (body is not None or signature.needs_body):
        arguments["body"] = decode_json(body or b"", signature.body)
    answer: Any = source.call(operation, **arguments)
    if signature.creates:
        answer = answer.value
    return answer.items if signature.is_array else answer


def all_operations() -> Iterator[DeclaredOperation[..., Any]]:
    """Yields the operations of the kernel and of the plugins that are in use here."""
    from svc.operations import operations_of, system
    from svc_cli.opening import boot_commands

    yield from operations_of(system)
    for descriptor in boot_commands().descriptors.values():
        try:
            yield from [*descriptor.declared_operations()]
        except (Exception, SystemExit):  # noqa: BLE001 - of whoever wrote it; the boot of a server tells of it
            continue
