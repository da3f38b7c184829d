"""The note beside an LMDB environment: in which boot of the machine it was written, or that it was synced.

See ``svc.objects.environments``, which discards files that neither holds for.
"""

from __future__ import annotations

import os
from pathlib import Path

from svc.log import boot_id

__all__ = ["NOTE", "is_whole", "note_synced", "note_written"]

NOTE = "written-in"
_SYNCED = b"synced"


def note_written(directory: Path) -> None:
    """Notes, before the first such write, that an environment is written in this boot of the machine.

    Blocks for a sync where the note said that the files were synced.
    """
    present = _note(directory)
    if present != boot_id():
        _set_note(directory, boot_id(), durable=present == _SYNCED)


def note_synced(directory: Path) -> None:
    """Notes that an environment was synced, and that nobody writes to it any more; blocks."""
    _set_note(directory, _SYNCED, durable=True)


def is_whole(directory: Path) -> bool:
    """Whether the files hold what was written, as far as a power cut could have changed that."""
    return _note(directory) in (_SYNCED, boot_id())


def _note(directory: Path) -> bytes | None:
    try:
        return (directory / NOTE).read_bytes()
    except OSError:
        return None


def _set_note(directory: Path, content: bytes, *, durable: bool) -> None:
    temporary = directory / f"{NOTE}.new"
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.replace(temporary, directory / NOTE)
    if durable:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
