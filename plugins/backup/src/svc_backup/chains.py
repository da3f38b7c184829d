"""Files that make one version together, in any order: an export, and patches that follow each other."""

from __future__ import annotations

from collections.abc import Sequence

from svc.errors import Conflict, InvalidInput
from svc.plugin import Hash
from svc_backup.format import IncomingFile

__all__ = ["ordered"]


def ordered(files: Sequence[IncomingFile], head: Hash) -> list[IncomingFile]:
    """Returns files in the order in which they apply.

    An export comes first; then each patch follows the version that it was made from, the first one ``head``
    when there is no export. One file stays as it is: whether it applies is said when it is imported.

    Raises InvalidInput for two exports, and Conflict, with its name, for a file that follows none of the
    others.
    """
    if len(files) == 1:
        return list(files)
    exports = [file for file in files if not file.is_patch]
    if len(exports) > 1:
        names = " and ".join(file.name for file in exports[:2])
        raise InvalidInput(f"{names} are both exports: a chain begins with one.", field="file")
    order = list(exports)
    present = exports[0].root if exports else head
    waiting = [file for file in files if file.is_patch]
    while waiting:
        following = next((file for file in waiting if file.base == present), None)
        if following is None:
            file = waiting[0]
            assert file.base is not None
            raise Conflict(
                f"{file.name} does not fit: it was made from version {file.base.hex()}, "
                f"and none of the files leads there from {present.hex()}.",
                base=file.base.hex(),
                head=present.hex(),
            )
        order.append(following)
        waiting.remove(following)
        present = following.root
    return order
