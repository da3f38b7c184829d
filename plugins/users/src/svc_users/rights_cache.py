"""The rights of groups, kept while no grant of one of them has changed.

The grants of a group are kept by the hash of their directory, so that a change of one group's grants reads
nothing of the others', and of its own what has changed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from svc.plugin import Database, Entry, EntryKind, Hash, Level, Rights, Version, hash_content, in_turns
from svc_users.names import name_key
from svc_users.records import decode_grant, grants_of_group
from svc_users.rights import UNREADABLE, GrantedRights, Rule, rule_of

__all__ = ["RightsCache"]

_MOST_GROUPS = 4096
_MOST_RIGHTS = 4096

CACHED_RIGHTS = Level("svc_cached_rights", "Rights that processes keep, by of what.", ("kind",))

_Rules = dict[str, Rule]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Recent(Generic[K, V]):
    def __init__(self, kind: str, limit: int) -> None:
        self._kind = kind
        self._limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def keep(self, key: K, value: V) -> V:
        """Keeps a value, unless another thread was faster; returns the one that is kept."""
        with self._lock:
            count = len(self._values)
            value = self._values.setdefault(key, value)
            self._values.move_to_end(key)
            if len(self._values) > self._limit:
                self._values.popitem(last=False)
            CACHED_RIGHTS.add(len(self._values) - count, self._kind)
            return value

    def replace(self, key: K, value: V) -> None:
        with self._lock:
            if self._values.pop(key, None) is not None:
                CACHED_RIGHTS.add(-1, self._kind)
        self.keep(key, value)


class RightsCache:
    """Gives the rights of any set of groups in a database. Any number of threads may use it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rules: _Recent[str, tuple[Hash, _Rules]] = _Recent("groups", _MOST_GROUPS)
        self._rights: _Recent[frozenset[Hash], GrantedRights] = _Recent("rights", _MOST_RIGHTS)
        # Held while rights are put together: who needs the same ones meanwhile waits, and then finds them.
        self._making: dict[frozenset[Hash], threading.Lock] = {}

    def of(self, groups: frozenset[str], system: Version) -> Rights:
        """Returns what the grants of these groups allow; the same object while none of them has changed.

        A few lookups for each group where its grants are known. Where they are not they are read, while
        other requests have their turns.

        Args:
            groups: names of groups; what does not exist has no grants.
            system: the system tree as it is now.
        """
        present: dict[str, Hash] = {}
        for group in groups:
            key = name_key(group)
            entry = system.get(grants_of_group(key))
            if entry is not None and entry.kind is EntryKind.DIRECTORY:
                present[key] = entry.hash
        # A directory's hash is that of all grants in it, and they name their group.
        wanted = frozenset(present.values())
        rights = self._rights.get(wanted)
        return self._make(wanted, present, system) if rights is None else rights

    def _make(self, wanted: frozenset[Hash], present: dict[str, Hash], system: Version) -> Rights:
        with self._making.setdefault(wanted, threading.Lock()):
            try:
                rights = self._rights.get(wanted)
                if rights is None:
                    rules = [self._rules_of(key, hash, system) for key, hash in present.items()]
                    fingerprint = hash_content(b"".join(sorted(wanted)))
                    rights = GrantedRights((rule for one in rules for rule in one.values()), fingerprint)
                    rights = self._rights.keep(wanted, rights)
                return rights
            finally:
                self._making.pop(wanted, None)

    def _rules_of(self, key: str, directory: Hash, system: Version) -> _Rules:
        known = self._rules.get(key)
        if known is not None and known[0] == directory:
            return known[1]
        present = system.sibling(directory)
        rules: _Rules = {}
        changes: Iterable[tuple[str, Entry | None]] = present.entries(())
        if known is not None:
            rules.update(known[1])
            changes = ((name, entry) for name, _, entry in system.sibling(known[0]).differences(present))
        for name, entry in in_turns(changes):
            if entry is None:
                rules.pop(name, None)
            else:
                grant = decode_grant(system, entry)
                rules[name] = UNREADABLE if grant is None else rule_of(grant)
        self._rules.replace(key, (directory, rules))
        return rules
