"""Arguments of operations as a request carries them, and back.

Both worlds go through here: a call on an opened file spells its arguments as a request would and reads them
back, so that a value which a server refuses is refused there with the same words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct, inspect

from svc.errors import InvalidInput, PluginError
from svc.operations.declaration import TEMPLATE_FIELD, DeclaredOperation, Page
from svc.operations.json import decode_json, encode_json
from svc.paths import format_path, parse_path

__all__ = [
    "Arguments",
    "bind_arguments",
    "check_query",
    "next_arguments",
    "pages_of",
    "read_arguments",
    "read_query",
    "write_query",
]

N = TypeVar("N", int, float)
S = TypeVar("S", bound=Struct)
T = TypeVar("T")

QueryValues = Mapping[str, str | list[str]]
"""Parameters of a URL's query; a list where one was repeated."""

_TRUE = frozenset({"true", "1", "yes", "on", ""})
_FALSE = frozenset({"false", "0", "no", "off"})
_MOST_DIGITS = 18


class Arguments(Struct, frozen=True):
    """What a request for an operation says: the encoded path of its URL, its query, and its JSON body."""

    url: str
    query: dict[str, str | list[str]]
    body: bytes | None


def bind_arguments(
    operation: DeclaredOperation[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Arguments:
    """Returns what a request says for arguments that are given as to a function.

    Raises:
        TypeError: they do not fit the operation's signature.
    """
    bound = operation.parameters.bind(*args, **kwargs).arguments

    def encoded(match: Any) -> str:
        value = bound[match[1]]
        if match[2] == "path":
            return quote(format_path(value).removeprefix("/"), safe="/")
        return quote(str(value), safe="/" if match[2] == "text" else "")

    query, body = bound.get("query"), bound.get("body")
    return Arguments(
        TEMPLATE_FIELD.sub(encoded, operation.templates[0]),
        {} if query is None else write_query(query),
        None if body is None else encode_json(body),
    )


def read_arguments(
    operation: DeclaredOperation[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns arguments as a server would read them of the request that says them.

    Raises:
        InvalidInput: a server would refuse one.
        TypeError: they do not fit the operation's signature.
    """
    signature = operation.signature
    said = bind_arguments(operation, args, kwargs)
    bound = operation.parameters.bind(*args, **kwargs).arguments
    found = {name: bound[name] for name in signature.fields}
    for name, value in found.items():
        if isinstance(value, tuple):
            found[name] = parse_path(format_path(value))
    if signature.query is not None:
        found["query"] = read_query(signature.query, said.query)
    if said.body is not None:
        found["body"] = decode_json(said.body, signature.body)
    return found


def pages_of(
    call: Callable[..., Page[T]],
    operation: DeclaredOperation[..., Page[T]],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Iterator[T]:
    """Yields the items of all pages; a page is asked for when the one before it has been used up.

    Args:
        call: calls an operation.
        operation: an operation that answers pages; its query has the member ``after``.
        args: its arguments, as for ``call``.
        kwargs: its arguments by name.
    """
    arguments: Mapping[str, Any] = operation.parameters.bind(*args, **kwargs).arguments
    while True:
        page = call(operation, **arguments)
        yield from page.items
        if not page.next_cursor:
            return
        arguments = next_arguments(operation, arguments, page.next_cursor)


def write_query(value: Struct) -> dict[str, str | list[str]]:
    """Returns a struct as parameters of a query; members that are None or empty lists are left out."""
    found: dict[str, str | list[str]] = {}
    for member, name in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
        item = getattr(value, member)
        if item is None:
            continue
        if isinstance(item, list | tuple):
            if item:
                found[name] = [_text_of(one) for one in item]
        else:
            found[name] = _text_of(item)
    return found


def read_query(form: type[S], values: QueryValues) -> S:
    """Returns the parameters of a query as a struct; those that it does not name are nobody's concern.

    A flag is true or false, a bare name is true. Of a repeated parameter that is no list the last one counts.

    Raises:
        InvalidInput: one is missing, malformed or out of bounds: ``field`` names it, ``limit`` the bound.
    """
    found: dict[str, Any] = {}
    for member, name, required, read in _readers(form):
        value = values.get(name)
        if value is not None and value != []:
            found[member] = read(name, value)
        elif required:
            raise InvalidInput(f"The query needs the parameter {name}.", field=name)
    return form(**found)


def check_query(operation: DeclaredOperation[..., Any]) -> None:
    """Refuses an operation whose query can't be read from a URL.

    Raises:
        PluginError: its query is no struct, or a member has a type that no text stands for.
    """
    form = operation.signature.query
    try:
        if form is not None:
            _readers(form)
    except (TypeError, ValueError) as error:
        raise PluginError(f"The query of {operation!r} can't be read from a URL: {error}") from error


def next_arguments(
    operation: DeclaredOperation[..., Any], arguments: Mapping[str, Any], cursor: str
) -> dict[str, Any]:
    """Returns the arguments, by name, that ask for the page at a cursor."""
    name = operation.signature.asked_in
    assert name is not None, f"{operation!r} answers no pages"
    asked = arguments.get(name) or getattr(operation.signature, name)()
    changed = {
        member: value for member, value in (("after", cursor), ("offset", 0)) if hasattr(asked, member)
    }
    return {**arguments, name: msgspec.structs.replace(asked, **changed)}


Reader = Callable[[str, "str | list[str]"], Any]


@cache
def _readers(form: type[Struct]) -> list[tuple[str, str, bool, Reader]]:
    kind = inspect.type_info(form)
    if not isinstance(kind, inspect.StructType):
        raise TypeError(f"{form!r} is no struct.")
    return [(field.name, field.encode_name, field.required, _reader_of(field.type)) for field in kind.fields]


def _reader_of(kind: inspect.Type) -> Reader:
    if isinstance(kind, inspect.Metadata):
        return _reader_of(kind.type)
    if isinstance(kind, inspect.UnionType):
        (inner,) = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        return _reader_of(inner)
    if isinstance(kind, inspect.BoolType):
        return _flag
    if isinstance(kind, inspect.IntType):
        return lambda name, value: _within(name, _integer(name, _last(value)), kind.ge, kind.le)
    if isinstance(kind, inspect.FloatType):
        return lambda name, value: _within(name, _decimal(name, _last(value)), kind.ge, kind.le)
    if isinstance(kind, inspect.ListType):
        inner_reader = _reader_of(kind.item_type)
        return lambda name, value: [inner_reader(name, one) for one in _all(value)]
    if isinstance(kind, inspect.StrType):
        return lambda name, value: _last(value)
    if isinstance(kind, inspect.LiteralType):
        return lambda name, value: _choice(name, _last(value), kind.values)
    raise TypeError(f"A parameter of a query can't be {kind!r}.")


def _flag(name: str, value: str | list[str]) -> bool:
    text = _last(value).lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise InvalidInput(f"The parameter {name} is true or false.", field=name)


def _integer(name: str, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _MOST_DIGITS:
        raise InvalidInput(f"The parameter {name} is an integer.", field=name)
    return int(text)


def _decimal(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput(f"The parameter {name} is a number.", field=name)
    return number


def _within(name: str, number: N, minimum: float | None, maximum: float | None) -> N:
    if minimum is not None and number < minimum:
        raise InvalidInput(f"The parameter {name} is at least {minimum}.", field=name, limit=minimum)
    if maximum is not None and number > maximum:
        raise InvalidInput(f"The parameter {name} is at most {maximum}.", field=name, limit=maximum)
    return number


def _choice(name: str, text: str, values: tuple[Any, ...]) -> str:
    if text in values:
        return text
    raise InvalidInput(f"The parameter {name} is one of {', '.join(map(str, values))}.", field=name)


def _last(value: str | list[str]) -> str:
    return value[-1] if isinstance(value, list) else value


def _all(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]


def _text_of(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
