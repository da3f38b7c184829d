"""What an operation is handed: the database, who asks, and the settings of its plugin; nothing of HTTP."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from svc.errors import Forbidden
from svc.paths import Path

if TYPE_CHECKING:
    from svc.database import Database, Version
    from svc.findings import Finding
    from svc.pipeline.settings import Limits
    from svc.plugins import (
        AuthMode,
        Extension,
        Family,
        Identity,
        KnownUser,
        Operation,
        PluginContext,
        Plugins,
    )

__all__ = ["Call"]

T = TypeVar("T")


class Call(ABC):
    """One call of an operation: of a request to a server, or of root on an opened file.

    Attributes:
        is_served: whether a server answers, which has an auth mode; false on an opened file.
        plugin: the context of the plugin whose operation this is; None for operations of the kernel.
        request_id: what the answer's ``X-Request-Id`` says and log lines carry; empty on a file.
        client_address: IP address of a server's client: the peer's, or, where the peer is a trusted proxy,
            the one that it names. None where nobody knows it, as over a Unix socket.
        deadline: until when the call may take, by ``time.monotonic``; None: its operation has no such limit.
        limits: the limits of this server.
    """

    __slots__ = ()

    is_served: ClassVar[bool] = True
    plugin: PluginContext | None
    request_id: str
    client_address: str | None
    deadline: float | None
    limits: Limits

    @property
    @abstractmethod
    def identity(self) -> Identity:
        """Who asks.

        Raises:
            AuthRequired: nobody was asked for: the operation is public.
        """

    @property
    @abstractmethod
    def identity_or_none(self) -> Identity | None:
        """Who asks; None for public operations."""

    @property
    @abstractmethod
    def database(self) -> Database:
        """The database. Only what answers while it is being opened finds none."""

    @property
    @abstractmethod
    def version(self) -> Version:
        """HEAD's version, as it was when the call began."""

    @property
    @abstractmethod
    def auth_mode(self) -> AuthMode:
        """The auth mode of this server, bound to the database; for operations that sign callers in.

        Raises:
            ServiceUnavailable: its plugin was disabled in the database.
        """

    @property
    @abstractmethod
    def plugins(self) -> Plugins:
        """The plugins of this process."""

    @abstractmethod
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong, as the processes that serve the database see it; for operations of the kernel."""

    @property
    @abstractmethod
    def actor(self) -> str | None:
        """What a commit of this call records as its actor."""

    @abstractmethod
    def find_user(self, name_or_id: str) -> KnownUser | None:
        """Returns a user whom the auth mode knows, by id or name; a file's call takes every id for one."""

    @abstractmethod
    def may(self, operation: Operation, path: Path, *, directory: bool = False) -> bool:
        """Whether the caller may do ``operation`` to ``path``.

        Args:
            operation: what.
            path: the path.
            directory: whether a directory stands there: see ``permits``.
        """

    @abstractmethod
    def may_below(self, operation: Operation, path: Path) -> bool:
        """Whether the caller may do ``operation`` to ``path`` and everything below it, whatever is there.

        Cheap; no also means that only asking for each path can tell.
        """

    @abstractmethod
    def may_somewhere(self, *operations: Operation) -> bool:
        """Whether there may be a path, empty or not, to which the caller may do one of ``operations``.

        Cheap; decided from what was granted alone. No is certain.
        """

    @abstractmethod
    def permissions(self, path: Path, *, directory: bool = False) -> str:
        """The 8-character flags of what the caller may do to ``path``; ``directory`` as for ``may``."""

    @abstractmethod
    def authorize(self, operation: Operation, path: Path, *, directory: bool = False) -> None:
        """Lets the call go on only if the caller may do ``operation`` to ``path``.

        Args:
            operation: what.
            path: the path.
            directory: whether a directory stands there: see ``permits``.

        Raises:
            AuthRequired: nobody is authenticated.
            NotFound: the caller may not, and must not learn whether the path exists (scoped keys, and
                the system namespace for everyone).
            Forbidden: the caller may not.
        """

    @property
    def configuration(self) -> Any:
        """The validated settings of the operation's plugin, in this database; or None."""
        return None if self.plugin is None else self.plugin.configuration

    def extensions(self, family: Family[T]) -> Mapping[str, Extension[T]]:
        """What other plugins have added to a family that the operation's plugin drives, by name.

        Raises:
            PluginError: it does not drive the family.
        """
        if self.plugin is None:
            raise RuntimeError("This operation belongs to no plugin that is in use.")
        return self.plugin.extensions(family)

    def authorize_root(self) -> None:
        """Lets the call go on only if the caller is root, and not by a scoped key.

        Raises:
            AuthRequired: nobody is authenticated.
            Forbidden: somebody else is.
        """
        if not self.identity.is_unrestricted_root:
            raise Forbidden("Only root may do this.")
