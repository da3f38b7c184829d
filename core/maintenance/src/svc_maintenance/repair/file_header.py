"""The first 128 bytes of the file: without them nobody opens it."""

from __future__ import annotations

from pathlib import Path

from svc.errors import CorruptRecord, ForeignFile, SvcError, UnsupportedFormat
from svc.log import FIRST, RECORD_HEADER_SIZE, SharedCell
from svc.log.framing import FileHeader, decode_file_header, decode_header, encode_file_header
from svc.log.local_file import state_directory_of
from svc_maintenance.repair.correction import corrected_file_header
from svc_maintenance.repair.originals import Overwriter
from svc_maintenance.repair.sources import Sources

__all__ = ["repair_file_header"]

_TAIL_VALUE = 56
_DATABASE_ID = slice(24, 40)
"""Where in the value of the shared tail the database id stands (docs/format/log.md)."""


def repair_file_header(path: Path, file: Overwriter, sources: Sources) -> bool:
    """Restores the header of the file where it is damaged; returns whether it was.

    It comes from the damaged one, if one byte has changed; from a copy of the same file; or from what the
    state directory says of the database id, with the time of the first record. Raises as ``repair`` where it
    can't be restored, or the file is no database.
    """
    data = file.read(0, FIRST)
    try:
        decode_file_header(data, path.name)
        return False
    except (CorruptRecord, ForeignFile, UnsupportedFormat) as error:
        refusal: SvcError = error
    first = file.read(FIRST, RECORD_HEADER_SIZE)
    header = decode_header(first, 0, FIRST) if len(first) == RECORD_HEADER_SIZE else None
    candidates = [corrected_file_header(data)]
    if header is not None:
        candidates += [source.file_header(first) for source in sources.files]
        candidates.append(_from_state_directory(path, header.time_ms))
    for candidate in candidates:
        if candidate is None:
            continue
        try:
            decode_file_header(candidate, path.name)
        except SvcError:
            continue
        file.write(0, candidate)
        file.flush()
        return True
    raise refusal


def _from_state_directory(path: Path, created_ms: int) -> bytes | None:
    name = state_directory_of(path) / "tail"
    if not name.exists():
        return None
    try:
        cell = SharedCell(name, _TAIL_VALUE, read_only=True)
    except OSError:
        return None
    try:
        value = cell.read()
    finally:
        cell.close()
    return None if value is None else encode_file_header(FileHeader(value[_DATABASE_ID], created_ms))
