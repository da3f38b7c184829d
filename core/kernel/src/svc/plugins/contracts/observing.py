"""Observers of requests: who is told of each request once it is answered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from svc.steps import Step

if TYPE_CHECKING:
    from svc.plugins.context import PluginContext

__all__ = ["FinishedRequest", "RequestObserver"]


class FinishedRequest(Struct, frozen=True):
    """A request that was answered, or whose client has left. It holds no credentials and no query.

    Attributes:
        request_id: what ``X-Request-Id`` of the answer says.
        method: as the client sent it; there may be any word.
        route: the template of the route, as ``/files/{path:path}``; empty where there is none.
        path: the path of the URL, decoded; secrets that look like some are replaced.
        scheme: ``http`` or ``https``.
        protocol: version of HTTP, as ``1.1``.
        status: of the answer; 499 where the client left before it.
        is_complete: whether the answer went out whole.
        began_ns: when it began, Unix nanoseconds.
        seconds: how long it took, to the last byte of the answer.
        received: bytes of its body.
        sent: bytes of the answer's.
        trace_parent: its field ``traceparent`` (W3C Trace Context) as the client sent it, or None.
        trace_state: its field ``tracestate``, or None.
        began: when it began, by ``time.monotonic``, as its steps have it.
        steps: what it waited for: ``commit``, and in that ``commit.lock`` and ``log.sync``.
    """

    request_id: str
    method: str
    route: str
    path: str
    scheme: str
    protocol: str
    status: int
    is_complete: bool
    began_ns: int
    seconds: float
    received: int
    sent: int
    trace_parent: str | None
    trace_state: str | None
    began: float
    steps: tuple[Step, ...] = ()


class RequestObserver(ABC):
    """One observer. Stateless: one object serves all databases of a process.

    Attributes:
        name: what the registry calls it; begin it with the id of the plugin.
    """

    name: ClassVar[str]

    @abstractmethod
    def finished(self, request: FinishedRequest, context: PluginContext) -> None:
        """Takes note of a request, in its greenlet or thread: returns within microseconds and never waits.

        Called for all requests of a database in which the plugin is enabled, those of other plugins too. An
        exception is logged, and nothing is told to this observer for a minute. What is costly is put into a
        bounded queue here, and done elsewhere.
        """
