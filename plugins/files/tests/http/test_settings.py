"""Every setting of the plugin really works: what it allows is taken, and one more is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from falcon.testing import Result

from svc_files.configuration import FilesConfiguration

from .conftest import Http, user  # noqa: TID252

Ask = Callable[[Http, int], Result]


def check(http: Http, count: int) -> Result:
    return http.post("/blobs/check", {"hashes": [f"{number:064x}" for number in range(count)]})


def fetch(http: Http, count: int) -> Result:
    return http.post("/files/fetch", {"paths": [f"/none-{number}" for number in range(count)]})


def fetch_bytes(http: Http, count: int) -> Result:
    http.put("/files/a", bytes(count))
    return http.post("/files/fetch", {"paths": ["/a"]})


def fetch_scan(http: Http, count: int) -> Result:
    http.put("/files/a", b"x" * (count - 1) + b"\n")
    return http.post("/files/fetch", {"items": [{"path": "/a", "lines": [2, 3]}]})


def limit(http: Http, count: int) -> Result:
    return http.get("/files", params={"limit": str(count)})


def delete_below(http: Http, count: int) -> Result:
    http.fill(*[f"/d/f{number}" for number in range(count)])
    http.become(user({"/": "crudl", "/d/none": ""}))
    return http.delete("/files/d", params={"recursive": "true"})


REFUSED: dict[str, tuple[Ask, int]] = {
    "maximum_chunks": (check, 413),
    "listing_maximum": (limit, 400),
    "scan_entries": (delete_below, 413),
    "fetch_paths": (fetch, 413),
    "fetch_bytes": (fetch_bytes, 413),
    "fetch_scan_bytes": (fetch_scan, 413),
}
"""For each setting that refuses: a request of so many things, and the status of one too many."""

ELSEWHERE = {
    "listing_default": "test_listing.py: test_both_limits_are_settings",
    "merge_attempts": "test_a_merge_gives_up_after_so_many_attempts",
    "sandbox_active_content": "test_files.py: test_stored_pages_are_served_in_a_sandbox",
}


@pytest.mark.parametrize("name", FilesConfiguration.__struct_fields__)
def test_every_setting_has_a_test_or_a_reason_for_none(name: str) -> None:
    assert (name in REFUSED) != (name in ELSEWHERE)


@pytest.mark.parametrize("name", sorted(REFUSED))
@pytest.mark.parametrize("bound", [3, 8])
def test_a_setting_at_its_edge(http: Http, set_limits: Callable[..., None], name: str, bound: int) -> None:
    ask, status = REFUSED[name]
    set_limits(**{name: bound})
    refused = ask(http, bound + 1)
    assert (refused.status_code, refused.json.get("limit")) == (status, bound)
    if name == "scan_entries":
        http.become(user({"/": "crudl"}))
        http.delete("/files/d", params={"recursive": "true"})
    taken = ask(http, bound)
    assert taken.status_code == 200, taken.text


def test_a_merge_gives_up_after_so_many_attempts(
    http: Http, set_limits: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from svc.errors import PreconditionFailed
    from svc_files.responders import patching

    set_limits(merge_attempts=3)
    attempts = 0

    def overtaken(*_: Any) -> None:
        nonlocal attempts
        attempts += 1
        raise PreconditionFailed("somebody else was faster")

    monkeypatch.setattr(patching, "_merge_once", overtaken)
    headers = {"Content-Type": "application/merge-patch+json"}
    answer = http("PATCH", "/files/a", body=json.dumps({"a": 1}), headers=headers)
    assert (answer.status_code, attempts) == (409, 3)
