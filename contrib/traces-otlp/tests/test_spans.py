"""What a request becomes: names, attributes, parents and times."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import SpanKind, StatusCode
from svc_traces_otlp.configuration import TracesConfiguration
from svc_traces_otlp.observer import _is_traced
from svc_traces_otlp.spans import spans_of

from svc.plugin import FinishedRequest, Secret, Step
from svc_testing import PluginContract

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE_ID}-b7ad6b7169203331-01"
REQUEST = FinishedRequest(
    request_id="6e157b23a1562b1a5272000000000022",
    method="PUT",
    route="/files/{path:path}",
    path="/files/private/plan.txt",
    scheme="https",
    protocol="1.1",
    status=201,
    is_complete=True,
    began_ns=1_800_000_000_000_000_000,
    seconds=0.5,
    received=10,
    sent=20,
    trace_parent=None,
    trace_state=None,
    began=100.0,
)


class TestPlugin(PluginContract):
    plugin_id = "traces.otlp"


def made(with_path: bool = False, **changes: Any) -> list[Any]:
    request = msgspec.structs.replace(REQUEST, **changes)
    return list(spans_of(request, Resource.get_empty(), with_path))


def test_a_span_follows_the_conventions_of_http_servers() -> None:
    [span] = made()
    assert span.name == "PUT /files/{path:path}"
    assert span.kind is SpanKind.SERVER
    assert span.status.status_code is StatusCode.UNSET
    assert (span.start_time, span.end_time) == (REQUEST.began_ns, REQUEST.began_ns + 500_000_000)
    assert span.attributes == {
        "http.request.method": "PUT",
        "http.route": "/files/{path:path}",
        "http.response.status_code": 201,
        "url.scheme": "https",
        "network.protocol.version": "1.1",
        "svc.request_id": REQUEST.request_id,
        "svc.received_bytes": 10,
        "svc.sent_bytes": 20,
    }


def test_the_path_is_told_only_where_a_setting_says_so() -> None:
    assert "plan.txt" not in made()[0].to_json()
    assert made(with_path=True)[0].attributes["url.path"] == "/files/private/plan.txt"


@pytest.mark.parametrize(
    ("status", "fails"), [(200, False), (404, False), (499, False), (500, True), (503, True)]
)
def test_errors_of_the_server_alone_are_errors(status: int, fails: bool) -> None:
    [span] = made(status=status)
    assert (span.status.status_code is StatusCode.ERROR) == fails
    assert span.attributes.get("error.type") == (str(status) if fails else None)


def test_any_word_for_a_method_makes_no_name() -> None:
    [span] = made(method="BREW", route="")
    assert span.name == "HTTP"
    assert span.attributes["http.request.method"] == "_OTHER"
    assert span.attributes["http.request.method_original"] == "BREW"
    assert "http.route" not in span.attributes


def test_a_trace_goes_on_with_its_state() -> None:
    [span] = made(trace_parent=PARENT, trace_state="vendor=1")
    assert f"{span.context.trace_id:032x}" == TRACE_ID
    assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"
    assert span.context.trace_state.to_header() == "vendor=1"


@pytest.mark.parametrize(
    "malformed",
    ["", "x", f"00-{'0' * 32}-b7ad6b7169203331-01", f"ff{PARENT[2:]}", f"00-{TRACE_ID}-{'0' * 16}-01"],
)
def test_a_malformed_parent_is_none(malformed: str) -> None:
    [span] = made(trace_parent=malformed)
    assert span.parent is None
    assert f"{span.context.trace_id:032x}" == REQUEST.request_id


def test_without_a_parent_the_id_of_the_request_is_that_of_the_trace() -> None:
    assert f"{made()[0].context.trace_id:032x}" == REQUEST.request_id
    for given in ("mine", "0" * 32, REQUEST.request_id.upper()):
        assert made(request_id=given)[0].context.trace_id not in (0, int(REQUEST.request_id, 16))


def test_what_a_commit_waited_for_lies_in_it() -> None:
    steps = (
        *(Step("commit.lock", 100.1, 100.2), Step("log.sync", 100.2, 100.3), Step("commit", 100.1, 100.4)),
        *(Step("commit.lock", 100.4, 100.4), Step("commit", 100.4, 100.5)),
    )
    server, *others = made(steps=steps)
    assert [span.name for span in others] == ["commit", "commit.lock", "log.sync", "commit", "commit.lock"]
    one, lock, sync, two, again = others
    assert one.parent == two.parent == server.context
    assert lock.parent == sync.parent == one.context
    assert again.parent == two.context
    assert {span.context.trace_id for span in others} == {server.context.trace_id}
    assert len({span.context.span_id for span in (server, *others)}) == 6
    assert (sync.start_time - server.start_time, sync.end_time - server.start_time) == (
        200_000_000,
        300_000_000,
    )


def test_who_calls_decides_what_is_traced_else_the_ratio_does() -> None:
    assert _is_traced(PARENT, 0.0)
    assert not _is_traced(f"00-{TRACE_ID}-b7ad6b7169203331-00", 1.0)
    assert _is_traced(None, 1.0)
    assert _is_traced("malformed", 1.0)
    assert not _is_traced(None, 0.0)
    assert 300 < sum(_is_traced(None, 0.5) for _ in range(1000)) < 700


@pytest.mark.parametrize("headers", ["novalue", "=x", "a=b\r\nc: d", "ä=b"])
def test_headers_of_another_form_are_refused(headers: str) -> None:
    with pytest.raises(ValueError, match="name=value"):
        TracesConfiguration(headers=Secret(headers))


def test_headers_are_split_at_commas_and_never_shown() -> None:
    settings = TracesConfiguration(headers=Secret("Authorization=Basic a=, X-Scope=b"))
    assert settings.header_fields() == {"Authorization": "Basic a=", "X-Scope": "b"}
    assert "Basic" not in repr(settings)
