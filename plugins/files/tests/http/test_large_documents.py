"""JSON documents that are worked on in a process of their own answer as small ones do."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from svc_files import json_process
from svc_files.json_process import IN_PLACE_BYTES
from svc_files.responders.patching import _turn_at

PAD = "x" * IN_PLACE_BYTES


@pytest.mark.parametrize("pad", ["", PAD], ids=["small", "large"])
def test_pointers_find_the_same(http: Any, pad: str) -> None:
    document = {"a": [1, {"b": 2.5}], "n": 10**30, "ü/~": None, "pad": pad}
    http.put("/files/x.json", json.dumps(document).encode())
    pointers = ["/a/1/b", "/n", "/ü~1~0", "/a/7", "/a/01", "x", "/a"]
    items = [{"path": "/x.json", "json_pointer": pointer} for pointer in pointers]
    found = http.post("/files/fetch", {"items": items}).json["items"]
    assert [one.get("value", one.get("code")) for one in found] == [
        *(2.5, 10**30, None, "NOT_FOUND", "NOT_FOUND", "INVALID_INPUT", [1, {"b": 2.5}]),
    ]


@pytest.mark.parametrize("pad", ["", PAD], ids=["small", "large"])
def test_what_is_no_document_is_told_for_each_item(http: Any, pad: str) -> None:
    http.put("/files/x.json", b'{"a": ' + pad.encode())
    items = [{"path": "/x.json", "json_pointer": "/a"}] * 3
    found = http.post("/files/fetch", {"items": items}).json["items"]
    assert [one["code"] for one in found] == ["INVALID_INPUT"] * 3


@pytest.mark.parametrize("pad", ["", PAD], ids=["small", "large"])
def test_merges_are_the_same(http: Any, pad: str) -> None:
    http.put("/files/x.json", json.dumps({"a": {"b": 1, "c": 2}, "pad": pad}).encode())
    patch = {"a": {"b": None, "d": 10**20}, "new": [1]}
    headers = {"Content-Type": "application/merge-patch+json"}
    answer = http("PATCH", "/files/x.json", body=json.dumps(patch).encode(), headers=headers)
    assert answer.status_code == 200
    merged = json.loads(http.get("/files/x.json").content)
    assert merged == {"a": {"c": 2, "d": 10**20}, "pad": pad, "new": [1]}
    bad = http("PATCH", "/files/x.json", body=b"{" + pad.encode(), headers=headers)
    assert (bad.status_code, bad.json["code"]) == (400, "INVALID_INPUT")
    http.put("/files/x.json", b"no document" + pad.encode())
    spoilt = http("PATCH", "/files/x.json", body=b"{}", headers=headers)
    assert (spoilt.status_code, spoilt.json["code"]) == (409, "CONFLICT")


@pytest.mark.parametrize("left", [0, 1, 20, IN_PLACE_BYTES])
def test_an_answer_that_is_cut_is_never_a_document(http: Any, monkeypatch: Any, left: int) -> None:
    content = json.dumps({"pad": PAD}).encode()
    http.put("/files/x.json", content)
    run = json_process.run_in_child

    def killed_while_it_writes(module: str, *contents: bytes) -> bytes:
        return run(module, *contents)[:left]

    monkeypatch.setattr(json_process, "run_in_child", killed_while_it_writes)
    headers = {"Content-Type": "application/merge-patch+json"}
    answer = http("PATCH", "/files/x.json", body=b'{"a": 1}', headers=headers)
    assert answer.status_code == 503
    items = [{"path": "/x.json", "json_pointer": ""}]
    assert http.post("/files/fetch", {"items": items}).status_code == 503 or left == IN_PLACE_BYTES
    assert http.get("/files/x.json").content == content


@pytest.mark.parametrize("pad", ["x" * 1000, PAD], ids=["small", "large"])
def test_values_are_bounded_before_they_are_made(http: Any, set_limits: Any, pad: str) -> None:
    set_limits(fetch_bytes=4 * len(pad))
    http.put("/files/x.json", json.dumps({"pad": pad, "list": list(range(10))}).encode())
    pointers = ["", "/pad", "", "/list/1"]
    items = [{"path": "/x.json", "json_pointer": pointer} for pointer in pointers]
    assert http.post("/files/fetch", {"items": items}).status_code == 200
    many = [{"path": "/x.json", "json_pointer": ""}] * 20
    answer = http.post("/files/fetch", {"items": many})
    assert (answer.status_code, answer.json["code"]) == (413, "PAYLOAD_TOO_LARGE")


def test_merges_into_one_path_keep_no_other_waiting() -> None:
    done = threading.Event()
    for number in range(200):
        with _turn_at(("a",)):
            path = (f"b{number}",)

            def other(path: Any = path) -> None:
                with _turn_at(path):
                    done.set()

            thread = threading.Thread(target=other)
            thread.start()
            assert done.wait(30)
            thread.join()
            done.clear()
