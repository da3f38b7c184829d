"""A client of the HTTP interface of svc.

``Client`` is one server; its parts (``files``, ``blobs``, ``versions``, ``backup``, ``keys``, ``sharing``,
``system``, ``users``) answer with values and raise the errors of ``svc.errors`` that the server raised.
"""

from __future__ import annotations

from svc_client.address import Credentials, ServerAddress
from svc_client.backup import BackupStream, Promoted
from svc_client.blobs import ChunkedFile, Upload
from svc_client.client import Client
from svc_client.credentials import CredentialStore, SignIn
from svc_client.files import BatchResult, Content, ReadAt
from svc_client.models import (
    AbandonedFork,
    ApiKey,
    Blame,
    BlameEntry,
    BlameLine,
    Commit,
    CommitDetails,
    Comparison,
    Counts,
    EntryInfo,
    EntryType,
    Fork,
    HistoryRow,
    ImportReport,
    Merge,
    NewApiKey,
    Page,
    PathChange,
    PathRestore,
    Promotion,
    Snapshot,
    SnapshotRestore,
    StoredFile,
)
from svc_client.sharing import NewShareLink, Share, SharedPath, ShareLink

__all__ = [
    "AbandonedFork",
    "ApiKey",
    "BackupStream",
    "BatchResult",
    "Blame",
    "BlameEntry",
    "BlameLine",
    "ChunkedFile",
    "Client",
    "Commit",
    "CommitDetails",
    "Comparison",
    "Content",
    "Counts",
    "CredentialStore",
    "Credentials",
    "EntryInfo",
    "EntryType",
    "Fork",
    "HistoryRow",
    "ImportReport",
    "Merge",
    "NewApiKey",
    "NewShareLink",
    "Page",
    "PathChange",
    "PathRestore",
    "Promoted",
    "Promotion",
    "ReadAt",
    "ServerAddress",
    "Share",
    "ShareLink",
    "SharedPath",
    "SignIn",
    "Snapshot",
    "SnapshotRestore",
    "StoredFile",
    "Upload",
]
