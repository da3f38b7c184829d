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
from svc.database.operations import Condition, OperationResult
from svc.database.transaction import CommitResult, OperationHandle, Transaction
from svc.database.verify import Damage, VerifyReport, verify
from svc.database.version import Version
from svc.database.views import View, ViewReader, ViewStorage
from svc.objects.content import StoredContent

__all__ = [
    "Commit",
    "CommitResult",
    "Condition",
    "Damage",
    "Database",
    "DatabaseTotals",
    "Head",
    "OperationHandle",
    "OperationResult",
    "PathChange",
    "StoredContent",
    "Transaction",
    "TransactionRecord",
    "VerifyReport",
    "Version",
    "View",
    "ViewReader",
    "ViewStorage",
    "information",
    "pause",
    "run_blocking",
    "verify",
]
