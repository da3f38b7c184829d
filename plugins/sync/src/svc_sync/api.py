"""What carries the questions of nodes: the family of transports, and how their servers get answers.

A transport has two halves. Its client sends a question to an address; its server, routes that require root
in most cases, hands what arrives to ``answer_question`` and sends back what that returns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from svc.plugin import Family, NamedRegistry, hookspec

if TYPE_CHECKING:
    from svc.plugin import Database, PluginContext

__all__ = [
    "FAMILIES",
    "MAXIMUM_ANSWER",
    "MAXIMUM_QUESTION",
    "TRANSPORTS",
    "Connection",
    "Transport",
    "answer_question",
]

MAXIMUM_QUESTION = 1 << 20
"""No question has more bytes."""
MAXIMUM_ANSWER = 16 << 20
"""No answer has more bytes."""


class Connection(ABC):
    """A way to one node; for one thread at a time."""

    @abstractmethod
    def post(self, path: str, payload: bytes, media_type: str, token: str | None) -> bytes:
        """Sends a request and returns the body of its answer; blocks, but not for ever.

        Args:
            path: of the URL, such as ``/sync/hello``.
            payload: the body.
            media_type: of the body, and of the answer.
            token: bearer token; None sends none.

        Raises:
            ServiceUnavailable: the node does not answer, or says nothing that can be used.
            SvcError: what the node has answered: NotFound, Forbidden, AuthRequired, Conflict, InvalidInput.
        """

    def close(self) -> None:
        """Ends the connection."""

    def abort(self) -> None:
        """Lets a ``post`` fail that goes on in another thread; does not block. Nothing happens by default."""


class Transport(ABC):
    """A way to carry questions. Stateless: one object serves all databases of a process.

    Attributes:
        name: lower-case words.
        schemes: of the addresses that it can reach, such as ``https``; each belongs to one transport.
    """

    name: ClassVar[str]
    schemes: ClassVar[tuple[str, ...]]

    @abstractmethod
    def check_address(self, address: str, context: PluginContext) -> None:
        """Refuses an address that can't be one, or that the settings do not let in.

        Raises:
            InvalidInput: says why.
        """

    @abstractmethod
    def connect(self, address: str, context: PluginContext) -> Connection:
        """Returns a connection; does not block, so nobody may be there.

        Raises:
            InvalidInput: as ``check_address``.
        """


def answer_question(database: Database, question: str, payload: bytes) -> bytes:
    """Returns the answer to a question of another node; blocks, and may commit.

    Args:
        database: that is asked.
        question: its name, such as ``hello``.
        payload: what came with it.

    Raises:
        SvcError: what is to be answered instead.
    """
    from svc_sync.exchange.answering import answer

    return answer(database, question, payload)


@hookspec
def svc_register_sync_transports(sync_transports: NamedRegistry[Transport]) -> None:
    """Adds transports: ``sync_transports.add(MyTransport())``.

    Called at boot, in the processes that serve databases.
    """


TRANSPORTS: Family[Transport] = Family(
    "sync_transports",
    "transport",
    Transport,
    lambda transport: tuple(dict.fromkeys((transport.name, *transport.schemes))),
)
FAMILIES = (TRANSPORTS,)
