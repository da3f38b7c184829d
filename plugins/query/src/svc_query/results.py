"""The rows of an answer: what stands in them, and what a projection makes of it."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from svc.errors import InvalidInput
from svc.plugin import format_path
from svc_query.api import Value
from svc_query.executing.matching import Match
from svc_query.snapshot import VIRTUAL_FIELDS, Snapshot

__all__ = ["Projection"]

_MEMBERS: Mapping[str, Callable[[Match, Sequence[str]], Any]] = {
    "path": lambda match, _: format_path(match.document.path),
    "total_size": lambda match, _: match.document.size,
    "content_type": lambda match, _: match.document.content_type,
    "created_at": lambda match, _: match.document.created_ms,
    "updated_at": lambda match, _: match.document.updated_ms,
    "score": lambda match, _: match.score,
    "matched_by": lambda _, matched_by: list(matched_by),
}
"""The members of a row without a projection, in their order."""

_SPELLINGS = {
    "@path": "path",
    "@score": "score",
    "@size": "total_size",
    "@content_type": "content_type",
    "@created_at": "created_at",
    "@updated_at": "updated_at",
    "@matched_by": "matched_by",
}


class Projection:
    """What rows hold; ``tells_matches``: they say which fields matched.

    ``@`` names become the members that rows have without a projection (``@size`` is ``total_size``), or their
    own name without the ``@``; InvalidInput where one means nothing. Other names are fields: one value as it
    is, several as an array. A field that a document does not have is left out of its row, whether anybody
    indexes it or not.
    """

    def __init__(self, names: Sequence[str] | None, fields: Container[str]) -> None:
        self._members: list[tuple[str, Callable[[Match, Sequence[str]], Any] | None, str]] = []
        for name in dict.fromkeys(_MEMBERS if names is None else names):
            if name in _SPELLINGS:
                member = _SPELLINGS[name]
                self._members.append((member, _MEMBERS[member], ""))
            elif name in VIRTUAL_FIELDS:
                self._members.append((name[1:], None, name))
            elif name.startswith("@"):
                known = sorted({*_SPELLINGS, *VIRTUAL_FIELDS})
                raise InvalidInput(
                    f"There is no virtual field {name!r} to select.", field="select", fields=known
                )
            elif name in _MEMBERS and (names is None or name not in fields):
                self._members.append((name, _MEMBERS[name], ""))
            else:
                self._members.append((name, None, name))
        self.tells_matches = any(member == "matched_by" for member, get, _ in self._members if get)

    def row(self, match: Match, matched_by: Sequence[str], snapshot: Snapshot) -> dict[str, Any]:
        """Returns the row of a match."""
        row: dict[str, Any] = {}
        document = match.document
        for member, get, field in self._members:
            if get is not None:
                row[member] = get(match, matched_by)
                continue
            values = snapshot.values(document, field)
            if values:
                row[member] = _shown(values[0]) if len(values) == 1 else [_shown(one) for one in values]
        return row


def _shown(value: Value) -> Any:
    return list(value) if isinstance(value, tuple) else value
