"""Operations on an opened database file, as root: what ``svc_client.Client`` is for a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import msgspec

from svc.errors import BY_CODE, Conflict, UsageError
from svc.operations import Call, DeclaredOperation, Page
from svc.operations.values import pages_of, read_arguments
from svc.paths import Path
from svc.plugins import ROOT_IDENTITY, Identity, KnownUser, Operation

if TYPE_CHECKING:
    from svc.database import Database, Version
    from svc.findings import Finding
    from svc.pipeline.settings import Limits
    from svc.plugins import AuthMode, PluginContext, Plugins

__all__ = ["FileCall", "FileService"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class FileCall(Call):
    """A call of root on an opened file. Commits record no actor: nobody signed in."""

    __slots__ = ("_database", "client_address", "deadline", "plugin", "request_id")

    is_served = False

    def __init__(self, database: Database, plugin: PluginContext | None) -> None:
        self._database = database
        self.plugin = plugin
        self.client_address = None
        self.request_id = ""
        self.deadline: float | None = None

    @property
    def limits(self) -> Limits:  # type: ignore[override]
        """The limits that a server has by default."""
        from svc.pipeline.settings import Limits

        return Limits()

    @property
    def identity(self) -> Identity:
        """Root."""
        return ROOT_IDENTITY

    @property
    def identity_or_none(self) -> Identity | None:
        """Root."""
        return ROOT_IDENTITY

    @property
    def database(self) -> Database:
        """See ``Call``."""
        return self._database

    @property
    def version(self) -> Version:
        """See ``Call``."""
        return self._database.at()

    @property
    def auth_mode(self) -> AuthMode:
        """There is none.

        Raises:
            UsageError: always.
        """
        raise UsageError("This is for a server: nobody signs in to a file.")

    @property
    def plugins(self) -> Plugins:
        """See ``Call``."""
        from svc_cli.opening import boot_plugins

        return boot_plugins(self._database)

    def findings(self) -> tuple[Finding, ...]:
        """See ``Call``."""
        from svc.findings import merge_findings
        from svc_cli.processes.registration import published_lists

        return merge_findings(*(each.findings for each in published_lists(self._database.state_directory)))

    @property
    def actor(self) -> str | None:
        """None."""
        return None

    def find_user(self, name_or_id: str) -> KnownUser | None:
        """Takes every id for a user's: which auth mode will serve the file is not known here."""
        return KnownUser(name_or_id, None)

    def may(self, operation: Operation, path: Path, *, directory: bool = False) -> bool:
        """Root may."""
        return True

    def may_below(self, operation: Operation, path: Path) -> bool:
        """Root may."""
        return True

    def may_somewhere(self, *operations: Operation) -> bool:
        """Root may."""
        return True

    def permissions(self, path: Path, *, directory: bool = False) -> str:
        """All flags."""
        return "".join(operation.letter for operation in Operation)

    def authorize(self, operation: Operation, path: Path, *, directory: bool = False) -> None:
        """Root may; the system namespace is a missing path to everyone."""
        from svc.paths import is_system_path

        if is_system_path(path):
            from svc.pipeline.refusals import hidden_path

            raise hidden_path(path)


class FileService:
    """Calls operations on an opened database; see ``Source.open_service``.

    Attributes:
        database: the opened database.
    """

    def __init__(self, database: Database, context_of: Callable[[str], PluginContext | None]) -> None:
        self.database = database
        self._context_of = context_of
        self._contexts: dict[str, PluginContext | None] = {}

    def call(self, operation: DeclaredOperation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs an operation as root and returns its answer; blocks.

        Raises:
            InvalidInput: a value that a server would refuse too.
            SvcError: what the operation raises.
        """
        if operation.responder is not None:
            raise UsageError(f"{operation.name} streams: it is not to be had of a file this way.")
        arguments = read_arguments(operation, args, kwargs)
        if operation.module not in self._contexts:
            self._contexts[operation.module] = self._context_of(operation.module)
        call = FileCall(self.database, self._contexts[operation.module])
        call.deadline = operation.deadline(call.configuration)
        try:
            answer: Any = operation.function(call, **arguments)  # type: ignore[call-arg]
        except Conflict as error:
            # A batch conflicts whatever its operation is refused for; a client raises that instead.
            kind = BY_CODE.get(str(error.details.get("reason")))
            if kind is None:
                raise
            raise kind(error.message, **error.details) from None
        if isinstance(answer, dict):
            # What is hot may answer the JSON of what it declares.
            answer = msgspec.convert(answer, operation.signature.answer)
        found: R = answer
        return found

    def items(
        self, operation: DeclaredOperation[P, Page[T]], *args: P.args, **kwargs: P.kwargs
    ) -> Iterator[T]:
        """Yields the items of all pages of an operation; raises as ``call``."""
        return pages_of(self.call, operation, args, kwargs)
