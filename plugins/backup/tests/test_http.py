"""The routes: files stream out and in, and nobody but root may ask."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from svc.plugin import ROOT_IDENTITY, Database, Identity, ScopedRule
from svc_maintenance.verification import verify


@pytest.fixture
def filled(http, shared_source, take_in):
    """The served database, with HEAD at the first version of the source, and the second known."""
    take_in(http.database, shared_source.export(), promote=True)
    take_in(http.database, shared_source.patch())
    with http.database.transaction() as transaction:
        transaction.set_ref("snapshots/later", shared_source.second)
    return http


FAMILIES = ("/versions", "/version")


@pytest.mark.parametrize("family", FAMILIES)
def test_an_export_streams_as_the_answer(filled, shared_source, tmp_path: Path, family: str) -> None:
    answer = filled.post(f"{family}/export")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert answer.headers["x-svc-version"] == shared_source.first.hex()
    (tmp_path / "x.svcdb").write_bytes(answer.content)
    with Database(tmp_path / "x.svcdb") as exported:
        assert exported.head().root == shared_source.first
        assert verify(exported).ok


@pytest.mark.parametrize("query", ["snapshot=later", "version={second}", "snapshot=later&version={first}"])
def test_the_query_chooses_the_version(filled, shared_source, query: str) -> None:
    query = query.format(first=shared_source.first.hex(), second=shared_source.second.hex())
    answer = filled.post("/versions/export", query_string=query)
    assert answer.headers["x-svc-version"] == shared_source.second.hex()
    answer = filled.post("/versions/export", {"snapshot": "later"})
    assert answer.headers["x-svc-version"] == shared_source.second.hex()


def test_a_time_chooses_the_version(filled, shared_source) -> None:
    time_ms = filled.database.commit(filled.database.head().sequence).time_ms
    answer = filled.post("/versions/export", query_string=f"at={time_ms}")
    assert answer.headers["x-svc-version"] == shared_source.first.hex()
    assert filled.post("/versions/export", query_string="at=1").status_code == 404
    assert filled.post("/versions/export", query_string="at=yesterday").status_code == 400


def test_an_export_is_written_on_the_server(filled, shared_source, tmp_path: Path) -> None:
    answer = filled.post("/versions/export", {"output": "daily/monday.svcdb", "snapshot": "later"})
    assert answer.status_code == 200, answer.text
    report = answer.json
    path = tmp_path / "backups" / "daily" / "monday.svcdb"
    assert report["output"] == str(path)
    assert report["version"] == shared_source.second.hex()
    assert {"files", "chunks", "directories", "size"} <= set(report)
    assert path.stat().st_size == report["size"]
    assert path.parent.stat().st_mode & 0o077 == 0
    again = filled.post("/versions/export", {"output": str(path)})
    assert again.status_code == 409
    assert again.json["code"] == "ALREADY_EXISTS"


@pytest.mark.parametrize(
    "output",
    [
        "../x.svcdb",
        "a/../../x.svcdb",
        "/etc/x.svcdb",
        "/tmp/x.svcdb",
        "",
        "x/",
        "a\0b",
        ".",
        "..",
        "way/out.svcdb",
        "x" * 5000,
    ],
)
def test_no_path_leads_out_of_the_backup_directory(filled, tmp_path: Path, output: str) -> None:
    (tmp_path / "backups").mkdir()
    (tmp_path / "backups" / "way").symlink_to(tmp_path)
    before = set(os.listdir(tmp_path))
    for route, body in (
        ("/versions/export", {"output": output}),
        ("/versions/diff", {"output": output, "from": "HEAD"}),
        ("/versions/import", {"file": output}),
    ):
        answer = filled.post(route, body)
        assert answer.status_code == 400, (route, answer.text)
        assert answer.json["field"] in ("output", "file")
    assert set(os.listdir(tmp_path)) == before
    assert os.listdir(tmp_path / "backups") == ["way"]


def test_the_deployment_names_another_directory(filled, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SVC_BACKUP_DIRECTORY", str(tmp_path / "other"))
    assert filled.post("/versions/export", {"output": "x.svcdb"}).status_code == 200
    assert (tmp_path / "other" / "x.svcdb").exists()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_patch_streams_as_the_answer_and_comes_in_as_a_body(filled, shared_source, family: str) -> None:
    query = f"from={shared_source.first.hex()}&to=later"
    answer = filled.post(f"{family}/diff", query_string=query)
    assert answer.status_code == 200
    assert int(answer.headers["content-length"]) == len(answer.content)
    taken = filled.send(f"{family}/import", answer.content, query_string="promote=true")
    assert taken.status_code == 200, taken.text
    report = taken.json
    assert report["backup_type"] == "patch"
    assert report["version_hash"] == shared_source.second.hex()
    assert report["head_promoted"] is True
    assert report["deletions_applied"] == 3
    assert report["files_imported"] == 4
    assert report["warnings"] == []
    assert {"entries_imported", "chunks_imported", "directories_imported"} <= set(report)
    assert filled.database.head().root == shared_source.second


def test_a_patch_is_written_and_read_on_the_server(filled, shared_source) -> None:
    written = filled.post(
        "/versions/diff", {"output": "p.svcdb", "from": shared_source.first.hex(), "to": "later"}
    )
    assert written.status_code == 200, written.text
    assert (written.json["files_added"], written.json["files_deleted"]) == (2, 3)
    assert written.json["to"] == shared_source.second.hex()
    taken = filled.post("/versions/import", {"file": "p.svcdb", "promote": True})
    assert taken.status_code == 200, taken.text
    assert filled.database.head().root == shared_source.second


def test_to_is_head_when_it_is_not_given(filled, shared_source) -> None:
    answer = filled.post("/versions/diff", query_string="from=later")
    assert answer.headers["x-svc-version"] == shared_source.first.hex()


def test_head_stays_unless_promotion_is_asked_for(http, shared_source) -> None:
    before = http.database.head().root
    taken = http.send("/versions/import", shared_source.export())
    assert taken.status_code == 200, taken.text
    assert taken.json["head_promoted"] is False
    assert http.database.head().root == before
    promoted = http.post("/versions/promote", {"hash": shared_source.first.hex()})
    assert promoted.status_code == 200
    assert promoted.json["promoted"] is True
    assert promoted.json["head"] == shared_source.first.hex()
    assert http.database.head().root == shared_source.first


@pytest.mark.parametrize(
    ("route", "body", "query", "status"),
    [
        ("export", {"snapshot": "none"}, "", 404),
        ("export", None, "snapshot=none", 404),
        ("export", None, "snapshot=", 404),
        ("export", None, "version=" + "0" * 64, 404),
        ("export", None, "version=zz", 400),
        ("export", {"unknown": 1}, "", 400),
        ("export", {"output": 7}, "", 400),
        ("diff", None, "", 400),
        ("diff", {"output": "x"}, "", 400),
        ("diff", None, "from=none", 404),
        ("diff", None, "from=HEAD&to=none", 404),
        ("import", {"file": "none.svcdb"}, "", 404),
        ("import", {}, "", 400),
        ("import", {"file": "x", "promote": "yes"}, "", 400),
        ("import", None, "promote=maybe", 400),
        ("import", None, "", 400),
        ("promote", {"hash": "0" * 64}, "", 404),
        ("promote", {"hash": "zz"}, "", 400),
        ("promote", {"hash": 7}, "", 400),
        ("promote", None, "", 400),
    ],
)
def test_what_cannot_be_done_is_said(filled, route: str, body: object, query: str, status: int) -> None:
    answer = filled.post(f"/versions/{route}", body, query_string=query)
    assert answer.status_code == status, answer.text
    assert {"error", "code"} <= set(answer.json)


def test_bodies_that_are_no_backup_are_refused_early(http, shared_source) -> None:
    before = http.database.path.read_bytes()
    export = shared_source.export()
    for body in (b"x", b"PK\3\4" * 100, export[:1000], export[:-1], export + b"\0" * 8, export[:100]):
        answer = http.send("/versions/import", body)
        assert answer.status_code == 400, answer.text
        assert answer.json["code"] == "INVALID_INPUT"
    assert http.database.path.read_bytes() == before


def test_a_patch_for_another_version_is_a_conflict(http, shared_source) -> None:
    answer = http.send("/versions/import", shared_source.patch())
    assert answer.status_code == 409
    assert shared_source.first.hex() in answer.json["error"]
    assert http.database.head().root.hex() in answer.json["error"]
    assert "force" in answer.json["error"]
    assert http.send("/versions/import", shared_source.patch(), query_string="force=true").status_code == 400


def test_a_body_of_another_type_is_refused(http) -> None:
    answer = http._client.simulate_post("/versions/import", body=b"x", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 415


def test_a_body_over_the_limit_is_refused(http, plugins, shared_source) -> None:
    from svc.plugins import configure

    configure(http.database, plugins, "backup", {"maximum_import": 1000})
    assert http.send("/versions/import", shared_source.export()).status_code == 413
    configure(http.database, plugins, "backup", {"maximum_expansion": 1})
    assert http.send("/versions/import", shared_source.export()).status_code == 200


def test_system_data_are_never_taken_over_http(http, source, take_in) -> None:
    with source.database.transaction() as transaction:
        transaction.put_system(("users", "ann"), b"ann")
    answer = http.send("/versions/import", source.export(with_system=True))
    assert answer.status_code == 200, answer.text
    assert "root key" in answer.json["warnings"][0]
    assert http.database.system().get(("users",)) is None
    exported = http.post("/versions/export").content
    assert b"plugin-set" not in exported


ROUTES = ("export", "diff", "import", "promote")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("route", ROUTES)
def test_only_root_may_ask(filled, family: str, route: str) -> None:
    before = filled.database.head()
    filled.become(None)
    assert filled.post(f"{family}/{route}", {}).status_code == 401
    filled.become(Identity("00000000-0000-0000-0000-000000000001", "ann"))
    assert filled.post(f"{family}/{route}", {}).status_code == 403
    scoped = Identity(
        ROOT_IDENTITY.user_id, "root", is_root=True, key_id="k", rules=(ScopedRule("/**", "crudlify"),)
    )
    filled.become(scoped)
    assert filled.post(f"{family}/{route}", {}).status_code == 403
    assert filled.database.head() == before


def test_the_commit_names_who_imported(http, shared_source) -> None:
    http.send("/versions/import", shared_source.export(), query_string="promote=true")
    commit = http.database.commit(http.database.head().sequence)
    (transaction,) = commit.transactions
    assert transaction.actor == ROOT_IDENTITY.user_id
    assert shared_source.first.hex() in transaction.message


def test_a_real_server_streams_both_ways_in_bounded_memory(tmp_path: Path) -> None:
    """Forty megabytes out and in; the worker's memory grows by far less."""
    import io

    from svc.plugins import initialize
    from svc_testing import load_with_testing_auth, start_server

    path = tmp_path / "served.svcdb"
    with Database(path) as database:
        initialize(database, load_with_testing_auth("backup"))
        for number in range(2):
            with database.transaction() as transaction:
                transaction.put((f"large-{number}",), database.store(io.BytesIO(os.urandom(20_000_000))))
        root = database.head().root.hex()
    with start_server(path, plugins=("backup",)) as server:
        server.get("/system/health")
        exported = server.request("POST", "/versions/export")
        assert exported.status == 200
        assert len(exported.body) > 40_000_000
        before = _memory(server.process.pid)
        assert server.request("POST", "/versions/export").body
        headers = {"Content-Type": "application/octet-stream"}
        answer = server.request("POST", "/versions/import?promote=true", body=exported.body, headers=headers)
        assert answer.status == 200, answer.body
        assert json.loads(answer.body)["version_hash"] == root
        assert _memory(server.process.pid) - before < 25_000_000


def _memory(pid: int) -> int:
    """Resident anonymous bytes of a process and of those that it started."""
    total = 0
    for one in [pid, *_children(pid)]:
        for line in Path(f"/proc/{one}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                total += int(line.split()[1]) * 1024
    return total


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *_children(int(child))]
    return found
