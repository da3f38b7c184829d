"""What happens, as events, and what of it a reader may see by the rights of now; plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, NamedTuple

from authorization_model.rules import Caller, Grant, may

__all__ = ["Model", "Reader", "Told", "parts", "told_by"]

Tree = dict[str, str]
Rules = tuple[tuple[str, str], ...]
LETTERS = "crudlify"


class Told(NamedTuple):
    """An event: its type, the paths that it names, and for whom it is, or what else it names."""

    kind: str
    paths: tuple[str, ...]
    words: tuple[str, ...] = ()


class Reader(NamedTuple):
    """Who reads: a user, or root (None), by a key with rules or without, and which events it asks for."""

    user: str | None = None
    rules: Rules = ()
    names: frozenset[str] | None = None
    prefix: str | None = None
    own: bool = False


def told_by(envelope: Mapping[str, Any]) -> Told:
    """An event as it was delivered."""
    kind, payload = envelope["event_type"], envelope["payload"]
    if "entries" in payload:
        return Told(kind, tuple(entry["path"] for entry in payload["entries"]))
    if kind == "versions_created":
        return Told(kind, (), (payload["kind"], payload["name"]))
    if kind == "files_shared":
        return Told(kind, (payload["path"],), (envelope["recipient_user_id"],))
    assert "path" in payload, envelope
    return Told(kind, (payload["path"],))


def parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def above(path: str) -> str:
    return path.rpartition("/")[0]


def fits(path: str, prefix: str) -> bool:
    """Whether a path begins with a prefix, or is a directory above it."""
    return path.startswith(prefix) or prefix.startswith(f"{path.rstrip('/')}/")


def at_or_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


class Model:
    """The files, the users with their groups and grants, and the events so far.

    Attributes:
        tree: what stands at each path: a different text for each file, and for each empty directory.
        ids: of users, by name.
        active: the users who may sign in.
        groups: the names of the members of each.
        grants: by group, path and pattern; the group of a user alone is called as the user.
        log: the events with their ids, in order.
    """

    def __init__(self, ids: Mapping[str, str]) -> None:
        self.tree: Tree = {}
        self.ids = dict(ids)
        self.active = set(ids)
        self.groups: dict[str, set[str]] = {}
        self.grants: dict[tuple[str, str, str | None], Grant] = {}
        self.log: list[tuple[str, Told]] = []
        self.snapshots: dict[str, Tree] = {}
        self._numbers = count()

    # -- files: each says what it tells ------------------------------------------------------------

    def write(self, paths: Iterable[str], gone: Iterable[str] = ()) -> list[Told]:
        deleted = tuple(gone)
        for path in deleted:
            self._remove(path)
        created = tuple(paths)
        for path in created:
            self._place(path, self._new("f"))
        told = [("entries_deleted", deleted), ("entries_created", created)]
        return [Told(kind, names) for kind, names in told if names]

    def mkdir(self, path: str) -> list[Told]:
        self._place(path, self._new("d"))
        return [Told("entries_created", (path,))]

    def move(self, source: str, target: str) -> list[Told]:
        moved = {at: what for at, what in self.tree.items() if at_or_below(at, source)}
        self._remove(source)
        self._place(target, "")
        self.tree |= {target + at[len(source) :]: what for at, what in moved.items()}
        return [Told("entries_deleted", (source,)), Told("entries_created", (target,))]

    def copy(self, source: str, target: str) -> list[Told]:
        copied = [at for at in self.tree if at_or_below(at, source)]
        self._place(target, "")
        for at in copied:
            self.tree[target + at[len(source) :]] = self._new(self.tree[at][:1])
        return [Told("entries_created", (target,))]

    def restore(self, name: str) -> list[Told]:
        """All differences of the two trees. A directory with something in it is no difference."""
        before, after = self.tree, self.snapshots[name]
        self.tree = dict(after)
        deleted = tuple(sorted((at for at in before if at not in after), key=parts))
        created = [at for at in after if before.get(at) != after[at] and (at not in before or after[at])]
        told = [("entries_deleted", deleted), ("entries_created", tuple(sorted(created, key=parts)))]
        return [Told(kind, names) for kind, names in told if names]

    def _new(self, kind: str) -> str:
        return f"{kind}{next(self._numbers)}"

    def _place(self, path: str, what: str) -> None:
        self.tree[path] = what
        while path := above(path):
            self.tree[path] = ""

    def _remove(self, path: str) -> None:
        for at in [at for at in self.tree if at_or_below(at, path)]:
            del self.tree[at]
        directory = above(path)
        if directory and not any(at.startswith(f"{directory}/") for at in self.tree):
            self.tree[directory] = self._new("d")

    # -- rights ------------------------------------------------------------------------------------

    def grant(self, group: str, path: str, pattern: str | None, allow: str, deny: str) -> None:
        self.grants[group, path, pattern] = Grant(parts(path), pattern, allow, deny)

    def caller(self, reader: Reader) -> Caller:
        if reader.user is None:
            return Caller(True, None, reader.rules)
        mine = {reader.user, *(name for name, members in self.groups.items() if reader.user in members)}
        grants = tuple(grant for (group, *_), grant in self.grants.items() if group in mine)
        return Caller(False, grants, reader.rules)

    def may_listen(self, reader: Reader) -> bool:
        return reader.user is None or reader.user in self.active

    def shown(self, reader: Reader, after: str) -> list[tuple[str, Told]]:
        """What a reader gets of all that came after an event, by the rights of now."""
        caller = self.caller(reader)
        found = ((at, self._part(told, reader, caller)) for at, told in self.log if at > after)
        return [(at, told) for at, told in found if told is not None]

    def _part(self, told: Told, reader: Reader, caller: Caller) -> Told | None:
        if reader.names is not None and told.kind not in reader.names:
            return None
        is_for = told.kind == "files_shared" and reader.user and told.words == (self.ids[reader.user],)
        if reader.own and not is_for:
            return None
        is_root = caller.is_root and not caller.rules
        letters = "rl"
        if told.kind == "files_shared":
            if not is_for and not is_root:
                return None
            letters = LETTERS
        seen = tuple(path for path in told.paths if self._sees(caller, path, letters))
        if told.paths and not seen:
            return None
        if reader.prefix is not None and not any(fits(path, reader.prefix) for path in seen):
            return None
        return told._replace(paths=seen)

    @staticmethod
    def _sees(caller: Caller, path: str, letters: str) -> bool:
        return any(may(caller, letter, parts(path)) for letter in letters)
