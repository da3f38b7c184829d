"""What plugins add to the portal: pages, links, actions, previews, cards and ways to sign in.

An author subclasses a contract here, sets its attributes, and registers one object of it by the hook of its
family. Objects are shared by all requests of a process and hold no state. Templates lie in the folder
``templates`` beside the module of the class, and what they load in ``static``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from svc.errors import AuthRequired, InvalidInput, MethodNotAllowed, SvcError
from svc.plugin import Family, NamedRegistry, Path, hookspec

if TYPE_CHECKING:
    from svc.plugin import OperationAnswer
    from svc_portal.requests import PortalRequest
    from svc_portal.session import Session

__all__ = [
    "ENTRY_ACTIONS",
    "FAMILIES",
    "PAGES",
    "PORTAL_LINKS",
    "PREVIEWS",
    "SIGN_INS",
    "STATE_CARDS",
    "Act",
    "Answer",
    "EntryAction",
    "Field",
    "Handed",
    "Message",
    "PortalEntry",
    "PortalLink",
    "PortalPage",
    "PortalRequest",
    "Preview",
    "PreviewedFile",
    "Redirect",
    "RootPage",
    "Session",
    "Shown",
    "SignIn",
    "StateCard",
    "Undo",
    "svc_register_entry_actions",
    "svc_register_portal_links",
    "svc_register_portal_pages",
    "svc_register_previews",
    "svc_register_sign_ins",
    "svc_register_state_cards",
]

_NAME = re.compile(r"[a-z][a-z0-9]*([.-][a-z0-9]+)*")
_TEMPLATE = re.compile(r"[a-z0-9-]+(/([a-z0-9._-]+|\{[a-z_]+(:path)?\}))*")
_OWN_PATHS = ("static", "renew", "sign-in", "sign-out")


# What a page answers ---------------------------------------------------------------------------------------


class Undo(Struct, frozen=True):
    """How what was done is taken back: a form that is posted to a page.

    Attributes:
        url: of the page, as ``PortalRequest.url`` gives it.
        form: the fields of the form.
    """

    url: str
    form: dict[str, str]


class Message(Struct, frozen=True):
    """What the next page says on top.

    Attributes:
        text: one sentence.
        undo: how to take it back; None: it can't be.
        is_error: whether something went wrong.
    """

    text: str
    undo: Undo | None = None
    is_error: bool = False


class Shown(Struct, frozen=True):
    """A page.

    Attributes:
        template: the file in the folder ``templates`` of the class's package.
        values: what it gets, beside ``request`` and ``portal``.
        title: of the page; None: that of its class.
        message: what it says on top.
        status: HTTP status.
    """

    template: str
    values: Mapping[str, Any] = {}
    title: str | None = None
    message: Message | None = None
    status: int = 200


class Redirect(Struct, frozen=True):
    """Another page, as after something was done.

    Attributes:
        to: where it is, as ``PortalRequest.url`` gives it.
        message: what it says on top.
    """

    to: str
    message: Message | None = None


class Handed(Struct, frozen=True):
    """The answer of an operation as it is, such as an archive to save."""

    answer: OperationAnswer


Answer = Shown | Redirect | Handed

Act = Callable[["PortalRequest"], Answer | Message]
"""What a form does; a message is said on the page that has the form."""


# What plugins add ------------------------------------------------------------------------------------------


class PortalPage(ABC):
    """A page of the portal, or all pages below a path.

    Attributes:
        name: what ``PortalRequest.url`` calls it, such as ``files`` or ``tasks.one``.
        path: below ``/portal/``, such as ``files/{path:path}``: a field in braces is one name, ``:path``
            takes the rest.
        title: what the page is called.
        place: where its link stands among those in the navigation, the lowest first; None: it has none there.
        follows: name of the page whose link in the navigation is marked where this one is shown.
        refused_to: name of the page, with the same fields, that says what an operation refused to a form;
            None: this one.
        shows_entries: whether any file or directory is shown here, by the field ``path``.
    """

    name: ClassVar[str]
    path: ClassVar[str]
    title: ClassVar[str]
    place: ClassVar[int | None] = None
    follows: ClassVar[str | None] = None
    refused_to: ClassVar[str | None] = None
    shows_entries: ClassVar[bool] = False

    def is_for(self, request: PortalRequest) -> bool:
        """Whether the page is for who asks: to all others there is none. Called for each page; cheap.

        It is about what to offer. What somebody may do is decided by the operations that the page calls.
        """
        return True

    @abstractmethod
    def show(self, request: PortalRequest) -> Answer:
        """Answers a GET. Changes nothing.

        Raises:
            SvcError: the page of that error is shown.
        """

    def acts(self) -> Mapping[str, Act]:
        """What the forms of the page do, by their field ``action``; empty where they have none."""
        return {}

    def act(self, request: PortalRequest) -> Answer:
        """Answers the POST of a form by one of ``acts``; only pages of this server get so far.

        Raises:
            SvcError: the page of that error is shown.
        """
        acts = self.acts()
        if not acts:
            raise MethodNotAllowed("This page takes no form.", allowed=["GET"])
        step = acts.get(request.form.get("action"))
        if step is None:
            raise InvalidInput("This page has no such form.", field="action")
        try:
            done = step(request)
        except AuthRequired:
            raise
        except SvcError as error:
            return self.refused(request, Message(error.message, is_error=True))
        return Redirect(request.here, done) if isinstance(done, Message) else done

    def refused(self, request: PortalRequest, message: Message) -> Answer:
        """Answers a form of ``acts`` to which an operation said no; ``message`` says why."""
        to = request.here if self.refused_to is None else request.url(self.refused_to, **request.fields)
        return Redirect(to, message)


class RootPage(PortalPage):
    """A page for root alone, as its operations are."""

    def is_for(self, request: PortalRequest) -> bool:
        """Root, with all rights."""
        return request.identity.is_unrestricted_root


class PortalLink(ABC):
    """A link in the header of all pages.

    Attributes:
        name: unique.
        title: its text.
        url: where it leads, a path of this server.
        relation: its ``rel``, such as ``help``.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    url: ClassVar[str]
    relation: ClassVar[str | None] = None


