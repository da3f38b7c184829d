"""The append-only log: the one file that is the database.

Framed records flow in at its end, written by any number of processes at once; verified records flow
out, by offset or in order. After a crash whole records are kept and unfinished ones are cut.
"""

from __future__ import annotations

from svc.log.file_operations import FileOperations
from svc.log.framing import (
    FIRST,
    MAXIMUM_STORED_LENGTH,
    RECORD_HEADER_SIZE,
    Location,
    Record,
    encode_record,
    encode_void,
    record_size,
)
from svc.log.local_file import LocalFileStorage
from svc.log.log import Log
from svc.log.recovery import Recovery
from svc.log.scanning import DamagedRegion, ScannedRecord
from svc.log.shared_cell import SharedCell, boot_id
from svc.log.storage import LogStorage, StorageBackend

__all__ = [
    "FIRST",
    "MAXIMUM_STORED_LENGTH",
    "RECORD_HEADER_SIZE",
    "DamagedRegion",
    "FileOperations",
    "LocalFileStorage",
    "Location",
    "Log",
    "LogStorage",
    "Record",
    "Recovery",
    "ScannedRecord",
    "SharedCell",
    "StorageBackend",
    "boot_id",
    "encode_record",
    "encode_void",
    "record_size",
]
