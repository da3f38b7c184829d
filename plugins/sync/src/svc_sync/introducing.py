"""The peers that a start names: each is asked who it is, until it has said so."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from svc.errors import SvcError
from svc_sync.api import TRANSPORTS
from svc_sync.entering import introduce
from svc_sync.exchange.records import peers_of

if TYPE_CHECKING:
    from logging import Logger

    from svc.plugin import Database, JobContext
    from svc_sync.configuration import SyncConfiguration

__all__ = ["Introductions"]

PAUSE_S = 30.0


class Introductions:
    """Asks the nodes of ``peers`` which are no peers yet, in a thread: who hangs holds up no exchange."""

    def __init__(self) -> None:
        self._met: set[str] = set()
        self._problems: dict[str, str] = {}
        self._due_at = 0.0
        self._thread: threading.Thread | None = None

    def begin_if_due(self, context: JobContext, settings: SyncConfiguration) -> None:
        """Starts the thread every half minute while some have not said who they are."""
        if time.monotonic() < self._due_at or (self._thread is not None and self._thread.is_alive()):
            return
        self._due_at = time.monotonic() + PAUSE_S
        known = self._met | {peer.address for peer in peers_of(context.database.system())}
        unmet = [address for address in settings.peers if address.rstrip("/") not in known]
        if unmet:
            parts = (context.database, context.extensions(TRANSPORTS), settings, unmet, context.logger)
            self._thread = threading.Thread(target=self._meet, args=parts, daemon=True, name="svc-sync-peers")
            self._thread.start()

    def _meet(
        self,
        database: Database,
        transports: Any,
        settings: SyncConfiguration,
        addresses: list[str],
        logger: Logger,
    ) -> None:
        for address in addresses:
            try:
                introduce(database, transports, settings, address)
            except Exception as error:  # noqa: BLE001 - whatever a node does, the others are asked
                text = error.message if isinstance(error, SvcError) else f"{type(error).__name__}: {error}"
                if text != self._problems.get(address):
                    logger.warning("peer %s: %s", address, text)
                self._problems[address] = text
            else:
                self._met.add(address.rstrip("/"))
