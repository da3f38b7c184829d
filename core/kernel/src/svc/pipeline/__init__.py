"""The request pipeline: one place each for identity, permission, limits, conditions and errors.

Responders of plugins declare what they need. The pipeline checks that before it calls them, gives every
answer and error one form, and writes one line of the log for each request.
"""

from __future__ import annotations

from svc.operations import (
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
from svc.operations.json import encode_json
from svc.pipeline.address_log import AddressLog
from svc.pipeline.application import Application, create_app, create_service_app
from svc.pipeline.binding import check_route, endpoints_of
from svc.pipeline.bodies import PIECE_SIZE, BodyStream, body_stream, read_json
from svc.pipeline.caching import mark_immutable, vary_by
from svc.pipeline.calling import OperationAnswer, call_operation, send_operation
from svc.pipeline.conditions import (
    conditions_of,
    format_http_date,
    not_modified,
    parse_http_date,
    quote_etag,
)
from svc.pipeline.context import RequestContext, SvcRequest
from svc.pipeline.examples import json_command, upload_command
from svc.pipeline.fairness import dear_work
from svc.pipeline.lifetime import Lifetime
from svc.pipeline.middleware import identify_caller, renew_caller
from svc.pipeline.operations import read_parameters
from svc.pipeline.parameters import context_of, has_body
from svc.pipeline.permission import (
    effective_permissions,
    flags_of_mask,
    parse_flags,
    permits,
    permitted,
)
from svc.pipeline.ranges import ByteRange, MultipartRanges, parse_range
from svc.pipeline.responses import send_content, send_json, send_json_items, send_stream, set_fields
from svc.pipeline.sealing import seal, unseal
from svc.pipeline.serialization import path_not_found
from svc.pipeline.service import Service
from svc.pipeline.sessions import SESSION_COOKIE, read_cookie, require_own_page, write_cookie
from svc.pipeline.settings import Limits, PipelineSettings
from svc.pipeline.visible_parts import visible_parts
from svc.plugins import Operation

__all__ = [
    "PIECE_SIZE",
    "SESSION_COOKIE",
    "AccessKind",
    "AddressLog",
    "Application",
    "BodyStream",
    "ByteRange",
    "Lifetime",
    "Limits",
    "MultipartRanges",
    "Operation",
    "OperationAnswer",
    "PipelineSettings",
    "RequestContext",
    "Service",
    "SvcRequest",
    "accepts_query_token",
    "access_of",
    "body_stream",
    "call_operation",
    "check_route",
    "conditions_of",
    "context_of",
    "create_app",
    "create_service_app",
    "dear_work",
    "effective_permissions",
    "encode_json",
    "endpoints_of",
    "errors_as_page",
    "flags_of_mask",
    "format_http_date",
    "has_body",
    "identify_caller",
    "json_command",
    "mark_immutable",
    "not_modified",
    "parse_flags",
    "parse_http_date",
    "parse_range",
    "path_not_found",
    "permits",
    "permitted",
    "public",
    "quote_etag",
    "read_cookie",
    "read_json",
    "read_parameters",
    "renew_caller",
    "require_own_page",
    "requires",
    "requires_account",
    "requires_any",
    "requires_identity",
    "requires_in_body",
    "requires_root",
    "requires_somewhere",
    "seal",
    "send_content",
    "send_json",
    "send_json_items",
    "send_operation",
    "send_stream",
    "set_fields",
    "unseal",
    "upload_command",
    "vary_by",
    "visible_parts",
    "write_cookie",
]
