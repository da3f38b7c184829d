"""What is answered when a query would have to wait, and what ends when nobody waits for it any more."""

from __future__ import annotations

from typing import Any


def set_waiting(http: Any, seconds: float) -> None:
    answer = http("PUT", "/system/plugins/query/configuration", json={"wait_seconds": seconds})
    assert answer.status_code == 200, answer.text


def test_an_index_that_is_behind_is_named(http: Any) -> None:
    http.query([])
    set_waiting(http, 0.01)
    transaction = http.database.transaction()
    for number in range(15_000):
        transaction.put((f"{number}.bin",), b"")
    transaction.commit()
    error = http.refused([], status=503)
    assert error["view"] == "query.index"
    assert error["commits_behind"] >= 1
    assert error["retry_after"] == 1
    assert "behind" in error["error"]
    http.query([], consistency="eventual")
    set_waiting(http, 60)
    assert http.query([], limit=1, include_total=True)["total_count"] == 15_000


def test_files_that_wait_for_their_parsers_are_counted(http: Any) -> None:
    fields = [{"name": "rows", "type": "exact", "source": ["rows", "", "a"]}]
    http.write({"/d/.svc-config/indexes.json": {"glob": "**/*", "indexes": fields}})
    http.query([])
    set_waiting(http, 0.01)
    http.write({f"/d/{number}.csv": "a,b\n1,2\n" for number in range(3)}, content_type="text/csv")
    where = {"field": "rows", "op": "exists"}
    error = http.refused(where, "/d", status=503)
    assert (error["view"], error["files_waiting"]) == ("query.index", 3)
    assert len(http.paths([], "/d")) == 4, "who asks for no content waits for none"
    assert http.paths(where, "/d", consistency="eventual") == []
