"""A client of the HTTP interface of svc.

``Client`` is one server. It calls operations by their declarations, which plugins publish, and raises the
errors of ``svc.errors`` that the server raised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from svc_client.address import Credentials, ServerAddress
from svc_client.client import Client
from svc_client.credentials import CredentialStore, SignIn
from svc_client.files import Content, ReadAt
from svc_client.models import (
    EntryInfo,
    EntryType,
    Page,
    StoredFile,
)
from svc_client.transport import Response

if TYPE_CHECKING:
    from svc_client.asynchronous import AsyncClient as AsyncClient

__all__ = [
    "AsyncClient",
    "Client",
    "Content",
    "CredentialStore",
    "Credentials",
    "EntryInfo",
    "EntryType",
    "Page",
    "ReadAt",
    "Response",
    "ServerAddress",
    "SignIn",
    "StoredFile",
]


def __getattr__(name: str) -> Any:
    # asyncio is for programs that use it: a command does without.
    if name == "AsyncClient":
        from svc_client.asynchronous import AsyncClient

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
