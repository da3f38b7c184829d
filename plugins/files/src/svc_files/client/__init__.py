"""One way to read and write the files of a database, wherever it is.

A ``FileStore`` works alike for a database file and for a server, so that every command is written once.
``svc_files.client.remote``, which needs the client, is imported only where a server is meant.
"""

from __future__ import annotations

from svc_files.client.local import LocalStore
from svc_files.client.source import SourceFile, SourceUnreadable, open_source
from svc_files.client.store import (
    CommitCounts,
    FileInfo,
    FileStore,
    Importer,
    ImportOptions,
    PutOptions,
    ReadPoint,
    Stored,
)

__all__ = [
    "CommitCounts",
    "FileInfo",
    "FileStore",
    "ImportOptions",
    "Importer",
    "LocalStore",
    "PutOptions",
    "ReadPoint",
    "SourceFile",
    "SourceUnreadable",
    "Stored",
    "open_source",
]
