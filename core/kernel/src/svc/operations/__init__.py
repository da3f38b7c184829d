"""Operations: what svc can do, each declared once as a typed function.

From a declaration follow the route, the entry in the OpenAPI document and the call from a program or a
command. Nothing here imports the database or the HTTP framework, so that clients can use declarations.
"""

from __future__ import annotations

from svc.operations.access import (
    Access,
    AccessKind,
    accepts_query_token,
    access_of,
    errors_as_page,
    public,
    requires,
    requires_account,
    requires_any,
    requires_identity,
    requires_in_body,
    requires_root,
    requires_somewhere,
)
from svc.operations.call import Call
from svc.operations.declaration import (
    ArrayPage,
    Created,
    DeclaredOperation,
    Page,
    Weight,
    operation,
    operations_of,
)
from svc.operations.json import encode_json
from svc.operations.values import Arguments, bind_arguments, read_query, write_query

__all__ = [
    "Access",
    "AccessKind",
    "Arguments",
    "ArrayPage",
    "Call",
    "Created",
    "DeclaredOperation",
    "Page",
    "Weight",
    "accepts_query_token",
    "access_of",
    "bind_arguments",
    "encode_json",
    "errors_as_page",
    "operation",
    "operations_of",
    "public",
    "read_query",
    "requires",
    "requires_account",
    "requires_any",
    "requires_identity",
    "requires_in_body",
    "requires_root",
    "requires_somewhere",
    "write_query",
]
