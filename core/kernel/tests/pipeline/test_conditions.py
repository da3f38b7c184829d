"""Conditional requests follow RFC 9110, section 13."""

from __future__ import annotations

from typing import Any

import falcon
import pytest
from falcon.testing import TestClient, create_environ

from svc.errors import InvalidInput
from svc.pipeline import conditions_of, format_http_date, parse_http_date
from svc.pipeline.conditions import EntityTag, parse_entity_tags

SAME = "Tue, 14 Nov 2023 22:13:20 GMT"
BEFORE = "Tue, 14 Nov 2023 22:13:19 GMT"
AFTER = "Tue, 14 Nov 2023 22:13:21 GMT"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"If-None-Match": '"abc"'}, 304),
        ({"If-None-Match": 'W/"abc"'}, 304),
        ({"If-None-Match": '"x", "abc"'}, 304),
        ({"If-None-Match": "abc"}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": '"x"'}, 200),
        ({"If-None-Match": '"a,b", "c"'}, 200),
        ({"If-Modified-Since": SAME}, 304),
        ({"If-Modified-Since": AFTER}, 200),
        ({"If-Modified-Since": BEFORE}, 200),
        ({"If-Modified-Since": "yesterday"}, 200),
        ({"If-None-Match": '"x"', "If-Modified-Since": AFTER}, 200),
        ({"If-Match": '"abc"'}, 200),
        ({"If-Match": "*"}, 200),
        ({"If-Match": 'W/"abc"'}, 412),
        ({"If-Match": '"x"'}, 412),
        ({"If-Match": '"x"', "If-None-Match": '"abc"'}, 412),
        ({"If-Match": '"abc"', "If-Unmodified-Since": BEFORE}, 200),
        ({"If-Unmodified-Since": BEFORE}, 412),
        ({"If-Unmodified-Since": SAME}, 200),
        ({"If-Unmodified-Since": "never"}, 200),
        ({"If-Match": '"unclosed'}, 400),
        ({"If-None-Match": ","}, 400),
    ],
)
def test_a_read_answers_as_the_rfc_says(client: TestClient, headers: dict[str, str], status: int) -> None:
    answer = client.simulate_get("/things/a", headers=headers)
    assert answer.status_code == status
    if status == 304:
        assert answer.content == b""
        assert answer.headers["etag"] == '"abc"'
    if status == 412:
        assert answer.json["code"] == "PRECONDITION_FAILED"


@pytest.mark.parametrize(
    ("headers", "condition"),
    [
        ({"If-Match": '"a"'}, (("a",), None, None)),
        ({"If-Match": "*"}, (("*",), None, None)),
        ({"If-Match": '"*"'}, (('"*"',), None, None)),
        ({"If-Match": 'W/"a"'}, ((), None, None)),
        ({"If-None-Match": "*"}, (None, ("*",), None)),
        ({"If-None-Match": 'W/"a", "b"'}, (None, ("a", "b"), None)),
        ({"If-Unmodified-Since": SAME}, (None, None, 1_700_000_000_999)),
        ({"If-Unmodified-Since": SAME, "If-Match": '"a"'}, (("a",), None, None)),
        ({"If-Unmodified-Since": "junk"}, (None, None, None)),
    ],
)
def test_a_write_hands_its_conditions_to_the_transaction(headers: dict[str, str], condition: Any) -> None:
    found = conditions_of(falcon.Request(create_environ(headers=headers, method="PUT")))
    assert found is not None
    assert (found.if_match, found.if_none_match, found.if_unmodified_since_ms) == condition


def test_a_write_without_conditions_has_none() -> None:
    assert conditions_of(falcon.Request(create_environ(method="PUT"))) is None


def test_a_malformed_precondition_never_becomes_a_plain_overwrite() -> None:
    with pytest.raises(InvalidInput):
        conditions_of(falcon.Request(create_environ(headers={"If-Match": '"a'}, method="PUT")))


def test_tags_may_hold_commas() -> None:
    assert parse_entity_tags("If-Match", '"a,b" , W/"c"') == (EntityTag("a,b", False), EntityTag("c", True))


@pytest.mark.parametrize("text", [SAME, "Tuesday, 14-Nov-23 22:13:20 GMT", "Tue Nov 14 22:13:20 2023"])
def test_all_three_forms_of_dates_are_read(text: str) -> None:
    assert parse_http_date(text) == 1_700_000_000


def test_dates_are_written_in_the_preferred_form_and_never_fail() -> None:
    assert format_http_date(1_700_000_000_999) == SAME
    assert format_http_date(-(10**18)).endswith("0001 00:00:00 GMT")
    assert format_http_date(10**18).startswith("Fri, 31 Dec 9999")
    assert parse_http_date("Tue, 99 Nov 2023 22:13:20 GMT") is None
    assert parse_http_date("") is None
