"""The declaration of an operation: a typed function, and what its signature does not say.

The function's first argument is the ``Call``. An argument with the name of a field of the URL template is
taken from the URL; ``query`` is a struct of the URL's query, ``body`` what the request's JSON body holds. An
argument with a default may be left out. The return annotation is what is answered:

- a struct, or what else msgspec encodes: JSON;
- a subclass of ``Page``: a part of a list, whose rest is asked for with ``query.after``;
- ``Created[T]``: a ``T``, and whether it is new (201) or was there (200);
- ``bytes``, alone or beside others: a stream, which a responder sends.

An operation that streams or is hot names its ``responder``, a Falcon responder that answers in its place. Its
function has a docstring and no body: it declares the same facts.
"""

from __future__ import annotations

import inspect
import re
import time
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from types import ModuleType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from msgspec import Struct

from svc.errors import PluginError, SvcError
from svc.operations.access import Access, AccessKind
from svc.paths import Path

__all__ = [
    "ArrayPage",
    "Created",
    "DeclaredOperation",
    "Page",
    "Signature",
    "Weight",
    "operation",
    "operations_of",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R_co = TypeVar("R_co", covariant=True)
P = ParamSpec("P")

TEMPLATE_FIELD = re.compile(r"\{([^}:]+)(?::([^}]*))?\}")
"""A field of a URL template: its name, and its converter."""


_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""A token of RFC 9110, 5.6.2."""


class Weight(Enum):
    """What an operation costs.

    Attributes:
        SMALL: it is answered from a few records, on the loop.
        DEAR: it may read or compute much; of these few run at a time.
        STREAMING: its request or answer has no bound, and is sent as it comes.
    """

    SMALL = "small"
    DEAR = "dear"
    STREAMING = "streaming"


class Page(Struct, Generic[T_co], frozen=True, kw_only=True):
    """A part of a list. A subclass adds the list, named as in JSON, and is not to have another before it.

    Attributes:
        has_more: whether more follows, although the list may be empty.
        next_cursor: what the next page begins at, as its ``after``; None: this is the last.
    """

    has_more: bool = False
    next_cursor: str | None = None

    @property
    def items(self) -> list[T_co]:
        """The items of this part."""
        values = (getattr(self, name) for name in self.__struct_fields__)
        return next((value for value in values if isinstance(value, list)), [])


class ArrayPage(Page[T_co], frozen=True, kw_only=True):
    """A part of a list whose JSON is the bare array; a header field of the answer repeats ``next_cursor``."""


class Created(Struct, Generic[T_co], frozen=True):
    """What an operation has made, or has found to be there already. Its JSON is the value's."""

    value: T_co
    created: bool


class Signature(Struct, frozen=True):
    """What a function says by its signature.

    ``query`` and ``body`` are None where it takes none. ``answer`` is what the JSON of an answer holds: of a
    ``Created`` its value.
    """

    fields: tuple[str, ...]
    query: Any
    body: Any
    needs_body: bool
    answer: Any
    creates: bool

    @property
    def pages(self) -> bool:
        """Whether it answers a part of a list, whose rest can be asked for."""
        is_page = isinstance(self.answer, type) and issubclass(self.answer, Page)
        return is_page and self.asked_in is not None

    @property
    def asked_in(self) -> str | None:
        """The argument whose member ``after`` asks for another part: ``query``, ``body``, or None."""
        for name, form in (("query", self.query), ("body", self.body)):
            if "after" in getattr(form, "__struct_fields__", ()):
                return name
        return None

    @property
    def is_array(self) -> bool:
        """Whether the JSON of an answer is the bare array of its items."""
        return isinstance(self.answer, type) and issubclass(self.answer, ArrayPage)


@dataclass(frozen=True, eq=False, repr=False)
class DeclaredOperation(Generic[P, R_co]):
    """An operation. Calling it runs the function with a ``Call``; ``operation`` makes it.

    Attributes:
        function: the function.
        method: the HTTP method.
        templates: the URL templates; the first is the one that clients use.
        access: what the caller needs.
        status: the HTTP status of success; of ``Created`` that of what was there is 200.
        errors: errors that it raises beside those that follow from its declaration.
        stated_weight: what it costs; None: nobody has said it.
        headers: header fields of the answer, by name, with the member of the answer that each repeats.
        cache: the answer's ``Cache-Control``, where it is not the usual one.
        maximum_body: most bytes of a JSON body; None: the plugin's setting ``maximum_json``, or 1 MiB.
        time_limit: name of the plugin's setting that says how many seconds it may take; None: no such limit.
        media_types: of a raw body and of a raw answer, where the signature says ``bytes``.
        responder: ``module:attribute`` of the responder that answers in its place; None: there is none.
        repeatable: whether a client may send it again when the answer was lost; None: as HTTP has it.
        reads: whether it changes nothing, so that a file can be opened for reading.
    """

    function: Callable[Concatenate[Any, P], R_co]
    method: str
    templates: tuple[str, ...]
    access: Access
    status: int
    errors: tuple[type[SvcError], ...]
    stated_weight: Weight | None
    headers: Mapping[str, str]
    cache: str | None
    maximum_body: int | None
    time_limit: str | None
    media_types: tuple[str, str]
    responder: str | None
    repeatable: bool | None
    reads: bool

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    @property
    def module(self) -> str:
        """The module that declares it."""
        return self.function.__module__

    @property
    def weight(self) -> Weight:
        """What it costs: where nobody has said it, perhaps much."""
        return self.stated_weight or Weight.DEAR

    def __call__(self, call: Any, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Runs the function."""
        return self.function(call, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<operation {self.module}.{self.name}: {self.method} {self.templates[0]}>"

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self._words[0]

    @property
    def description(self) -> str:
        """The docstring below its first line, without the sections about arguments and errors."""
        return self._words[1]

    @cached_property
    def parameters(self) -> inspect.Signature:
        """The function's parameters without the first, for binding arguments.

        A raw body is none of them: it is sent beside the arguments.
        """
        found = inspect.signature(self.function)
        _, *taken = found.parameters.values()
        raw = ("bytes", bytes)
        return found.replace(
            parameters=[each for each in taken if each.name != "body" or each.annotation not in raw]
        )

    @cached_property
    def signature(self) -> Signature:
        """What the function says by its signature; annotations are evaluated here, once.

        Raises:
            PluginError: an annotation can't be evaluated, or an argument is of no kind that there is.
        """
        names = {"Call": object, "Path": Path}
        try:
            hints = typing.get_type_hints(self.function, localns=names, include_extras=True)
        except Exception as error:
            raise PluginError(f"The annotations of {self!r} can't be evaluated: {error}.") from error
        fields = {match[1] for match in TEMPLATE_FIELD.finditer(self.templates[0])}
        for parameter in self.parameters.parameters.values():
            if parameter.name not in {*fields, "query", "body"} or parameter.name not in hints:
                raise PluginError(
                    f"The argument {parameter.name!r} of {self!r} is no field of the URL, query or body, "
                    "or has no annotation."
                )
        body = inspect.signature(self.function).parameters.get("body")
        answer = hints.get("return", Any)
        creates = typing.get_origin(answer) is Created
        return Signature(
            fields=tuple(name for name in self.parameters.parameters if name in fields),
            query=hints.get("query"),
            body=hints.get("body"),
            needs_body=body is not None and body.default is inspect.Parameter.empty,
            answer=typing.get_args(answer)[0] if creates else answer,
            creates=creates,
        )

    def deadline(self, configuration: Any) -> float | None:
        """Returns until when a call that begins now may take, by ``time.monotonic``; None: for ever."""
        if self.time_limit is None:
            return None
        seconds: float = getattr(configuration, self.time_limit)
        return time.monotonic() + seconds

    def check(self) -> None:
        """Looks at the whole declaration.

        Raises:
            PluginError: something of it can't be so.
        """
        signature = self.signature
        for template in self.templates:
            missing = [name for name in signature.fields if name not in _fields(template)]
            if missing:
                raise PluginError(f"The template {template!r} of {self!r} has no field {missing[0]!r}.")
            needs_path = self.access.kind in (AccessKind.ALL, AccessKind.ANY)
            if needs_path and _fields(template).get(str(self.access.path_field)) != "path":
                raise PluginError(
                    f"{self!r} needs the path field {{{self.access.path_field}:path}}; "
                    f"the template {template!r} lacks it."
                )
        if not self.summary:
            raise PluginError(f"{self!r} has no docstring.")
        raw = bytes in (signature.body, signature.answer) or bytes in typing.get_args(signature.answer)
        if raw and self.responder is None:
            raise PluginError(f"{self!r} takes or answers bytes, and names no responder that does so.")
        for name, member in self.headers.items():
            if not _HEADER.fullmatch(name):
                raise PluginError(f"{self!r} names the header {name!r}: that is no name of a field.")
            if self.responder is None and not hasattr(signature.answer, member):
                raise PluginError(f"The header {name} of {self!r} repeats {member!r}: no answer has it.")

    @cached_property
    def _words(self) -> tuple[str, str]:
        first, _, rest = inspect.cleandoc(self.function.__doc__ or "").partition("\n")
        rest = re.split(r"^(?:Args|Returns|Raises|Yields):$", rest, maxsplit=1, flags=re.MULTILINE)[0]
        return first.strip(), rest.strip()


def operation(  # noqa: PLR0913 - each is a fact of its own, given by name
    method: str,
    template: str,
    access: Access,
    *,
    older: tuple[str, ...] = (),
    status: int = 200,
    errors: tuple[type[SvcError], ...] = (),
    weight: Weight | None = None,
    headers: Mapping[str, str] | None = None,
    cache: str | None = None,
    maximum_body: int | None = None,
    time_limit: str | None = None,
    media_types: tuple[str, str] = ("application/octet-stream", "application/octet-stream"),
    responder: str | None = None,
    repeatable: bool | None = None,
    reads: bool | None = None,
) -> Callable[[Callable[Concatenate[Any, P], R_co]], DeclaredOperation[P, R_co]]:
    """Declares a function to be an operation; see the module for what its signature says.

    Args:
        method: HTTP method.
        template: URL template. A field ``{path:path}`` takes the rest of the URL as a path of the database,
            ``{name:text}`` as a text.
        access: what the caller needs, such as ``requires_root``.
        older: further templates with the same fields, which serve the same.
        status: HTTP status of success.
        errors: errors that it raises, beside those of every operation of its kind: malformed requests,
            missing credentials and permission, limits.
        weight: what it costs. One that does not say it counts as ``DEAR``.
        headers: header fields of the answer: by name, the member of the answer that the field repeats.
        cache: ``Cache-Control`` of the answer.
        maximum_body: most bytes of a JSON body, within the server's limit. None: the plugin's setting
            ``maximum_json``, or 1 MiB.
        time_limit: name of the plugin's setting that says how many seconds it may take: ``call.deadline``
            follows from it.
        media_types: of a raw request body, and of a raw answer.
        responder: ``module:attribute`` of a Falcon responder that answers instead of the function.
        repeatable: whether sending it twice does what sending it once does. None: as HTTP says of the method.
        reads: whether it changes nothing, so that a file can be opened for reading. None: a GET does not.
    """

    def declare(function: Callable[Concatenate[Any, P], R_co]) -> DeclaredOperation[P, R_co]:
        return DeclaredOperation(
            function,
            method,
            (template, *older),
            access,
            status,
            errors,
            weight,
            headers or {},
            cache,
            maximum_body,
            time_limit,
            media_types,
            responder,
            repeatable,
            method == "GET" if reads is None else reads,
        )

    return declare


def operations_of(module: ModuleType) -> Iterator[DeclaredOperation[..., Any]]:
    """Yields the operations that a module declares, in its order; what it imported is not its own."""
    for value in vars(module).values():
        if isinstance(value, DeclaredOperation) and value.module == module.__name__:
            yield value


def _fields(template: str) -> dict[str, str | None]:
    return {match[1]: match[2] for match in TEMPLATE_FIELD.finditer(template)}