class PortalEntry(Struct, frozen=True):
    """A file, directory or link that a page shows.

    Attributes:
        path: where it stands.
        kind: ``file``, ``directory`` or ``symlink``.
        content_type: of a file.
    """

    path: Path
    kind: str
    content_type: str | None = None


class EntryAction(ABC):
    """A link among the actions of a file or directory.

    Attributes:
        name: unique.
        title: its text.
        place: where it stands, the lowest first.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    place: ClassVar[int] = 50

    @abstractmethod
    def url(self, request: PortalRequest, entry: PortalEntry) -> str | None:
        """Returns where it leads; None: it is not for this entry. Called for each row of a listing; cheap."""


class PreviewedFile(Struct, frozen=True):
    """A file that is previewed.

    Attributes:
        path: where it stands.
        content_type: its media type, in lower case and without parameters.
        size: bytes.
        url: where its bytes are, for ``src`` attributes.
        read: returns its first bytes, so many at most; raises SvcError.
    """

    path: Path
    content_type: str
    size: int
    url: str
    read: Callable[[int], bytes]


class Preview(ABC):
    """Shows the contents of files of some types.

    Attributes:
        name: unique.
        content_types: what it shows, such as ``image/png`` or ``text/*``; the exact one goes first.
        template: its template; it has no layout of its own.
    """

    name: ClassVar[str]
    content_types: ClassVar[tuple[str, ...]]
    template: ClassVar[str]

    @abstractmethod
    def values(self, request: PortalRequest, file: PreviewedFile) -> Mapping[str, Any] | None:
        """Returns what the template gets; None where the file can't be shown. Reads a bounded part of it."""


class StateCard(ABC):
    """A part of the page on the state of the server.

    Attributes:
        name: unique.
        title: its heading.
        template: its template; it has no layout of its own.
        place: where it stands, the lowest first.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    template: ClassVar[str]
    place: ClassVar[int] = 50

    @abstractmethod
    def values(self, request: PortalRequest) -> Mapping[str, Any] | None:
        """Returns what the template gets; None: the card is not for who asks."""


class Field(Struct, frozen=True):
    """A field of a form for signing in.

    Attributes:
        name: of the field.
        label: what people read.
        kind: the ``type`` of the input; a hidden one has what the address of the page says, for links that
            lead there.
        completes: its ``autocomplete``.
    """

    name: str
    label: str
    kind: str = "text"
    completes: str = "off"


class SignIn(ABC):
    """A way to sign in at the portal. The session that it begins is renewed and ended by it.

    Attributes:
        name: unique.
        title: what the button says.
        fields: of its form.
        hint: one sentence below the form.
        place: where its form stands, the lowest first.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    fields: ClassVar[tuple[Field, ...]]
    hint: ClassVar[str] = ""
    place: ClassVar[int] = 50

    @abstractmethod
    def is_offered(self, request: PortalRequest) -> bool:
        """Whether the auth mode of this server has this way."""

    @abstractmethod
    def sign_in(self, request: PortalRequest, values: Mapping[str, str]) -> Session | Message:
        """Returns a new session; or what to say, where it begins elsewhere, as by a link that was mailed.

        Raises:
            AuthRequired: the values are not good; the message is shown above the form.
            RateLimited: too many have failed.
        """

    @abstractmethod
    def renew(self, request: PortalRequest, renewal: str) -> Session | None:
        """Returns the session that follows; None where the text is none of its own.

        Two pages may renew one session at once: both must get one.

        Raises:
            AuthRequired: the session has ended.
        """

    @abstractmethod
    def end(self, request: PortalRequest, renewal: str) -> bool:
        """Ends the session of a renewal or token, with its tokens; returns whether it was one of its own."""


# Families --------------------------------------------------------------------------------------------------


def _check_named(kind: type, *others: str) -> Callable[[object], str | None]:
    def check(thing: object) -> str | None:
        if not isinstance(thing, kind):
            return f"must be an instance of svc_portal.api.{kind.__name__}"
        if not _NAME.fullmatch(str(getattr(thing, "name", ""))):
            return "its name must be lower-case words joined by dots or hyphens"
        for other in others:
            if not getattr(thing, other, None):
                return f"must have {other}"
        return None

    return check


def _check_page(thing: object) -> str | None:
    problem = _check_named(PortalPage, "path", "title")(thing)
    if problem is not None:
        return problem
    path = str(getattr(thing, "path", ""))
    if not _TEMPLATE.fullmatch(path) or ":path}" in path.removesuffix(":path}"):
        return f"the path {path!r} is no path such as 'files/{{path:path}}'"
    if path.partition("/")[0] in _OWN_PATHS:
        return f"the path {path!r} is the portal's own"
    return None


PAGES: Family[PortalPage] = Family("portal_pages", "portal page", _check_page)
PORTAL_LINKS: Family[PortalLink] = Family(
    "portal_links", "portal link", _check_named(PortalLink, "title", "url")
)
ENTRY_ACTIONS: Family[EntryAction] = Family(
    "entry_actions", "entry action", _check_named(EntryAction, "title")
)
PREVIEWS: Family[Preview] = Family("previews", "preview", _check_named(Preview, "content_types", "template"))
STATE_CARDS: Family[StateCard] = Family(
    "state_cards", "state card", _check_named(StateCard, "title", "template")
)
SIGN_INS: Family[SignIn] = Family("sign_ins", "sign-in", _check_named(SignIn, "title", "fields"))
FAMILIES = (PAGES, PORTAL_LINKS, ENTRY_ACTIONS, PREVIEWS, STATE_CARDS, SIGN_INS)


@hookspec
def svc_register_portal_pages(portal_pages: NamedRegistry[PortalPage]) -> None:
    """Adds pages: ``portal_pages.add(MyPage())``.

    Called at boot, in the processes that serve databases.
    """


@hookspec
def svc_register_portal_links(portal_links: NamedRegistry[PortalLink]) -> None:
    """Adds links to the header of all pages: ``portal_links.add(MyLink())``.

    Called at boot, in the processes that serve databases.
    """


@hookspec
def svc_register_entry_actions(entry_actions: NamedRegistry[EntryAction]) -> None:
    """Adds links to the actions of files and directories: ``entry_actions.add(MyAction())``.

    Called at boot, in the processes that serve databases.
    """


@hookspec
def svc_register_previews(previews: NamedRegistry[Preview]) -> None:
    """Adds previews of files: ``previews.add(MyPreview())``.

    Called at boot, in the processes that serve databases.
    """


@hookspec
def svc_register_state_cards(state_cards: NamedRegistry[StateCard]) -> None:
    """Adds parts of the page on the state of the server: ``state_cards.add(MyCard())``.

    Called at boot, in the processes that serve databases.
    """


@hookspec
def svc_register_sign_ins(sign_ins: NamedRegistry[SignIn]) -> None:
    """Adds ways to sign in: ``sign_ins.add(MySignIn())``.

    Called at boot, in the processes that serve databases.
    """


_HOMES = {"PortalRequest": "svc_portal.requests", "Session": "svc_portal.session"}


def __getattr__(name: str) -> Any:
    # What serves is loaded when it is used: contracts need none of it.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(home), name)
    return value
