"""``svc api``: calls any operation, of a file or a server, by its method and URL."""

from __future__ import annotations

import contextlib
import sys
import threading
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urlencode

import click
import msgspec
from click.shell_completion import CompletionItem

from svc.errors import SvcError, UsageError
from svc_cli.any_operation import all_operations, call_at_url
from svc_cli.output import print_json
from svc_cli.source import Source, is_server_url, source_options

__all__ = ["api"]

METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE")
_ASKING = ("GET", "DELETE")
_COMPLETION_SECONDS = 2.0
_MOST_INPUT = 32 * 1024**2


def complete_url(context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Returns the URLs of operations that begin as what was typed, and take the method."""
    method = str(context.params.get("method") or "").lower()
    return [
        CompletionItem(path, help=operations[method].get("summary", ""))
        for path, operations in _paths(str(context.params.get("database"))).items()
        if method in operations and path.startswith(typed)
    ]


@click.command(short_help="Calls any operation by its method and URL.")
@click.argument("method", type=click.Choice(METHODS, case_sensitive=False))
@click.argument("target", metavar="URL", shell_complete=complete_url)
@click.argument("fields", metavar="[NAME=VALUE]...", nargs=-1)
@click.option(
    "--input", "input_file", metavar="FILE", type=click.File("rb"), help="The body; '-' is standard input."
)
@source_options
def api(method: str, target: str, fields: tuple[str, ...], input_file: Any, source: Source) -> None:
    """Calls the operation METHOD URL, as in: svc api POST /system/users username=ann

    NAME=VALUE is a text, NAME:=JSON any other value: members of the JSON body, or, of a GET or DELETE,
    parameters of the URL's query. Answers in JSON are printed indented, all others as they are. Over a URL
    every operation of the server can be called, on a file all that do not stream.
    """
    path, _, query_text = target.partition("?")
    if not path.startswith("/"):
        raise UsageError("URL begins with a slash, as /system/users does.", field="url")
    query: dict[str, list[str]] = parse_qs(query_text, keep_blank_values=True)
    values = dict(_field(text) for text in fields)
    body = None if input_file is None else input_file.read(_MOST_INPUT + 1)
    if body is not None and (values or len(body) > _MOST_INPUT):
        raise UsageError("--input takes at most 32 MiB, and no NAME=VALUE beside it.", field="input")
    if method in _ASKING:
        query |= {name: [_text_of(value)] for name, value in values.items()}
    elif values:
        body = msgspec.json.encode(values)
    if source.is_remote:
        _call_server(source, method, path, query, body)
    else:
        print_json(call_at_url(source, method, path, query, body))


def _call_server(
    source: Source, method: str, path: str, query: dict[str, list[str]], body: bytes | None
) -> None:
    headers = {} if body is None else {"Content-Type": "application/json"}
    with closing(source.connect()) as client:
        shown = path + (f"?{urlencode(query, doseq=True)}" if query else "")
        with client.request(method, shown, headers=headers, body=body) as response:
            if response.headers.get("Content-Type", "").partition(";")[0] == "application/json":
                print_json(response.json(Any))
                return
            for piece in response.arriving():
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()


def _paths(database: str) -> dict[str, dict[str, Any]]:
    """The operations of a server, as its OpenAPI document has them, or those of the plugins here."""
    paths: dict[str, dict[str, Any]] = {}
    if is_server_url(database):
        from svc.operations.system import show_openapi

        def ask() -> None:
            with contextlib.suppress(SvcError):
                paths.update(Source(database).call(show_openapi)["paths"])

        # A server that does not answer must not keep a shell waiting.
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(_COMPLETION_SECONDS)
        return dict(paths)
    for operation in all_operations():
        for template in operation.templates:
            paths.setdefault(template, {})[operation.method.lower()] = {"summary": operation.summary}
    return paths


def _field(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not name.removesuffix(":"):
        raise UsageError("A member is given as NAME=VALUE or NAME:=JSON.", field="fields")
    if not name.endswith(":"):
        return name, value
    try:
        return name[:-1], msgspec.json.decode(value)
    except msgspec.DecodeError:
        raise UsageError(f"The value of {name[:-1]} is no JSON.", field="fields") from None


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
