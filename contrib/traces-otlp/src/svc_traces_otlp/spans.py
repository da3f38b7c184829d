"""Spans of requests by OpenTelemetry's conventions for HTTP servers, and the message to the collector.

A request without a ``traceparent`` begins a trace, whose id is that of the request, if it has the form of
one: then ``X-Request-Id`` and the log name the trace.
"""

from __future__ import annotations

import logging
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from svc.plugin import FinishedRequest, Step
from svc_traces_otlp.configuration import TracesConfiguration

__all__ = ["Exporter", "spans_of"]

_METHODS = {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"}
_OTHER = "_OTHER"
_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}", re.ASCII)
_SCOPE = InstrumentationScope("svc_traces_otlp", "0.1.0")
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_PROPAGATOR = TraceContextTextMapPropagator()
# It says each failure once more, and for each message; the sender says it once.
logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)


class Exporter:
    """Sends spans of requests. For one thread at a time.

    Args:
        settings: say where to.
    """

    def __init__(self, settings: TracesConfiguration) -> None:
        self._settings = settings
        self._resource = Resource.create(
            {
                "service.name": settings.service_name,
                "service.instance.id": str(uuid.uuid4()),
                "process.pid": os.getpid(),
            }
        )
        self._exporter = OTLPSpanExporter(
            endpoint=settings.endpoint,
            headers=settings.header_fields() or None,
            timeout=settings.timeout_seconds,
            compression=Compression(settings.compression),
        )

    def send(self, requests: Sequence[FinishedRequest]) -> str | None:
        """Sends them in one message; blocks. Returns what is wrong, or None."""
        spans = [
            span for request in requests for span in spans_of(request, self._resource, self._settings.paths)
        ]
        if self._exporter.export(spans) is SpanExportResult.SUCCESS:
            return None
        return f"the collector at {self._settings.endpoint} did not take them."


def spans_of(request: FinishedRequest, resource: Resource, with_path: bool) -> Iterator[ReadableSpan]:
    """Yields the span of a request, and those of what it waited for."""
    parent = _parent_of(request)
    own = _identify(_trace_id_of(request) if parent is None else parent.trace_id, parent)
    method = request.method if request.method in _METHODS else _OTHER
    name = "HTTP" if method == _OTHER else method
    fails = request.status >= 500
    yield ReadableSpan(
        name=f"{name} {request.route}" if request.route else name,
        context=own,
        parent=parent,
        resource=resource,
        attributes=_attributes(request, method, with_path),
        kind=SpanKind.SERVER,
        status=Status(StatusCode.ERROR if fails else StatusCode.UNSET),
        start_time=request.began_ns,
        end_time=request.began_ns + _nanoseconds(request.seconds),
        instrumentation_scope=_SCOPE,
    )
    inner: list[Step] = []
    for step in request.steps:
        if step.name != "commit":
            inner.append(step)
            continue
        commit = _identify(own.trace_id, own)
        yield _span_of_step(request, step, commit, own, resource)
        for part in inner:
            yield _span_of_step(request, part, _identify(own.trace_id, own), commit, resource)
        inner.clear()


def _attributes(request: FinishedRequest, method: str, with_path: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "http.request.method": method,
        "http.response.status_code": request.status,
        "url.scheme": request.scheme,
        "svc.request_id": request.request_id,
        "svc.received_bytes": request.received,
        "svc.sent_bytes": request.sent,
    }
    if method == _OTHER:
        found["http.request.method_original"] = request.method
    if request.route:
        found["http.route"] = request.route
    if request.protocol:
        found["network.protocol.version"] = request.protocol
    if request.status >= 500:
        found["error.type"] = str(request.status)
    if not request.is_complete:
        found["svc.aborted"] = True
    if with_path:
        found["url.path"] = request.path
    return found


def _span_of_step(
    request: FinishedRequest, step: Step, own: SpanContext, parent: SpanContext, resource: Resource
) -> ReadableSpan:
    return ReadableSpan(
        name=step.name,
        context=own,
        parent=parent,
        resource=resource,
        kind=SpanKind.INTERNAL,
        start_time=request.began_ns + _nanoseconds(step.began - request.began),
        end_time=request.began_ns + _nanoseconds(step.ended - request.began),
        instrumentation_scope=_SCOPE,
    )


def _parent_of(request: FinishedRequest) -> SpanContext | None:
    """The span of whoever called, as ``traceparent`` says it; None where that is missing or malformed."""
    if request.trace_parent is None:
        return None
    carrier = {"traceparent": request.trace_parent}
    if request.trace_state is not None:
        carrier["tracestate"] = request.trace_state
    found = get_current_span(_PROPAGATOR.extract(carrier)).get_span_context()
    return found if found.is_valid else None


def _trace_id_of(request: FinishedRequest) -> int:
    if _TRACE_ID.fullmatch(request.request_id):
        return int(request.request_id, 16)
    return int.from_bytes(os.urandom(16), "big") or 1


def _identify(trace_id: int, beside: SpanContext | None) -> SpanContext:
    """A new span of a trace, with the state that the trace has."""
    span_id = int.from_bytes(os.urandom(8), "big") or 1
    state = None if beside is None else beside.trace_state
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=_SAMPLED, trace_state=state)


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000_000)
