"""What a page is handed: who asks for what, and all that it needs to answer."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import parse_qs, quote, urlencode

import falcon

from svc.errors import InvalidInput, UnsupportedMediaType
from svc.plugin import (
    Extension,
    Identity,
    Operation,
    OperationAnswer,
    Path,
    PluginContext,
    SvcRequest,
    body_stream,
    call_operation,
    format_path,
    send_operation,
)
from svc_portal.api import (
    ENTRY_ACTIONS,
    PAGES,
    PREVIEWS,
    SIGN_INS,
    EntryAction,
    PortalEntry,
    PreviewedFile,
    SignIn,
)
from svc_portal.multipart import MULTIPART_TYPE, SentFile, read_multipart
from svc_portal.rendering import package_of, render

if TYPE_CHECKING:
    from markupsafe import Markup

    from svc.plugin import Call, DeclaredOperation

__all__ = ["Form", "PortalRequest", "in_order", "page_url"]

P = ParamSpec("P")
R = TypeVar("R")

PREFIX = "/portal/"
MOST_FORM_BYTES = 1024 * 1024
MOST_FORM_FIELDS = 10_000
FORM_TYPE = "application/x-www-form-urlencoded"


class Form:
    """The fields of a form, or of a query; each may stand there several times."""

    def __init__(self, values: Mapping[str, list[str]]) -> None:
        self._values = values

    def __contains__(self, name: object) -> bool:
        """Whether there is such a field, empty or not."""
        return name in self._values

    def get(self, name: str, default: str = "") -> str:
        """Returns a field's value, the last of several."""
        found = self._values.get(name)
        return found[-1] if found else default

    def all(self, name: str) -> list[str]:
        """Returns all values of a field."""
        return self._values.get(name, [])

    def number(self, name: str, most: int, refusal: str) -> int | None:
        """Returns a number from 1 to ``most``; None for an empty field.

        Raises:
            InvalidInput: it is something else; ``refusal`` says what it must be.
        """
        text = self.get(name).strip()
        if text and not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= most):
            raise InvalidInput(refusal, field=name)
        return int(text) if text else None

    def require(self, name: str) -> str:
        """Returns a field's value.

        Raises:
            InvalidInput: there is none, or it is empty.
        """
        found = self.get(name)
        if not found:
            raise InvalidInput(f"The field {name} is empty.", field=name)
        return found


