"""Versions that leave a database as files and come into another one: exports and patches.

A root hash, or two of them, flows in and a file streams out, stored records copied as they are. A file
flows in, is verified from its first byte to its last, and becomes a version of the database.
"""

from __future__ import annotations

from svc.database.transfer.applying import ImportResult, apply_incoming
from svc.database.transfer.checking import CheckedFile, check_incoming
from svc.database.transfer.file_format import ChangeCounts, TransferHeader
from svc.database.transfer.incoming import IncomingFile, IncomingLimits, read_header
from svc.database.transfer.outgoing import Outgoing, OutgoingCounts, plan_export, plan_patch

__all__ = [
    "ChangeCounts",
    "CheckedFile",
    "ImportResult",
    "IncomingFile",
    "IncomingLimits",
    "Outgoing",
    "OutgoingCounts",
    "TransferHeader",
    "apply_incoming",
    "check_incoming",
    "plan_export",
    "plan_patch",
    "read_header",
]
