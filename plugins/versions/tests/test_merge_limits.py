"""A merge looks at so much and no more, also of trees that share directories and have paths without end."""

from __future__ import annotations

from typing import Any


def grow(http: Any, name: str, fork: str | None = None) -> None:
    """Puts a tree of 2^27 paths at ``/t``, in one request."""
    operations: list[dict[str, str]] = [{"op": "put", "path": "/w/0/f", "content": name}]
    for level in range(26):
        operations.append({"op": "copy", "path": f"/w/{level}", "to": f"/w/{level + 1}/a"})
        operations.append({"op": "move", "path": f"/w/{level}", "to": f"/w/{level + 1}/b"})
    operations.append({"op": "move", "path": "/w/26", "to": "/t"})
    transaction = http.database.transaction(ref="HEAD" if fork is None else f"forks/{fork}")
    if fork is not None:
        transaction.delete(("t",), recursive=True)
    for one in operations:
        path = tuple(one["path"].strip("/").split("/"))
        if one["op"] == "put":
            transaction.put(path, one["content"].encode())
        else:
            getattr(transaction, one["op"])(path, tuple(one["to"].strip("/").split("/")))
    transaction.commit()


def test_a_merge_of_trees_without_end_is_refused(http: Any) -> None:
    grow(http, "base")
    for fork in ("one", "two"):
        http.post("/versions/forks", {"name": fork})
        grow(http, fork, fork)
    before = http.database.head().sequence
    for into in ("two", "HEAD"):
        answer = http.post("/versions/merge", {"from": "one", "into": into})
        assert (answer.status_code, answer.json["code"]) == (413, "PAYLOAD_TOO_LARGE"), answer.text
        assert answer.json["limit"] == 500_000
    assert http.database.head().sequence == before
