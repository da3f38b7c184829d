"""The database: transactions of path operations in, versions, commits and contents out.

It binds the log, the objects and the tree together: reading at any version, group commit, the commit
feed, and the views that follow it.
"""

from __future__ import annotations

from svc.database.blocking import pause, run_blocking
from svc.database.commit import Commit, DatabaseTotals, PathChange, TransactionRecord
from svc.database.database import Database
from svc.database.head import Head
from svc.database.information import information
from svc.database.naming import parse_time
from svc.database.operations import Condition, OperationResult
from svc.database.references import reference_name, reference_path
from svc.database.transaction import CommitResult, OperationHandle, Transaction
from svc.database.transfer import (
    ChangeCounts,
    CheckedFile,
    ImportResult,
    IncomingFile,
    IncomingLimits,
    Outgoing,
    OutgoingCounts,
    TransferHeader,
    apply_incoming,
    check_incoming,
    plan_export,
    plan_patch,
    read_header,
)
from svc.database.verify import Damage, VerifyReport, verify
from svc.database.version import Version
from svc.database.views import View, ViewReader, ViewStorage
from svc.objects.content import StoredContent

__all__ = [
    "ChangeCounts",
    "CheckedFile",
    "Commit",
    "CommitResult",
    "Condition",
    "Damage",
    "Database",
    "DatabaseTotals",
    "Head",
    "ImportResult",
    "IncomingFile",
    "IncomingLimits",
    "OperationHandle",
    "OperationResult",
    "Outgoing",
    "OutgoingCounts",
    "PathChange",
    "StoredContent",
    "Transaction",
    "TransactionRecord",
    "TransferHeader",
    "VerifyReport",
    "Version",
    "View",
    "ViewReader",
    "ViewStorage",
    "apply_incoming",
    "check_incoming",
    "information",
    "parse_time",
    "pause",
    "plan_export",
    "plan_patch",
    "read_header",
    "reference_name",
    "reference_path",
    "run_blocking",
    "verify",
]
