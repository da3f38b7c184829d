"""Where what a merge changes comes from, for the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from svc.plugin import Origin, Path
from svc_sync.clock import milliseconds_of
from svc_sync.cluster import Cluster
from svc_sync.exchange.users import WriteUsers
from svc_sync.registers import RESTATED_VT, Register, winner

__all__ = ["Origins", "nodes_of"]


class Origins:
    """The origins of what stands at paths by their registers.

    Args:
        cluster: tells the nodes of writers.
        registers: what was merged.
        users: who made the writes.
        source: the node that told of them; it stands for one that is not known any more. None: this one.
    """

    def __init__(
        self, cluster: Cluster, registers: Mapping[Path, Register], users: WriteUsers, source: int | None
    ) -> None:
        self._nodes = nodes_of(cluster)
        self._registers = registers
        self._users = users
        self._source = source

    def of(self, path: Path) -> Origin | None:
        """Returns where what stands at a path comes from; None: from here."""
        register = self._registers.get(path)
        if register is None or self._source is None:
            return None
        dot, _ = winner(register)
        user = self._users.of(dot, path)
        return Origin(
            self._nodes.get(dot.writer, self._source),
            None if user is None else user[1],
            milliseconds_of(dot.vt) if dot.vt > RESTATED_VT else None,
        )

    def sorted(self, paths: Iterable[Path]) -> list[tuple[Origin | None, Path]]:
        """Returns paths with their origins, those of one origin together, else in their order."""
        groups: dict[Origin | None, list[Path]] = {}
        for path in paths:
            groups.setdefault(self.of(path), []).append(path)
        return [(origin, path) for origin, together in groups.items() for path in together]


def nodes_of(cluster: Cluster) -> dict[int, int]:
    """Returns the node of each writer, also of former lives."""
    members = cluster.members.values()
    return {writer: one.node_id for one in members for writer in (*one.former, one.writer)}
