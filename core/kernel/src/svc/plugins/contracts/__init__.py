"""The contracts of the families that the kernel drives: what a plugin implements, and what it is handed.

Values and abstract classes, without I/O. A plugin adds an object of a subclass to the registry of its family.
"""

from __future__ import annotations

from svc.plugins.contracts.auth import (
    ROOT_IDENTITY,
    ROOT_USER_ID,
    AuthContext,
    AuthMode,
    Credentials,
    Identity,
    KnownUser,
    Operation,
    Rights,
    ScopedRule,
)
from svc.plugins.contracts.background import BackgroundJob, JobContext, JobRegistry
from svc.plugins.contracts.content import ContentCheck
from svc.plugins.contracts.health import HealthCheck, HealthReport, HealthStatus
from svc.plugins.contracts.observing import FinishedRequest, RequestObserver

__all__ = [
    "ROOT_IDENTITY",
    "ROOT_USER_ID",
    "AuthContext",
    "AuthMode",
    "BackgroundJob",
    "ContentCheck",
    "Credentials",
    "FinishedRequest",
    "HealthCheck",
    "HealthReport",
    "HealthStatus",
    "Identity",
    "JobContext",
    "JobRegistry",
    "KnownUser",
    "Operation",
    "RequestObserver",
    "Rights",
    "ScopedRule",
]
