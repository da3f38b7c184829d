"""No space for a safety snapshot, an import or an export: refused whole, and everything is as it was."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from svc_blackbox.backups import Source, export, imported, patch, send
from svc_blackbox.client import Client, assert_error
from svc_blackbox.prepared import run_svc
from svc_blackbox.server import Server
from svc_blackbox.versions import (
    PLURAL,
    contents,
    fork_names,
    head_version,
    list_forks,
    list_snapshots,
    make_fork,
    make_snapshot,
    merge,
    snapshot_names,
)


@contextmanager
def no_space(server: Server) -> Iterator[None]:
    """The worker's files can get no larger than the database is now."""
    found = json.loads(run_svc("status", "-D", server.database, "--json", check=False).stdout)
    pids = [worker["pid"] for worker in found["workers"]]
    assert pids
    limits = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in pids}
    for pid, (_, hard) in limits.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (server.database.stat().st_size + 8, hard))
    yield
    for pid, before in limits.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def test_nothing_is_done_by_halves(source: Source, client: Client, new_server: Callable[..., Server]) -> None:
    server = new_server("full", "--workers", "1")
    own = server.client()
    imported(own, export(client, snapshot="one"), promote="true")
    make_snapshot(own, "kept")
    make_fork(own, "draft")
    own.put_file("/new", b"on the fork", fork="draft")
    own.store("/text.txt", b"changed")
    own.store("/more", b"more")
    whole, small = export(client), patch(client, **{"from": "one", "to": "two"})
    state = (head_version(own), list_snapshots(own), list_forks(own), contents(own))

    def unchanged() -> None:
        assert (head_version(own), list_snapshots(own), list_forks(own), contents(own)) == state

    with no_space(server):
        for target, body in (
            (PLURAL.restore, {"name": "kept"}),
            (PLURAL.restore_path("/text.txt"), {"snapshot": "kept"}),
            (PLURAL.snapshot_routes[0], {"name": "new"}),
            (PLURAL.fork_routes[0], {"name": "new"}),
            (PLURAL.fork("draft", "/promote?force=true"), {}),
            ("/versions/promote", {"hash": source.roots["one"]}),
        ):
            assert_error(own.post(target, body), 507, "INSUFFICIENT_STORAGE")
            unchanged()
        assert_error(merge(own, "draft"), 507, "INSUFFICIENT_STORAGE")
        assert_error(own.delete(PLURAL.snapshot("kept")), 507, "INSUFFICIENT_STORAGE")
        assert_error(own.delete(PLURAL.fork("draft")), 507, "INSUFFICIENT_STORAGE")
        for data in (whole, small):
            assert_error(send(own, data, promote="true", force="true"), 507, "INSUFFICIENT_STORAGE")
        unchanged()
        assert own.get("/files/", version=source.roots["HEAD"]).status == 404
        # Reading is as always, and an export that is sent takes no space.
        assert own.read("/text.txt", snapshot="kept") == source.contents["one"]["/text.txt"]
        assert len(export(own, snapshot="kept")) > 100_000
    with Client(server.url) as again:
        assert imported(again, whole, promote="true")["version_hash"] == source.roots["HEAD"]
        assert again.post(PLURAL.restore, {"name": "kept"}).status == 200
        assert contents(again) == source.contents["one"]
        assert "draft" in fork_names(again)
        assert any(name.startswith("pre-restore-") for name in snapshot_names(again))
    assert server.stop() == 0
    assert "Traceback" not in server.log_text()
    run_svc("verify", "-D", server.database)


def test_an_export_into_a_file_leaves_no_part_of_it(new_server: Callable[..., Server]) -> None:
    server = new_server("full", "--workers", "1")
    own = server.client()
    own.store("/big", bytes(range(256)) * 40_000)
    for number in range(60):
        own.store(f"/{number}", b"%d" % number * 400)
    backups = server.database.parent / "backups"
    found = json.loads(run_svc("status", "-D", server.database, "--json", check=False).stdout)
    for worker in found["workers"]:
        hard = resource.prlimit(worker["pid"], resource.RLIMIT_FSIZE)[1]
        resource.prlimit(worker["pid"], resource.RLIMIT_FSIZE, (20_000, hard))
    response = own.post("/versions/export", {"output": "x.svcdb"})
    assert_error(response, 507, "INSUFFICIENT_STORAGE")
    assert not backups.exists() or list(backups.iterdir()) == []
