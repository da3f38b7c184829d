"""Who is asking: what a request carries, the mode that judges it, and the identity that results.

An ``AuthMode`` turns ``Credentials`` into an ``Identity``. It never decides what an identity may do:
that is the pipeline's one permission function, which reads ``Identity`` and nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from msgspec import Struct

from svc.confidential import Confidential
from svc.paths import Path

if TYPE_CHECKING:
    from svc.database import Database

__all__ = [
    "ROOT_IDENTITY",
    "ROOT_USER_ID",
    "AuthContext",
    "AuthMode",
    "Credentials",
    "Identity",
    "KnownUser",
    "Operation",
    "Rights",
    "ScopedRule",
]

ROOT_USER_ID = "00000000-0000-0000-0000-000000000000"
"""The nil UUID: the root user."""

_FLAGS = "crudlify"


class Operation(Enum):
    """What can be done to a path. The value is the letter of its permission flag.

    Attributes:
        bit: the operation in a number that stands for several: 1 for the first flag, then 2, 4 and so on.
    """

    def __init__(self, letter: str) -> None:
        self.bit = 1 << _FLAGS.index(letter)

    CREATE = "c"
    READ = "r"
    UPDATE = "u"
    DELETE = "d"
    LIST = "l"
    INVOKE = "i"
    FUNCTIONS = "f"
    CONFIGURE = "y"

    @property
    def letter(self) -> str:
        """The letter of the flag."""
        return self.value

    @property
    def position(self) -> int:
        """The place of the flag in an 8-character flags string, from 0."""
        return _FLAGS.index(self.value)


class Rights(Protocol):
    """What a user may do, before the rules of a scoped key narrow it. Immutable; safe in every thread.

    Rights may have a third method, ``mask(path) -> int``: the bits of all operations that are granted on the
    path (see ``Operation.bit``). It is asked once for each row of a listing instead of ``allows`` for each
    operation, and must agree with it.

    And a fourth, ``visible_parts(operation, path) -> Iterable[tuple[Path, bool]] | None``: paths at or below
    ``path`` such that the operation is granted on no other file at or below ``path`` than in them; the flag
    says whether ``allows_below`` holds there. Paths may lie below one another. None: nothing is known.
    Searches over very many files ask it first.

    And a fifth, ``leads_on(path) -> bool``: whether reading or listing may be granted to something below the
    path, where it is not granted at the path and above. Such a directory can be listed, and shows only what
    leads there. Without it a user with a grant deep in the tree can't walk to it.

    And an attribute, ``fingerprint: bytes | None``: the same in every process while the rights are the same,
    another one wherever they differ. With it the ``ETag`` of a listing stays while only the rights of others
    change.
    """

    def allows(self, operation: Operation, path: Path) -> bool:
        """Whether the operation is granted on the path. Does not block; silence means no."""

    def allows_below(self, operation: Operation, path: Path) -> bool:
        """Whether the operation is granted on the path and on everything that is or may come below it.

        Decides whether the caller is shown totals and hashes of a directory, and saves asking for each path
        below it. Does not block, nor look at the tree. No is always safe, and the answer of rights that do
        not have this method.
        """
        return False


class ScopedRule(Struct, frozen=True):
    """One rule of a scoped key: the first whose glob matches a path decides.

    Attributes:
        glob: a path glob such as ``/reports/**``.
        flags: exactly 8 characters, the letters ``crudlify`` or ``-`` in their places.
    """

    glob: str
    flags: str


class Identity(Struct, frozen=True):
    """Who makes a request, as an auth mode found it.

    What was decided about an identity counts for as long as the mode returns the very same object; where
    rights or rules have changed it returns another.

    Attributes:
        user_id: the user's UUID as text; the nil UUID is root; None for a share key, which has no owner.
        name: what logs and commits call the caller.
        is_root: whether everything is allowed.
        auth_mode: name of the mode that made this identity.
        key_id: the API key behind the request, if there is one.
        groups: names of the groups that the user is in.
        rights: what the user may do; None means nothing, unless ``is_root``.
        rules: rules of a scoped key, in order; empty means no restriction. They are all that a share key has.
        expires_ms: when the credentials end, in Unix milliseconds; long streams close then. None: never.
    """

    user_id: str | None
    name: str
    is_root: bool = False
    auth_mode: str = ""
    key_id: str | None = None
    groups: frozenset[str] = frozenset()
    rights: Rights | None = None
    rules: tuple[ScopedRule, ...] = ()
    expires_ms: int | None = None

    @property
    def hides_denials(self) -> bool:
        """Whether a denial must look like a missing path (404) to it, rather than 403."""
        return bool(self.rules)

    @property
    def is_unrestricted_root(self) -> bool:
        """Whether it may use the routes of root: root itself, by a key without a scope."""
        return self.is_root and not self.rules


ROOT_IDENTITY = Identity(user_id=ROOT_USER_ID, name="root", is_root=True)


def _no_header(_name: str) -> str | None:
    return None


class Credentials(Confidential, frozen=True):
    """What a request says about its sender. Its representation never shows a secret.

    Attributes:
        scheme: scheme of the ``Authorization`` header in lower case (``bearer``, ``basic``), or None.
        value: what follows the scheme, or None.
        query_token: the query parameter ``token`` on the routes that take one, else None.
        remote_address: the client's IP address: the peer's, or the one that a trusted proxy names; None where
            nobody knows it, as over a Unix socket.
        secure: whether the connection is encrypted.
        method: the HTTP method.
        path: the request's path as received, percent-decoded.
        client_certificate: the verified TLS client certificate in PEM, or None.
        header: gives a request header by its name in any case, or None; for schemes that sign headers.
        as_of_s: the time, in Unix seconds, at which the credentials must not have expired; None: now. A
            request is judged again when its body has come, as of when it came: its credentials may expire
            meanwhile, but not be revoked. A mode may ignore it, and judges by now then.
    """

    shown = ("scheme", "remote_address", "secure", "method", "path")

    scheme: str | None = None
    value: str | None = None
    query_token: str | None = None
    remote_address: str | None = None
    secure: bool = False
    method: str = "GET"
    path: str = "/"
    client_certificate: str | None = None
    header: Callable[[str], str | None] = _no_header
    as_of_s: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the request carries nothing that the common schemes would look at."""
        return self.value is None and self.query_token is None and self.client_certificate is None


class AuthContext(Struct, frozen=True):
    """What a mode gets to work with, once the database is open in the process that serves.

    Attributes:
        database: the database that is served.
        argument: what follows the mode's name in ``--auth``: the path of ``file://<path>``, else ``""``.
        configuration: the validated settings of the mode's plugin in this database, or None.
    """

    database: Database
    argument: str
    configuration: Any


class KnownUser(NamedTuple):
    """A user, as an auth mode knows one who does not ask.

    Attributes:
        user_id: UUID as text, in lower case, as ``Identity`` has it.
        name: what people call the user; None where the mode cannot tell.
    """

    user_id: str
    name: str | None


class AuthMode(ABC):
    """One way to find out who is asking, chosen at start by ``--auth``.

    Objects are made at boot, before any database is open, and hold no state of a database; ``bind``
    gives the object that judges requests.

    Attributes:
        name: what ``--auth`` calls the mode. A mode that takes an argument is chosen as ``name://argument``.
        aliases: other names of the mode.
        loopback_only: True refuses to listen anywhere but on a loopback address unless the person who
            starts the server names a host.
        has_keys: whether there are credentials that the mode accepts and others that it does not. One
            without, which takes everybody for root, has no say about a root key.
        takes_argument: whether the mode can't judge a key without its argument, ``name://argument``.
        allows_argument: False refuses a start with ``name://``, so that nobody believes that it has a say.
        challenge: the ``WWW-Authenticate`` header of a 401 answer.
        asked_once_a_commit: whether ``authenticate`` is asked only once for each bearer token between two
            commits, and not after ``expires_ms``. Right where such a token and the database at HEAD alone
            decide; not where a file, another server, the path or another field of the request has a say.
            A mode without keys is asked once for all requests then. The object that ``bind`` returned is
            looked at.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    loopback_only: ClassVar[bool] = False
    has_keys: ClassVar[bool] = True
    takes_argument: ClassVar[bool] = False
    allows_argument: ClassVar[bool] = True
    challenge: ClassVar[str] = "Bearer"
    asked_once_a_commit: bool = False

    def prepare(self, context: AuthContext) -> Iterable[str]:
        """Makes a database ready for this mode, and gives the lines to print on standard output.

        Called once by a process that starts the server, before its workers; may block and write. It is
        called at every start, so what it makes, it makes once: a bootstrap key is printed only when new.
        Each line is printed before the next is asked for, so a generator that gives the key and then commits
        it keeps none that nobody has seen.
        """
        return ()

    def verify_root_key(self, context: AuthContext, key: str) -> bool | None:
        """Says whether a key is the root key of a database, for commands that work on its file.

        All modes with keys are asked whose plugin is enabled in the database. The ``argument`` of the context
        is what the command was given by ``--auth name://argument`` for this mode, else empty; a mode that
        ``takes_argument`` is not asked without one. Where one refuses, the key is refused; where none
        accepts it, it is refused too. May block; compares in constant time.

        Returns:
            True when it is; False when it claims to be a key of this mode and is not valid; None when it is
            nothing that this mode knows.
        """
        return None

    def bind(self, context: AuthContext) -> AuthMode:
        """Returns the object that authenticates for one database. Called once a worker, after fork."""
        return self

    def find_user(self, name_or_id: str) -> KnownUser | None:
        """Returns whom a name or an id means, for whoever gives something to a single user. Does not block.

        Asked of what ``bind`` returned, before the users that the database keeps. A mode that keeps its users
        elsewhere says who they are; one that cannot know them before they sign in takes every id, a UUID in
        lower case, for one of theirs. None: nobody that this mode knows.
        """
        return None

    @abstractmethod
    def authenticate(self, credentials: Credentials) -> Identity | None:
        """Judges what a request carries. Called for every request, in its greenlet.

        Where ``asked_once_a_commit`` says so it is called for fewer. It must not block for more than a
        millisecond; verified credentials are cached by the mode.

        Returns:
            The identity when the credentials are accepted; None when there are none that this mode knows,
            so that the caller is anonymous and sees public routes only.

        Raises:
            AuthRequired: there are credentials, and they are wrong, expired or revoked.
        """
