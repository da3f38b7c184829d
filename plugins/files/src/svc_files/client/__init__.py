"""One way to read and write the files of a database, wherever it is.

The path of a database file or the URL of a server flows in; a ``FileStore`` flows out, which lists,
reads, writes and imports in the same manner for both, so that every command is written once.
"""

from __future__ import annotations

from svc_files.client.connection import ServerAddress, is_server_url
from svc_files.client.local import LocalStore
from svc_files.client.remote import RemoteStore
from svc_files.client.source import ByteReader, SourceFile, SourceUnreadable, open_source
from svc_files.client.store import (
    CommitCounts,
    FileInfo,
    FileStore,
    Importer,
    ImportListener,
    ImportOptions,
    PutOptions,
    ReadPoint,
    Stored,
)

__all__ = [
    "ByteReader",
    "CommitCounts",
    "FileInfo",
    "FileStore",
    "ImportListener",
    "ImportOptions",
    "Importer",
    "LocalStore",
    "PutOptions",
    "ReadPoint",
    "RemoteStore",
    "ServerAddress",
    "SourceFile",
    "SourceUnreadable",
    "Stored",
    "is_server_url",
    "open_source",
]
