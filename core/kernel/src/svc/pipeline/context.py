"""What a responder knows about its request beyond HTTP: ``req.context``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.errors import AuthRequired, Forbidden
from svc.operations.call import Call
from svc.paths import Path, format_path
from svc.pipeline.callers import Caller
from svc.pipeline.framework import LeanRequest
from svc.pipeline.permission import effective_permissions, permits
from svc.pipeline.refusals import hidden_path
from svc.pipeline.settings import Limits
from svc.plugins.contracts import Identity, Operation

if TYPE_CHECKING:
    from svc.database import Database, Version
    from svc.findings import Finding
    from svc.pipeline.lifetime import Lifetime
    from svc.pipeline.service import CommitState, Service
    from svc.plugins import AuthMode, KnownUser, PluginContext, Plugins

__all__ = ["RequestContext", "SvcRequest"]


class RequestContext(Call):
    """The call that a request is. Responders read it; only the pipeline writes it.

    Attributes:
        request_id: what the answer's ``X-Request-Id`` says and log lines carry.
        database: the database that is served.
        plugin: the context of the plugin whose route this is; None on the kernel's routes.
        client_address: IP address of the client: the peer's, or, where the peer is a trusted proxy, the one
            that it names. None where nobody knows it, as over a Unix socket.
        deadline: until when the call may take, by ``time.monotonic``; None: there is no such limit.
        limits: the limits of this server.
        lifetime: tells long streams when the server stops.
        service: what this process serves; set on the kernel's routes alone.
        commit_state: what the pipeline found when it routed the request; None on the kernel's routes.
        caller: who asks, with what was decided about them; None on public routes.
    """

    __slots__ = (
        "_database",
        "caller",
        "challenge",
        "client_address",
        "commit_state",
        "deadline",
        "lifetime",
        "limits",
        "plugin",
        "request_id",
        "service",
    )

    def __init__(self) -> None:
        self.request_id = ""
        self.client_address: str | None = None
        self.deadline: float | None = None
        self.caller: Caller | None = None
        self.plugin: PluginContext | None = None
        self.limits = _DEFAULT_LIMITS
        self.challenge = "Bearer"
        self.lifetime: Lifetime
        self.service: Service
        self.commit_state: CommitState | None = None
        self._database: Database | None = None

    @property
    def identity(self) -> Identity:
        """See ``Call``."""
        caller = self.caller
        if caller is None:
            raise AuthRequired("This needs valid credentials.")
        return caller.identity

    @property
    def identity_or_none(self) -> Identity | None:
        """See ``Call``."""
        return None if self.caller is None else self.caller.identity

    @property
    def database(self) -> Database:
        """See ``Call``."""
        if self.commit_state is not None:
            return self.commit_state.live.database
        if self._database is None:
            raise RuntimeError("The database is not open yet.")
        return self._database

    @database.setter
    def database(self, database: Database) -> None:
        self._database = database

    @property
    def version(self) -> Version:
        """See ``Call``."""
        return self.database.at() if self.commit_state is None else self.commit_state.version

    @property
    def auth_mode(self) -> AuthMode:
        """See ``Call``."""
        if self.commit_state is None:
            raise RuntimeError("This route belongs to no plugin that is in use.")
        return self.commit_state.live.auth_mode_of(self.commit_state)

    def find_user(self, name_or_id: str) -> KnownUser | None:
        """See ``Call``."""
        return self.auth_mode.find_user(name_or_id)

    @property
    def plugins(self) -> Plugins:
        """See ``Call``."""
        state = self.commit_state
        return self.service.plugins if state is None else state.live.plugins

    def findings(self) -> tuple[Finding, ...]:
        """See ``Call``."""
        self.service.require().commit_state()  # what was just enabled is started, or fails to
        return self.service.findings()

    @property
    def actor(self) -> str | None:
        """See ``Call``."""
        identity = self.identity_or_none
        return None if identity is None else identity.user_id or identity.name

    def may(self, operation: Operation, path: Path, *, directory: bool = False) -> bool:
        """See ``Call``."""
        caller = self.caller
        if caller is None:
            return False
        if directory:
            return permits(caller.identity, operation, path, directory=True)
        mask = caller.decisions.get(path)
        if mask is None:
            mask = caller.decide(path)
        return bool(mask & operation.bit)

    def may_below(self, operation: Operation, path: Path) -> bool:
        """See ``Call``."""
        return self.caller is not None and permits(self.caller.identity, operation, path, below=True)

    def may_somewhere(self, *operations: Operation) -> bool:
        """See ``Call``."""
        caller = self.caller
        return caller is not None and any(map(caller.may_somewhere, operations))

    def permissions(self, path: Path, *, directory: bool = False) -> str:
        """See ``Call``."""
        if self.caller is None:
            return "-" * len(Operation)
        return effective_permissions(self.caller.identity, path, directory=directory)

    def authorize(self, operation: Operation, path: Path, *, directory: bool = False) -> None:
        """See ``Call``."""
        if not self.may(operation, path, directory=directory):
            raise denial(self.identity, operation, path)


def denial(identity: Identity, operation: Operation, path: Path) -> Exception:
    """Returns the error that tells ``identity`` that it may not do ``operation`` to ``path``."""
    if identity.is_unrestricted_root or identity.hides_denials:
        # Root is denied nothing but the system namespace, which is a missing path to everyone.
        return hidden_path(path)
    return Forbidden(f"You may not {operation.name.lower()} this path.", path=format_path(path))


class SvcRequest(LeanRequest):
    """Falcon's request with our context in it."""

    __slots__ = ()

    context_type = RequestContext
    context: RequestContext  # type: ignore[assignment]


_DEFAULT_LIMITS = Limits()
