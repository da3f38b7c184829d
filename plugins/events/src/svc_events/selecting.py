"""Which events a reader wants, and which of them, and of their entries, it may see."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from svc.errors import InvalidInput
from svc.plugin import Operation, Path
from svc_events.api import GAP

if TYPE_CHECKING:
    from svc.plugin import Identity, RequestContext
    from svc_events.feed import FeedEvent

__all__ = ["EventFilter", "Onlooker", "parse_event_names"]

_SHOWN = Operation.READ.bit | Operation.LIST.bit


class Onlooker:
    """Who looks on, with what is decided about them.

    Args:
        shows: whether a path may be seen; None: all may, as by who holds the file itself, and root.
        user_id: who it is; None is somebody without an account, who has a share link.
        reaches: whether anything at all may be done to a path; None: where it may be seen.
        key: equal for those who see the same of every event; None: nothing says who does.
    """

    __slots__ = ("key", "reaches", "shows", "user_id")

    def __init__(
        self,
        shows: Callable[[Path], bool] | None,
        user_id: str | None = None,
        reaches: Callable[[Path], bool] | None = None,
        key: Hashable = None,
    ) -> None:
        self.key = key
        self.shows = shows
        self.user_id = user_id
        self.reaches = reaches or shows

    @classmethod
    def of(cls, context: RequestContext) -> Onlooker:
        """Returns the caller of a request."""
        return cls.of_identity(context.identity)

    @classmethod
    def of_identity(cls, identity: Identity) -> Onlooker:
        """Returns somebody as one who looks on: a path is seen by who may read or list it."""
        from svc.plugin import permitted

        user_id, rights = identity.user_id, identity.rights
        if identity.is_unrestricted_root:
            return cls(None, user_id, key=(user_id,))

        def shows(path: Path) -> bool:
            # Not by the context, which keeps what it has decided: events rarely name a path again.
            return bool(permitted(identity, path) & _SHOWN)

        def reaches(path: Path) -> bool:
            return bool(permitted(identity, path))

        fingerprint = getattr(rights, "fingerprint", None)
        is_known = identity.is_root or rights is None or fingerprint is not None
        key = (user_id, identity.is_root, identity.rules, fingerprint) if is_known else None
        return cls(shows, user_id, reaches, key)

    @property
    def sees_all(self) -> bool:
        """Whether nothing is hidden."""
        return self.shows is None


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events are wanted.

    Attributes:
        names: of these types; None: of all.
        path_prefix: only events of which a path that may be seen begins so, or is a directory above.
        own: only those whose recipient the onlooker is.
    """

    names: frozenset[str] | None = None
    path_prefix: str | None = None
    own: bool = False

    def wants(self, name: str) -> bool:
        """Whether events of a type are wanted."""
        return self.names is None or name in self.names

    def select(self, found: FeedEvent, onlooker: Onlooker) -> FeedEvent | None:
        """Returns what an onlooker gets of an event: all of it, a part, or None.

        Of an event whose paths are all hidden nothing is left, and of one with many those that are not.
        """
        event = found.event
        if event.event_type == GAP:
            return found if self._misses(found, onlooker) else None
        if not self.wants(event.event_type):
            return None
        if self.own and (event.recipient_user_id is None or event.recipient_user_id != onlooker.user_id):
            return None
        shows = onlooker.shows
        if shows is not None:
            if found.seen_by == "root":
                return None
            if found.seen_by == "users" and onlooker.user_id is None:
                return None
            if found.seen_by == "recipient" and not _is_for(found, onlooker):
                return None
            if found.seen_by == "paths":
                visible = _visible(found, shows)
                if visible is None:
                    return None
                found = visible
        return found if self.path_prefix is None or _fits(found.event.payload, self.path_prefix) else None

    def _misses(self, found: FeedEvent, onlooker: Onlooker) -> bool:
        """Whether a gap may stand for events that are wanted and may be seen."""
        names = found.event.payload.get("events")
        if names is None:
            return True
        if not any(map(self.wants, names)):
            return False
        if found.seen_by in ("root", "users"):
            # Such events name no paths, and nobody as who gets them.
            is_shown = onlooker.sees_all or (found.seen_by == "users" and onlooker.user_id is not None)
            return is_shown and self.path_prefix is None and not self.own
        return True


def parse_event_names(text: str | None, known: Collection[str]) -> frozenset[str] | None:
    """Returns the names that a filter lists, separated by commas; None when it lists none.

    Raises:
        InvalidInput: nobody makes events of such a name; ``known`` has those that there are.
    """
    if text is None:
        return None
    names = frozenset(name for part in text.split(",") if (name := part.strip()))
    unknown = sorted(names.difference(known))
    if unknown:
        shown = ", ".join(sorted(known))
        raise InvalidInput(
            f"There are no events {unknown[0][:64]!r}; there are: {shown}.",
            field="events",
            known=sorted(known),
        )
    return names or None


def _visible(found: FeedEvent, shows: Callable[[Path], bool]) -> FeedEvent | None:
    paths = found.paths
    mask = [shows(path) for path in paths]
    if all(mask) and mask:
        return found
    entries = found.event.payload.get("entries")
    if not isinstance(entries, list) or not any(mask):
        return None
    kept = [entry for entry, is_shown in zip(entries, mask, strict=True) if is_shown]
    return found.with_entries(kept, [path for path, is_shown in zip(paths, mask, strict=True) if is_shown])


def _is_for(found: FeedEvent, onlooker: Onlooker) -> bool:
    """Whether an onlooker is the recipient, and may still do something to what it names, by this key."""
    if found.event.recipient_user_id is None or found.event.recipient_user_id != onlooker.user_id:
        return False
    return onlooker.reaches is None or all(map(onlooker.reaches, found.paths))


def _fits(payload: dict[str, Any], prefix: str) -> bool:
    """Whether a path begins so, or is a directory above: what happens to that happens to all in it."""
    if not prefix.isascii():
        prefix = unicodedata.normalize("NFC", prefix)  # as paths are
    return any(
        path.startswith(prefix) or prefix.startswith(path if path == "/" else f"{path}/")
        for path in paths_of(payload)
    )


def paths_of(payload: dict[str, Any]) -> Iterable[str]:
    """Returns the paths that a payload names."""
    entries = payload.get("entries")
    if isinstance(entries, list):
        return [entry["path"] for entry in entries]
    path = payload.get("path")
    return (path,) if isinstance(path, str) else ()
