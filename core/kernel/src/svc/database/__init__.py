"""The database: transactions of path operations in, versions, commits and contents out.

It binds log, objects and tree: reading at any version, group commit, the commit feed and its views.
"""

from __future__ import annotations

from svc.database.attempts import attempt
from svc.database.collection import CollectionReport, collect, compact, unkept_versions
from svc.database.commit import Commit, DatabaseTotals, PathChange, TransactionRecord
from svc.database.configuration_lists import ConfigurationList, at_field
from svc.database.database import Database
from svc.database.head import Head
from svc.database.holds import Hold
from svc.database.information import Space, information, space_of
from svc.database.json_records import read_record, same_content
from svc.database.naming import parse_time
from svc.database.operations import Condition, OperationResult, same_entry
from svc.database.origins import Origin
from svc.database.record_versions import files_with_records
from svc.database.references import reference_name, reference_path
from svc.database.transaction import CommitResult, OperationHandle, Transaction
from svc.database.version import Version
from svc.database.view import CommitStep, View, ViewBatch
from svc.database.view_storage import ViewStorage
from svc.database.views import ViewReader
from svc.executor import in_turns, pause, run_blocking, without_turn
from svc.objects.content import StoredContent
from svc.objects.store import EMPTY_ROOT

__all__ = [
    "EMPTY_ROOT",
    "CollectionReport",
    "Commit",
    "CommitResult",
    "CommitStep",
    "Condition",
    "ConfigurationList",
    "Database",
    "DatabaseTotals",
    "Head",
    "Hold",
    "OperationHandle",
    "OperationResult",
    "Origin",
    "PathChange",
    "Space",
    "StoredContent",
    "Transaction",
    "TransactionRecord",
    "Version",
    "View",
    "ViewBatch",
    "ViewReader",
    "ViewStorage",
    "at_field",
    "attempt",
    "collect",
    "compact",
    "files_with_records",
    "in_turns",
    "information",
    "parse_time",
    "pause",
    "read_record",
    "reference_name",
    "reference_path",
    "run_blocking",
    "same_content",
    "same_entry",
    "space_of",
    "unkept_versions",
    "without_turn",
]
