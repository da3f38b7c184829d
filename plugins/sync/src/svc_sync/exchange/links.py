"""Asking another node: messages over a connection of a transport, with a token of this cluster."""

from __future__ import annotations

import time
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from svc.errors import InvalidInput, ServiceUnavailable, SvcError
from svc.plugin import Database, Extension
from svc_sync.api import Connection, Transport
from svc_sync.exchange.messages import (
    HelloAnswer,
    HelloMessage,
    ObjectsAnswer,
    ObjectsMessage,
    PageAnswer,
    PageMessage,
    PullAnswer,
    PullMessage,
    TreeAnswer,
    TreeMessage,
    decode_message,
    encode_message,
    read_register_path,
)
from svc_sync.exchange.parts import HIDDEN_ROOT

__all__ = ["Link", "check_address", "connect"]

T = TypeVar("T")
_CBOR, _JSON = "application/cbor", "application/json"
_TOKEN_SECONDS = 300
_EXCHANGE_SECONDS = 150.0
_SLOWEST_BYTES = 16 << 10


class Link:
    """A connection to another node.

    Args:
        database: of this node; its signing key makes the tokens.
        connection: leads to the other node.
        token: what is sent instead of tokens of this node: to join, one of the other's; empty: none.
    """

    def __init__(self, database: Database, connection: Connection, token: str | None = None) -> None:
        self._database = database
        self._connection = connection
        self._token = token
        self._sent = self._received = 0
        self._waited_s = 0.0
        self._asked_at: float | None = None
        self._carried = 0
        self._is_aborted = False

    def take_counts(self) -> tuple[int, int]:
        """Returns how many bytes were sent and received since this was called last."""
        counts = self._sent, self._received
        self._sent = self._received = 0
        return counts

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def begin_exchange(self) -> None:
        """Says that an exchange begins: it may take its time anew."""
        self._waited_s, self._carried = 0.0, 0

    def abort_if_overdue(self) -> None:
        """Ends a question whose answer is waited for, if the exchange takes too long; for another thread.

        All answers together may take 150 seconds, and a second more for each 16 KiB that has come. What this
        node does between them does not count.
        """
        asked_at = self._asked_at
        if asked_at is None:
            return
        waited = self._waited_s + time.monotonic() - asked_at
        if waited > _EXCHANGE_SECONDS + self._carried / _SLOWEST_BYTES:
            self._is_aborted = True
            self._connection.abort()

    def hello(self, message: HelloMessage) -> HelloAnswer:
        """Asks who the other is."""
        return self._ask("hello", message, HelloAnswer)

    def registers(self, message: PageMessage) -> PageAnswer:
        """Asks for a page.

        Raises:
            InvalidInput: another page would not lead further.
        """
        answer = self._ask("registers", message, PageAnswer)
        if not answer.last:
            _check_leads_on(message.after, answer.registers[-1][0] if answer.registers else None)
        return answer

    def tree(self, message: TreeMessage) -> TreeAnswer:
        """Asks for leaves of the version that is kept for this node.

        Raises:
            InvalidInput: another part would not lead further.
        """
        answer = self._ask("tree", message, TreeAnswer)
        if answer.after is not None and message.root == HIDDEN_ROOT:
            # The cursor is sealed. The time of the exchange bounds what leads on for ever.
            if answer.after == message.after:
                raise InvalidInput("The other node has sent a part that is not the last and leads nowhere.")
        elif answer.after is not None:
            _check_leads_on(message.after, answer.after)
        return answer

    def objects(self, message: ObjectsMessage) -> ObjectsAnswer:
        """Asks for chunks, or for their hashes."""
        return self._ask("objects", message, ObjectsAnswer)

    def pull(self, message: PullMessage) -> PullAnswer:
        """Tells the other that this node has something new."""
        return self._ask("pull", message, PullAnswer)

    def call(self, path: str, body: Struct | dict[str, Any], form: type[T]) -> T:
        """Sends JSON to a route, and returns its answer."""
        payload = self._post(path, msgspec.json.encode(body), _JSON)
        try:
            return msgspec.json.decode(payload, type=form)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ServiceUnavailable("The other node has answered something else.") from error

    def _ask(self, question: str, message: Struct, form: type[T]) -> T:
        return decode_message(self._post(f"/sync/{question}", encode_message(message), _CBOR), form)

    def _post(self, path: str, payload: bytes, media_type: str) -> bytes:
        token = self._bearer()
        self._is_aborted = False
        self._asked_at = began = time.monotonic()
        self._sent += len(payload)
        try:
            answer = self._connection.post(path, payload, media_type, token)
        except SvcError as error:
            if self._is_aborted:
                raise ServiceUnavailable("The node takes too long for an exchange.") from error
            raise
        finally:
            self._asked_at = None
            self._waited_s += time.monotonic() - began
        self._received += len(answer)
        self._carried += len(payload) + len(answer)
        return answer

    def _bearer(self) -> str | None:
        from svc_auth_self.api import root_token

        return root_token(self._database, _TOKEN_SECONDS) if self._token is None else self._token


def _check_leads_on(after: str | None, last: str | None) -> None:
    """Refuses pages of which there is no end."""
    if last is None or (after is not None and read_register_path(last) <= read_register_path(after)):
        raise InvalidInput("The other node has sent a page that is not the last and leads nowhere.")


def check_address(address: str, transports: dict[str, Extension[Transport]] | Any) -> None:
    """Refuses an address that no transport takes: InvalidInput."""
    _transport(address, transports)


def connect(address: str, transports: Any) -> Connection:
    """Returns a connection to an address, of the transport of its scheme.

    Raises:
        InvalidInput: no transport that is in use takes the address.
    """
    found = _transport(address, transports)
    return found.value.connect(address, found.context)


def _transport(address: str, transports: Any) -> Extension[Transport]:
    scheme = address.partition("://")[0].lower()
    for extension in transports.values():
        if scheme in extension.value.schemes:
            extension.value.check_address(address, extension.context)
            found: Extension[Transport] = extension
            return found
    raise InvalidInput(
        "No transport in use takes this address: http:// and https:// need the plugin sync.http.",
        field="address",
    )
