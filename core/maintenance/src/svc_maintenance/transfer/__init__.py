"""Versions that leave a database and enter another one, through a file or a connection.

On the way out a ``Selection`` says which stored records a version needs, and gives them verified. On the way
in ``check_objects`` verifies objects wholly, ``take_objects`` appends them, and ``name_objects`` makes a
commit name them. The file or connection frames the records; their form is defined here.
"""

from __future__ import annotations

from svc.clock import now_ms
from svc.database.operations import PutEntry, SetRef
from svc.database.references import HEAD_NAME, is_reference, reference_name
from svc.log import FIRST, ScannedRecord, encode_record, record_size
from svc.log.framing import (
    FILE_HEADER_SIZE,
    PATCH_FLAG,
    FileHeader,
    decode_file_header,
    encode_file_header,
)
from svc.log.scanning import scan_records
from svc.objects.codecs import compress
from svc.objects.store import EMPTY_ROOT, EMPTY_SYSTEM_ROOT
from svc_maintenance.transfer.applying import TakenObjects, name_objects, take_objects
from svc_maintenance.transfer.checking import CheckedObjects, check_objects
from svc_maintenance.transfer.comparison import ChangeCounts, Differences, compare_versions
from svc_maintenance.transfer.missing import missing_paths, refuse_missing
from svc_maintenance.transfer.places import storing
from svc_maintenance.transfer.records import (
    LARGEST_CONTENT,
    FilePlace,
    ObjectSource,
    check_record,
    decoded,
    read_verified,
)
from svc_maintenance.transfer.selection import Selection

__all__ = [
    "EMPTY_ROOT",
    "EMPTY_SYSTEM_ROOT",
    "FILE_HEADER_SIZE",
    "FIRST",
    "HEAD_NAME",
    "LARGEST_CONTENT",
    "PATCH_FLAG",
    "ChangeCounts",
    "CheckedObjects",
    "Differences",
    "FileHeader",
    "FilePlace",
    "ObjectSource",
    "PutEntry",
    "ScannedRecord",
    "Selection",
    "SetRef",
    "TakenObjects",
    "check_objects",
    "check_record",
    "compare_versions",
    "compress",
    "decode_file_header",
    "decoded",
    "encode_file_header",
    "encode_record",
    "is_reference",
    "missing_paths",
    "name_objects",
    "now_ms",
    "read_verified",
    "record_size",
    "reference_name",
    "refuse_missing",
    "scan_records",
    "storing",
    "take_objects",
]
