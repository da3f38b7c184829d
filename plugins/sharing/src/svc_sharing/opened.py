"""What the bearer of a link sees: its paths and what is below them, and nothing beside or above."""

from __future__ import annotations

from msgspec import Struct

from svc.errors import InvalidInput
from svc.plugin import (
    Entry,
    EntryKind,
    Operation,
    Path,
    RequestContext,
    is_system_path,
    path_not_found,
    pause,
)
from svc_sharing.page.listing import Row
from svc_sharing.shared_paths import root_of_rule

__all__ = ["LinkInHand", "link_in_hand"]

_DIRECTORY = EntryKind.DIRECTORY
_LOOKS = 10
_TURN = 128


class LinkInHand(Struct, frozen=True):
    """A link in the hands of whoever asks. The permission function decides; this narrows what is shown.

    A key may read the directories above its paths, so that a program finds down to them; pages show the
    ``roots``, which the link is for, and what is below.
    """

    context: RequestContext
    roots: tuple[Path, ...]

    def root_of(self, path: Path) -> Path | None:
        """Returns the shortest path of the link at or above a path; None for one that is not shared."""
        return min((root for root in self.roots if path[: len(root)] == root), key=len, default=None)

    def find(self, path: Path) -> tuple[Path, Entry]:
        """Returns where a path leads, by links that stay within what is shared, and what stands there.

        Raises NotFound where nothing is there, or nothing that is shared.
        """
        try:
            found, entry = self.context.version.follow_parents(path, may_pass=self._shows)
        except InvalidInput:
            raise path_not_found(path) from None
        if entry is None or not self._shows(found):
            raise path_not_found(path)
        self.context.authorize(Operation.LIST if entry.kind is _DIRECTORY else Operation.READ, found)
        return found, entry

    def page(self, directory: Path, after: str | None, most: int) -> tuple[list[Row], str | None]:
        """Returns lines of a directory in the order of names, and the name behind which the next page begins.

        Entries that lead nowhere are left out; a page looks at a bounded number of them.
        """
        rows: list[Row] = []
        for number, (name, entry) in enumerate(self.context.version.entries(directory, after=after)):
            if len(rows) == most or number >= _LOOKS * most:
                return rows, after
            row = self.row((*directory, name), entry)
            if row is not None:
                rows.append(row)
            after = name
            if number % _TURN == _TURN - 1:
                pause()
        return rows, None

    def row(self, path: Path, entry: Entry) -> Row | None:
        """Returns the line of a path; None where nothing is shown."""
        if not self._shows(path):
            return None
        found = path
        if entry.kind is EntryKind.SYMLINK:
            try:
                found, target = self.context.version.follow_parents(path, may_pass=self._shows)
            except InvalidInput:
                return None
            if target is None or not self._shows(found):
                return None
            entry = target
        is_directory = entry.kind is _DIRECTORY
        # What a directory sums up is for those alone who may see all of it.
        is_told = not is_directory or self.context.may_below(Operation.READ, found)
        return Row(
            path,
            path[-1] if path else "",
            is_directory,
            entry.size if is_told else None,
            entry.updated_ms if is_told else None,
        )

    def _shows(self, path: Path) -> bool:
        if is_system_path(path) or self.root_of(path) is None:
            return False
        may = self.context.may
        return may(Operation.LIST, path) or may(Operation.READ, path)


def link_in_hand(context: RequestContext) -> LinkInHand:
    """Returns what a caller may see who came by a link; NotFound for one who came by something else."""
    identity = context.identity
    if identity.user_id is not None or identity.is_root or not identity.rules:
        raise path_not_found(())
    roots = (root_of_rule(rule) for rule in identity.rules)
    return LinkInHand(context, tuple(dict.fromkeys(root for root in roots if root is not None)))
