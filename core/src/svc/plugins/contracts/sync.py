"""How nodes of a cluster reach each other.

A transport carries messages between two nodes; what the messages mean is the sync plugin's affair, so that
a new transport needs no word about conflicts or clocks, and a new message needs no new transport.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from svc.hashing import Hash

__all__ = ["PeerAddress", "SyncConnection", "SyncTransport"]


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """Where a peer is, and how to be sure of it.

    Attributes:
        url: the peer's address; its scheme selects the transport.
        require_encryption: refuse a connection that is not encrypted, loopback excepted.
        certificate_file: client certificate to present, PEM, or None.
        key_file: its private key, or None.
        authority_file: certificate authorities to trust instead of the system's, PEM, or None.
        timeout_ms: how long a single exchange may stay without progress.
    """

    url: str
    require_encryption: bool = True
    certificate_file: str | None = None
    key_file: str | None = None
    authority_file: str | None = None
    timeout_ms: int = 30_000


class SyncConnection(ABC):
    """An open connection to one peer, used by one greenlet or thread at a time."""

    @abstractmethod
    def call(self, operation: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sends one message and returns the answer. Blocks.

        Args:
            operation: ``join``, ``status``, ``diff`` or another that both nodes know.
            message: members that JSON can carry.

        Raises:
            AuthRequired: the peer does not accept this node.
            ServiceUnavailable: the peer cannot be reached, or did not answer in time.
            SvcError: what the peer answered, as the error it reported.
        """

    @abstractmethod
    def fetch_chunks(self, hashes: Sequence[Hash]) -> Iterator[tuple[Hash, bytes]]:
        """Yields the chunks that the peer has, in any order; the caller verifies them. Blocks."""

    @abstractmethod
    def close(self) -> None:
        """Ends the connection; a second call does nothing."""


class SyncTransport(ABC):
    """A way to reach a peer.

    Attributes:
        name: what status answers call the transport.
        schemes: URL schemes that it serves.
    """

    name: ClassVar[str]
    schemes: ClassVar[tuple[str, ...]]

    @abstractmethod
    def connect(self, peer: PeerAddress, token: Callable[[], str]) -> SyncConnection:
        """Opens a connection in the background process. Blocks.

        Args:
            peer: where to.
            token: gives a fresh bearer token; called for each exchange, since tokens are short-lived.

        Raises:
            InvalidInput: the address is not one that this transport can use.
            ServiceUnavailable: the peer cannot be reached.
        """
