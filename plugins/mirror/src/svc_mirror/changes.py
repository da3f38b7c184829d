"""A page of what changed, of what the caller may see: what ``POST /sync/diff`` answers.

A page looks at a bounded number of entries. What changed where the caller sees nothing is not looked at,
where that follows from what was granted alone; else it makes pages shorter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from svc.errors import Forbidden, InvalidInput, NotFound, VersionCollected
from svc.plugin import (
    EMPTY_ROOT,
    Call,
    Entry,
    EntryKind,
    Identity,
    Operation,
    Path,
    PathGlob,
    Version,
    format_path,
    is_system_path,
    parse_hash,
    parse_path,
    pause,
    permitted,
    visible_parts,
)
from svc_mirror.configuration import MirrorConfiguration
from svc_mirror.models import Changes, DiffPage, DiffQuestion, FileState, GonePath, LinkState
from svc_mirror.tokens import Progress, bound_to, foreign_token, read_token, token_of
from svc_mirror.walking import Scope, common_scope, differing, scope_of

__all__ = ["MOST_INLINE_CHUNKS", "changes_page"]

MOST_INLINE_CHUNKS = 256
"""A file of more names its chunks by ``/sync/chunks``."""

MOST_WILDCARDS = 200
"""Of all globs together: each path is compared with all of them."""

_INLINE_BYTES = MOST_INLINE_CHUNKS * 64 * 1024
_MOST_CHUNKS = 20_000
_PAUSE_EVERY = 256
_LEVELS_PER_LOOK = 64
_SHOWN = Operation.READ.bit | Operation.LIST.bit
_READ = Operation.READ.bit
_FILE, _DIRECTORY, _LINK = EntryKind.FILE, EntryKind.DIRECTORY, EntryKind.SYMLINK
_PLURALS = {_FILE: "files", _DIRECTORY: "directories", _LINK: "symlinks"}


def changes_page(call: Call, question: DiffQuestion) -> DiffPage:
    """Returns the page that a question asks for.

    Raises:
        InvalidInput: the token is none of this database, or of what it was before it was put back; or a glob
            is none.
        Forbidden: a root hash is given by one who may not see everything.
        NotFound: no version ever had this root hash.
        VersionCollected: what the caller has was collected: it starts anew, without a token.
    """
    globs = None if question.paths is None else _globs_of(question.paths)
    progress, is_first = _progress(call, question)
    with call.database.hold_version(
        *(root for root in (progress.base, progress.target) if root != EMPTY_ROOT)
    ):
        page = _Page(call, globs, question.limit)
        place = page.fill(progress)
    behind = (
        Progress(progress.target, progress.target, None, progress.bound)
        if place is None
        else Progress(progress.base, progress.target, place, progress.bound)
    )
    return DiffPage(
        root_hash=progress.target.hex() if _sees_all(call) else None,
        since=token_of(call, behind),
        has_more=place is not None,
        is_first=is_first,
        is_whole=progress.is_whole,
        changes=Changes(**page.found),
        chunk_hashes_needed=list(page.chunks),
    )


def _progress(call: Call, question: DiffQuestion) -> tuple[Progress, bool]:
    """Returns what is to be told, and whether its first page."""
    bound = bound_to(call, question.paths)
    head = call.version.root
    if question.since is not None and question.since_root_hash is not None:
        raise InvalidInput("Give a token or a root hash, not both.", field="since_root_hash")
    if question.since_root_hash is not None:
        root = parse_hash(question.since_root_hash)
        if root is None:
            raise InvalidInput("A root hash is 64 hex digits.", field="since_root_hash")
        if not _sees_all(call):
            raise Forbidden("Only who may see everything can name a root hash: give the token of a page.")
        if root != EMPTY_ROOT:
            call.database.require_version(root)
        return Progress(root, head, None, bound), True
    if question.since is None:
        return Progress(EMPTY_ROOT, head, None, bound), True
    known = read_token(call, question.since)
    for root in {known.base, known.target}:
        try:
            call.database.require_version(root)
        except VersionCollected:
            raise
        except NotFound:
            # The database was put back from an older copy: what came after it was told of another history.
            raise foreign_token() from None
    if known.bound != bound:
        # Other rights: what was hidden and what is shown by them follows from all that is shown now.
        return Progress(EMPTY_ROOT, head, None, bound), True
    if known.place is not None:
        return known, False
    return Progress(known.target, head, None, bound), True


class _Page:
    """Takes in what differs, as far as a page may go."""

    def __init__(self, call: Call, globs: list[PathGlob] | None, limit: int) -> None:
        self._call = call
        self._globs = globs
        self._left = limit
        settings = call.configuration
        self._scan = (
            settings if isinstance(settings, MirrorConfiguration) else MirrorConfiguration()
        ).scan_entries
        self.found: dict[str, list[Any]] = {}
        self.chunks: dict[str, None] = {}

    def fill(self, progress: Progress) -> Path | None:
        """Fills the page; returns the last path that it looked at, or None where nothing follows."""
        database = self._call.database
        before, after = database.version_of(progress.base), database.version_of(progress.target)
        scope = _scope(self._call, self._globs)
        looked_at, pause_at = 0, _PAUSE_EVERY
        place = progress.place or ()
        for path, old, new in differing(before, after, scope, place):
            if looked_at >= self._scan or self._left <= 0 or len(self.chunks) >= _MOST_CHUNKS:
                return place
            self._take(after, path, old, new)
            place = path
            looked_at += 1 + len(path) // _LEVELS_PER_LOOK
            if looked_at >= pause_at:
                pause_at += _PAUSE_EVERY
                pause()
        return None

    def _take(self, after: Version, path: Path, old: Entry | None, new: Entry | None) -> None:
        if self._globs is not None:
            text = format_path(path)
            if not any(self._fits(glob, text) for glob in self._globs):
                return
        before = old if old is not None and self._permitted(path, old) & _SHOWN else None
        mask = 0 if new is None else self._permitted(path, new)
        now = new if mask & _SHOWN else None
        if before is not None and now is not None and before.kind is now.kind:
            if now.kind is not _DIRECTORY:
                self._tell("modified", now.kind, _state(after, path, now, mask))
            return
        if before is not None:
            self._tell("deleted", before.kind, GonePath(format_path(path)))
        if now is not None:
            self._tell("added", now.kind, _state(after, path, now, mask))

    @staticmethod
    def _fits(glob: PathGlob, text: str) -> bool:
        pause()  # A path of a thousand names takes some milliseconds.
        return bool(glob.matches(text))

    def _permitted(self, path: Path, entry: Entry) -> int:
        if is_system_path(path):
            return 0
        return permitted(self._call.identity, path, directory=entry.kind is _DIRECTORY)

    def _tell(self, what: str, kind: EntryKind, state: FileState | LinkState | GonePath) -> None:
        self._left -= 1
        self.found.setdefault(f"{_PLURALS[kind]}_{what}", []).append(state)
        if isinstance(state, FileState):
            self.chunks.update(dict.fromkeys(state.chunk_hashes or ()))


def _state(version: Version, path: Path, entry: Entry, mask: int) -> FileState | LinkState | GonePath:
    text = format_path(path)
    if entry.kind is _DIRECTORY:
        return GonePath(text)
    if entry.kind is _LINK:
        return LinkState(
            path=text,
            hash=entry.hash.hex(),
            target=entry.target or "",
            created_at=entry.created_ms,
            updated_at=entry.updated_ms,
        )
    is_readable = bool(mask & _READ)
    chunks = version.chunks(entry) if is_readable and entry.size <= _INLINE_BYTES else None
    if chunks is not None and len(chunks) > MOST_INLINE_CHUNKS:
        chunks = None
    return FileState(
        path=text,
        hash=entry.hash.hex(),
        size=entry.size,
        content_type=entry.content_type or "application/octet-stream",
        created_at=entry.created_ms,
        updated_at=entry.updated_ms,
        is_readable=is_readable,
        chunk_hashes=None if chunks is None else [chunk.hex() for chunk, _ in chunks],
        chunk_sizes=None if chunks is None else [size for _, size in chunks],
    )


def _sees_all(call: Call) -> bool:
    return (
        call.identity.is_unrestricted_root
        or call.may_below(Operation.LIST, ())
        or call.may_below(Operation.READ, ())
    )


def _scope(call: Call, globs: list[PathGlob] | None) -> Scope | None:
    """Where something may be seen that is asked for, as far as what was granted says it."""
    identity = call.identity
    scope = None if globs is None else scope_of(glob.literal for glob in globs)
    if identity.rules:
        # Rules show the directories on the way to whatever they allow.
        by_rules = replace(identity, is_root=True, rights=None)
        scope = common_scope(scope, _visible(by_rules, tuple(Operation)))
    if not identity.is_root and identity.rights is not None:
        by_rights = replace(identity, rules=())
        scope = common_scope(scope, _visible(by_rights, (Operation.READ, Operation.LIST)))
    return scope


def _visible(identity: Identity, operations: Iterable[Operation]) -> Scope | None:
    found: set[Path] = set()
    for operation in operations:
        parts = visible_parts(identity, operation, ())
        if parts is None:
            return None
        found.update(path for path, _ in parts)
    return scope_of(found)


def _globs_of(texts: list[str]) -> list[PathGlob]:
    if sum(text.count("*") + text.count("?") for text in texts) > MOST_WILDCARDS:
        raise InvalidInput(
            f"The globs may have at most {MOST_WILDCARDS} wildcards together.",
            field="paths",
            limit=MOST_WILDCARDS,
        )
    return [PathGlob(parse_path(text)) for text in texts]
