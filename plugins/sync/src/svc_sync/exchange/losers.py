"""The contents that lost: a ref of their own keeps them readable, and from collections, until they are gone.

The ref ``conflicts/losers`` has for each path a directory ``.conflicts/<path>``, with a file or link
``<vt>-<writer>`` for each version that is not shown. A name in a path that has this form, or had it, gets a
``~`` before it; one that is too long for that stands as it is, in a directory ``0…0-0…0``: no version and no
other name gets this name. The ref is written before the merge that makes a version a loser; what is there too
much, after a crash or a resolution, is removed afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from svc.errors import AlreadyExists, NotFound, PreconditionFailed
from svc.plugin import (
    EMPTY_ROOT,
    Database,
    Entry,
    EntryKind,
    Hash,
    Path,
    StoredContent,
    Version,
    parse_path,
    reference_path,
)
from svc_sync.exchange.records import ACTOR
from svc_sync.registers import Dot, Register
from svc_sync.values import CONTENT, Value, alike, rank

__all__ = [
    "CONFLICTS",
    "LOSERS",
    "Losers",
    "clean_losers",
    "holding_losers",
    "keep_losers",
    "losers_of",
    "origin_of",
    "place_of",
    "renew_layout",
]

LOSERS = "conflicts/losers"
CONFLICTS = ".conflicts"
"""The directory of the root that shows them."""
_VERSION = re.compile("[0-9a-f]{16}-[0-9a-f]{16}", re.ASCII)
_ESCAPED = re.compile(f"~*{_VERSION.pattern}", re.ASCII)
_LONGEST_NAME = 255
_TOO_LONG = f"{0:016x}-{0:016x}"
"""The directory of a name that can get no ``~``; there is no writer 0, so no version has this name."""


class Losers:
    """What the ref holds now.

    Args:
        database: the database.
    """

    def __init__(self, database: Database) -> None:
        entry = database.system().get(reference_path(LOSERS))
        self.root: Hash | None = None if entry is None else entry.hash
        self._version: Version | None = None if entry is None else database.version_of(entry.hash)

    def find(self, path: Path, content: Hash) -> Entry | None:
        """Returns the file of a path that has a content; which of its versions does not matter."""
        for _, entry in self._of(path):
            if entry.kind is EntryKind.FILE and entry.hash == content:
                return entry
        return None

    def at(self, path: Path, dot: Dot) -> Entry | None:
        """Returns the entry of one version."""
        return None if self._version is None else self._version.get((*_directory(path), _name(dot)))

    def paths(self) -> Iterator[Path]:
        """Yields the paths that have versions here, each once."""
        last: Path | None = None
        if self._version is None:
            return
        for place, _ in self._version.walk(files_only=True):
            path = origin_of(place)
            if path != last:
                yield path
            last = path

    @property
    def version(self) -> Version | None:
        """The tree of the ref."""
        return self._version

    def names(self, path: Path) -> list[str]:
        """Returns the names of the versions of a path."""
        return [name for name, _ in self._of(path)]

    def read_all(self, entry: Entry) -> bytes:
        """Returns a whole content."""
        assert self._version is not None
        return self._version.read_all(entry)

    def _of(self, path: Path) -> list[tuple[str, Entry]]:
        directory = _directory(path)
        if self._version is None or self._version.get(directory) is None:
            return []
        return [
            row
            for row in self._version.entries(directory)
            if row[1].kind is not EntryKind.DIRECTORY and _VERSION.fullmatch(row[0])
        ]


def losers_of(register: Register, shown: Value) -> list[tuple[Dot, Entry]]:
    """Returns the versions whose content is not what stands at the path."""
    return [
        (dot, version.value)
        for dot, version in register.versions.items()
        if rank(version.value) == CONTENT
        and isinstance(version.value, Entry)
        and not alike(version.value, shown)
    ]


def keep_losers(
    database: Database, losers: Mapping[tuple[Path, Dot], tuple[Entry, Entry | StoredContent | None]]
) -> None:
    """Puts versions into the ref; commits, unless there are none.

    Args:
        database: the database.
        losers: for each its value, and its content: an entry of this database, or what was stored.
    """
    if not losers:
        return
    _make_ref(database)
    with database.transaction(
        actor=ACTOR, message="keep what loses", ref=LOSERS, checks_contents=False
    ) as changes:
        for (path, dot), (value, content) in losers.items():
            place = (*_directory(path), _name(dot))
            if isinstance(content, StoredContent):
                changes.put(
                    place,
                    content,
                    content_type=value.content_type,
                    created_ms=value.created_ms,
                    updated_ms=value.updated_ms,
                )
            else:
                changes.put_entry(place, content or value)


def holding_losers(database: Database, needed: Iterable[tuple[Path, Dot]]) -> Hash | None:
    """Returns the root of the ref, which holds some versions; None where none are needed.

    The transaction whose registers list them has to ask that the ref is still this: until then nothing needs
    them, and another thread may remove them.

    Raises:
        PreconditionFailed: one was removed already.
    """
    needed = list(needed)
    if not needed:
        return None
    losers = Losers(database)
    if any(losers.at(path, dot) is None for path, dot in needed):
        raise PreconditionFailed("What loses was forgotten meanwhile.")
    return losers.root


def clean_losers(database: Database, is_wanted: Mapping[Path, Iterable[Dot]]) -> int:
    """Removes versions that no register lists any more; returns how many. Commits, unless there are none.

    Args:
        database: the database.
        is_wanted: for the paths that were looked at, the versions that stay.
    """
    losers = Losers(database)
    gone: set[Path] = set()
    for path, dots in is_wanted.items():
        kept = {_name(dot) for dot in dots}
        gone.update((*_directory(path), name) for name in losers.names(path) if name not in kept)
    removed = len(gone)
    if gone:
        try:
            with database.transaction(actor=ACTOR, message="forget what lost", ref=LOSERS) as changes:
                for place in _with_empty_directories(losers, gone):
                    changes.delete(place, recursive=True)
        except NotFound:
            return 0  # another process was faster
    return removed


def origin_of(place: Path) -> Path:
    """Returns the path of the user tree to which a place of ``.conflicts`` belongs."""
    names = place[1:-1] if place[1:] and _VERSION.fullmatch(place[-1]) else place[1:]
    path: list[str] = []
    is_as_it_is = False
    for name in names:
        if name == _TOO_LONG and not is_as_it_is:
            is_as_it_is = True
            continue
        is_escaped = not is_as_it_is and name[:1] == "~" and _ESCAPED.fullmatch(name)
        path.append(name[1:] if is_escaped else name)
        is_as_it_is = False
    return tuple(path)


def place_of(path: Path, version: str) -> Path:
    """Returns where ``/.conflicts`` shows a version of a path; ``version`` is its name in URLs."""
    return (*_directory(path), version)


def renew_layout(database: Database) -> None:
    """Brings to their places what an older svc has kept, in directories named by the hashes of paths."""
    losers = Losers(database)
    if losers.version is None:
        return
    old = [name for name, _ in losers.version.entries(()) if name != CONFLICTS]
    if not old:
        return
    with database.transaction(
        actor=ACTOR, message="keep what lost by its path", ref=LOSERS, checks_contents=False
    ) as changes:
        for name in old:
            link = losers.version.get((name, "path"))
            if link is not None and link.target is not None:
                for version, entry in losers.version.entries((name,)):
                    if _VERSION.fullmatch(version):
                        changes.put_entry((*_directory(parse_path(link.target)), version), entry)
            changes.delete((name,), recursive=True)


def _with_empty_directories(losers: Losers, gone: set[Path]) -> list[Path]:
    """What to delete, so that no directory stays that holds nothing."""
    assert losers.version is not None
    pending = set(gone)
    while pending:
        parent = max(pending, key=len)[:-1]
        pending = {place for place in pending if place[:-1] != parent}
        if parent and all((*parent, name) in gone for name, _ in losers.version.entries(parent)):
            gone.add(parent)
            pending.add(parent)
    return sorted(place for place in gone if place[:-1] not in gone)


def _make_ref(database: Database) -> None:
    if database.system().get(reference_path(LOSERS)) is not None:
        return
    try:
        with database.transaction(actor=ACTOR, message="keep what loses") as changes:
            changes.set_ref(LOSERS, EMPTY_ROOT, expected=b"")
    except AlreadyExists:
        pass


def _directory(path: Path) -> Path:
    """Where the versions of a path are. No name of a path is taken for that of a version."""
    return (CONFLICTS, *(part for name in path for part in _escaped(name)))


def _escaped(name: str) -> tuple[str, ...]:
    if not _ESCAPED.fullmatch(name):
        return (name,)
    return (f"~{name}",) if len(name) < _LONGEST_NAME else (_TOO_LONG, name)


def _name(dot: Dot) -> str:
    return f"{dot.vt:016x}-{dot.writer:016x}"