class PortalRequest:
    """A request for a page.

    Attributes:
        http: the request, for what stands nowhere here.
        answer: its response; a page answers by what it returns.
        fields: the fields of the page's path: text, or a ``Path`` where it takes the rest.
        query: the parameters of the URL.
        form: the fields of the form; empty for a GET.
        files: those of a form that is ``multipart/form-data``, of at most 8 MiB in all.
        page: name of the page; empty for the portal's own.
    """

    def __init__(self, req: SvcRequest, resp: falcon.Response) -> None:
        self.http = req
        self.answer = resp
        self.fields: Mapping[str, Any] = {}
        self.query = _parsed(req.query_string)
        self.form = Form({})
        self.files: list[SentFile] = []
        self.page = ""
        self._plugin: PluginContext | None = None
        self._offered: list[tuple[EntryAction, PortalRequest]] | None = None

    # -- who asks, and for what ------------------------------------------------------------------

    @property
    def context(self) -> Call:
        """The call that the request is: the database, its version, the auth mode. Its plugin is ours."""
        return self.http.context

    @property
    def plugin(self) -> PluginContext:
        """The plugin that has added the page, with its settings."""
        return self._plugin or self.portal

    @property
    def portal(self) -> PluginContext:
        """The portal's own context."""
        found = self.http.context.plugin
        assert found is not None
        return found

    @property
    def identity(self) -> Identity:
        """Who asks.

        Raises:
            AuthRequired: nobody is signed in.
        """
        return self.context.identity

    def may(self, operation: Operation, path: Path, *, directory: bool = False) -> bool:
        """Whether who asks may do something to a path; for what to offer, see ``Call.may``."""
        return self.context.may(operation, path, directory=directory)

    # -- operations ------------------------------------------------------------------------------

    def call(self, operation: DeclaredOperation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Returns what an operation answers to who asks; see ``svc.plugin.call_operation``."""
        return call_operation(self.http, operation, *args, **kwargs)

    def send(self, operation: DeclaredOperation[..., Any], *args: Any, **kwargs: Any) -> OperationAnswer:
        """Returns the answer of an operation as it is; see ``svc.plugin.send_operation``."""
        return send_operation(self.http, operation, *args, **kwargs)

    # -- pages -----------------------------------------------------------------------------------

    def url(self, page: str, query: Mapping[str, Any] | None = None, **fields: Any) -> str:
        """Returns the address of a page.

        Args:
            page: its name.
            query: parameters; those that are None or empty are left out.
            fields: the fields of its path.

        Raises:
            KeyError: no plugin in use has such a page, or a field is missing.
        """
        return page_url(self.portal.extensions(PAGES)[page].value.path, query, **fields)

    @property
    def here(self) -> str:
        """The address of the page that is asked for, without its parameters."""
        return self.url(self.page, **self.fields)

    def url_if(self, page: str, query: Mapping[str, Any] | None = None, **fields: Any) -> str | None:
        """Returns the address of a page of whatever plugin; None where none in use has it."""
        return self.url(page, query, **fields) if page in self.portal.extensions(PAGES) else None

    def crumbs(
        self, page: str, title: str, path: Path, query: Mapping[str, Any] | None = None
    ) -> list[tuple[str, str]]:
        """Returns the way to a path for ``svc_portal/crumbs.html``: names, and where a page is about each."""
        names = (title, *path)
        return [(name, self.url(page, query, path=path[:length])) for length, name in enumerate(names)]

    def user_name(self, user_id: str) -> str:
        """Returns how a page calls a user of whom the operation gives the id: the reader by name."""
        return self.identity.name if user_id == self.identity.user_id else user_id

    def entry_url(self, path: Path) -> str | None:
        """Returns where a file or directory is shown; None where no plugin in use does that."""
        pages = (one.value for one in self.portal.extensions(PAGES).values())
        return next((page_url(page.path, path=path) for page in pages if page.shows_entries), None)

    def actions(self, entry: PortalEntry) -> list[tuple[str, str]]:
        """Returns what plugins offer to do with an entry: titles and addresses, in their order."""
        if self._offered is None:
            # Asked for each row of a listing.
            extensions = in_order(self.portal.extensions(ENTRY_ACTIONS).values())
            self._offered = [(extension.value, self._for(extension)) for extension in extensions]
        offered = ((action.title, action.url(request, entry)) for action, request in self._offered)
        return [(title, url) for title, url in offered if url is not None]

    def preview(self, file: PreviewedFile) -> Markup | None:
        """Returns a preview of a file, as part of a page; None where no plugin shows this type."""
        for content_type in (file.content_type, f"{file.content_type.partition('/')[0]}/*"):
            for extension in self.portal.extensions(PREVIEWS).values():
                if content_type in extension.value.content_types:
                    request = self._for(extension)
                    values = extension.value.values(request, file)
                    if values is not None:
                        return render(request, package_of(extension.value), extension.value.template, values)
        return None

    # -- of the portal ---------------------------------------------------------------------------

    def sign_ins(self) -> Sequence[Extension[SignIn]]:
        """The ways to sign in that this server has, in their order."""
        found = in_order(self.portal.extensions(SIGN_INS).values())
        return [one for one in found if one.value.is_offered(self._for(one))]

    def read_form(self) -> None:
        """Reads the form that was sent.

        Raises:
            UnsupportedMediaType: it is none.
            PayloadTooLarge, InvalidInput: it is too large, or malformed.
        """
        content_type = (self.http.content_type or FORM_TYPE).partition(";")[0].strip().lower()
        if content_type == MULTIPART_TYPE:
            fields, self.files = read_multipart(self.http)
            self.form = Form(fields)
            return
        if content_type != FORM_TYPE:
            raise UnsupportedMediaType(f"A form is sent as {FORM_TYPE}.")
        body = body_stream(self.http, MOST_FORM_BYTES).read(-1)
        try:
            self.form = _parsed(body.decode("ascii"))
        except UnicodeDecodeError:
            raise InvalidInput("The form is not encoded as forms are.") from None

    def for_extension(self, extension: Extension[Any]) -> PortalRequest:
        """Returns this request as the plugin of an extension sees it."""
        return self._for(extension)

    def _for(self, extension: Extension[Any]) -> PortalRequest:
        other = copy.copy(self)
        other._plugin = extension.context
        return other


def page_url(template: str, query: Mapping[str, Any] | None = None, **fields: Any) -> str:
    """Returns the address of a page whose path has a template."""
    segments: list[str] = []
    for part in template.split("/"):
        if not part.startswith("{"):
            segments.append(part)
        elif part.endswith(":path}"):
            segments.append(_quoted(fields[part[1:-6]]))
        else:
            segments.append(quote(str(fields[part[1:-1]]), safe=""))
    given = {name: value for name, value in (query or {}).items() if value not in (None, "")}
    return f"{PREFIX}{'/'.join(segments)}" + (f"?{urlencode(given, doseq=True)}" if given else "")


@lru_cache(maxsize=1024)
def _quoted(path: Path) -> str:
    return quote(format_path(path).removeprefix("/"), safe="/")


def _parsed(text: str) -> Form:
    try:
        return Form(parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FORM_FIELDS))
    except ValueError:
        raise InvalidInput("The form has too many fields, or is not encoded as forms are.") from None


def in_order(extensions: Iterable[Extension[Any]]) -> list[Extension[Any]]:
    """Returns extensions in the order of their places."""
    return sorted(extensions, key=lambda one: (one.value.place, one.value.name))
