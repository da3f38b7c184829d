"""The append-only log: the one file that is the database.

Any number of processes append framed records; records are read by offset or in order, and verified. After a
crash whole records are kept and unfinished ones are cut.
"""

from __future__ import annotations

from svc.log.backends import (
    KERNEL_BACKENDS,
    NO_BACKENDS,
    LocalFileBackend,
    backend_of,
    locate,
    scheme_of,
    shown_location,
)
from svc.log.file_operations import FileOperations
from svc.log.framing import (
    FIRST,
    MAXIMUM_STORED_LENGTH,
    RECORD_HEADER_SIZE,
    Location,
    encode_record,
    encode_void,
    record_size,
)
from svc.log.local_file import LocalFileStorage
from svc.log.log import Log
from svc.log.recovery import Recovery
from svc.log.remains import Remains, survey_remains
from svc.log.scanning import DamagedRegion, ScannedRecord
from svc.log.shared_cell import SharedCell, boot_id
from svc.log.storage import (
    CollectableStorage,
    LogPlace,
    LogStorage,
    ObservableLocks,
    StorageBackend,
    Writability,
)

__all__ = [
    "FIRST",
    "KERNEL_BACKENDS",
    "MAXIMUM_STORED_LENGTH",
    "NO_BACKENDS",
    "RECORD_HEADER_SIZE",
    "CollectableStorage",
    "DamagedRegion",
    "FileOperations",
    "LocalFileBackend",
    "LocalFileStorage",
    "Location",
    "Log",
    "LogPlace",
    "LogStorage",
    "ObservableLocks",
    "Recovery",
    "Remains",
    "ScannedRecord",
    "SharedCell",
    "StorageBackend",
    "Writability",
    "backend_of",
    "boot_id",
    "encode_record",
    "encode_void",
    "locate",
    "record_size",
    "scheme_of",
    "shown_location",
    "survey_remains",
]
