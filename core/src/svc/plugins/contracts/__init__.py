"""The contracts of the extension families: what a plugin implements, and what it is handed.

Values and abstract classes only; nothing here does I/O. A plugin subclasses a contract and adds an
object of it to the registry of its family; the kernel and other plugins call it through the contract.
"""

from __future__ import annotations

from svc.plugins.contracts.auth import (
    ROOT_IDENTITY,
    ROOT_USER_ID,
    AuthContext,
    AuthMode,
    Credentials,
    Identity,
    Operation,
    Rights,
    ScopedRule,
)
from svc.plugins.contracts.background import BackgroundJob, JobContext, JobRegistry
from svc.plugins.contracts.events import Event, EventSink, EventTarget, EventType
from svc.plugins.contracts.health import HealthCheck, HealthReport, HealthStatus
from svc.plugins.contracts.indexing import (
    FieldValue,
    Index,
    IndexChange,
    IndexDefinition,
    IndexKeys,
    IndexMatches,
    IndexType,
    Lookup,
)
from svc.plugins.contracts.parsing import ParsedDocument, Parser, ParserInput
from svc.plugins.contracts.query import QueryOperator
from svc.plugins.contracts.sync import PeerAddress, SyncConnection, SyncTransport
from svc.plugins.contracts.tasks import TaskCancelled, TaskContext, TaskType

__all__ = [
    "ROOT_IDENTITY",
    "ROOT_USER_ID",
    "AuthContext",
    "AuthMode",
    "BackgroundJob",
    "Credentials",
    "Event",
    "EventSink",
    "EventTarget",
    "EventType",
    "FieldValue",
    "HealthCheck",
    "HealthReport",
    "HealthStatus",
    "Identity",
    "Index",
    "IndexChange",
    "IndexDefinition",
    "IndexKeys",
    "IndexMatches",
    "IndexType",
    "JobContext",
    "JobRegistry",
    "Lookup",
    "Operation",
    "ParsedDocument",
    "Parser",
    "ParserInput",
    "PeerAddress",
    "QueryOperator",
    "Rights",
    "ScopedRule",
    "SyncConnection",
    "SyncTransport",
    "TaskCancelled",
    "TaskContext",
    "TaskType",
]
