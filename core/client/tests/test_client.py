"""The client against a real server, from a first file to a backup."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from svc import errors
from svc.hashing import content_hasher
from svc.operations.system import disable_plugin, enable_plugin, list_findings, list_plugins
from svc.paths import parse_path
from svc_backup.models import DiffQuery, ExportReport, ImportQuery, ImportReport, PromoteBody
from svc_backup.operations import diff_versions, export_version, import_version, promote_version
from svc_client import Client, EntryType, ReadAt
from svc_client.transport import Body
from svc_files.models import (
    BatchBody,
    DeletedQuery,
    DeleteOperation,
    DownloadBody,
    LinkBody,
    MakeDirectoryBody,
    MakeDirectoryOperation,
    MovedEntry,
    PutOperation,
    RenameBody,
)
from svc_files.operations import (
    batch,
    change_path,
    delete_path,
    download,
    list_deleted,
    make_directory,
    make_link,
    store_chunk,
)
from svc_files.uploads import upload_file
from svc_history import operations as history
from svc_history.models import CompareQuery, HistoryQuery, LogQuery, PathChange
from svc_testing import start_server
from svc_versions import operations as versions
from svc_versions.models import (
    ForkQuery,
    LifecycleChange,
    MergeBody,
    NewFork,
    NewSnapshot,
    PathRestoreBody,
    PromotionBody,
    ResolveQuery,
    SnapshotName,
)

PLUGINS = ("files", "history", "versions", "backup")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    path = tmp_path_factory.mktemp("client") / "served.svcdb"
    with start_server(path, plugins=PLUGINS) as server, Client(server.url) as opened:
        yield opened


@pytest.fixture
def top(request: pytest.FixtureRequest) -> str:
    """A directory that no other test uses."""
    return "/" + request.node.name.replace("[", "-").replace("]", "")


class TestFiles:
    def test_bytes_come_back_as_they_went(self, client: Client, top: str) -> None:
        stored = client.files.put(f"{top}/é 50%?#", b"content", content_type="text/x-test")
        assert (stored.created, stored.size, stored.content_type) == (True, 7, "text/x-test")
        assert client.files.read(f"{top}/é 50%?#") == b"content"
        assert client.files.read((top[1:], "é 50%?#")) == b"content"
        info = client.files.stat(f"{top}/é 50%?#")
        assert (info.entry_type, info.hash, info.name) == (EntryType.FILE, stored.content_hash, "é 50%?#")
        assert not client.files.put(f"{top}/é 50%?#", b"more").created

    def test_a_stream_goes_in_and_comes_out_in_pieces(self, client: Client, top: str) -> None:
        content = os.urandom(3_000_000)
        for size in (len(content), None):
            client.files.put(f"{top}/f", lambda: iter([content[:1_000_000], content[1_000_000:]]), size=size)
            with client.files.get(f"{top}/f") as got:
                assert (got.length, b"".join(got)) == (len(content), content)

    def test_a_range_of_a_file(self, client: Client, top: str) -> None:
        client.files.put(f"{top}/f", b"0123456789")
        with client.files.get(f"{top}/f", start=2, length=3) as got:
            assert b"".join(got) == b"234"
        with client.files.get(f"{top}/f", start=8) as got:
            assert b"".join(got) == b"89"
        with pytest.raises(errors.RangeNotSatisfiable):
            client.files.get(f"{top}/f", start=10)

    def test_an_answer_that_is_left_in_the_middle_holds_nothing_up(self, client: Client, top: str) -> None:
        client.files.put(f"{top}/f", os.urandom(3_000_000))
        with client.files.get(f"{top}/f") as got:
            got.read(10)
        assert client.files.stat(f"{top}/f").size == 3_000_000

    def test_conditions_guard_a_write(self, client: Client, top: str) -> None:
        stored = client.files.put(f"{top}/f", b"1", create_only=True)
        with pytest.raises(errors.PreconditionFailed):
            client.files.put(f"{top}/f", b"2", create_only=True)
        client.files.put(f"{top}/f", b"2", if_match=stored.content_hash)
        with pytest.raises(errors.PreconditionFailed):
            client.files.put(f"{top}/f", b"3", if_match=stored.content_hash)
        path, condition = parse_path(f"{top}/f"), {"If-Match": f'"{stored.content_hash}"'}
        with pytest.raises(errors.PreconditionFailed):
            client.stream(delete_path, path, headers=condition)
        with pytest.raises(errors.PreconditionFailed):
            client.files.get(f"{top}/f", if_match=stored.content_hash)
        assert client.call(delete_path, path).version != stored.version

    def test_what_is_not_there_is_not_found_with_its_path_and_request(self, client: Client, top: str) -> None:
        def delete(path: str) -> None:
            client.call(delete_path, parse_path(path))

        for ask in (client.files.stat, client.files.read, delete):
            with pytest.raises(errors.NotFound) as raised:
                ask(f"{top}/nothing")
            assert raised.value.details["path"] == f"{top}/nothing"
            assert raised.value.details["request_id"]

    def test_a_listing_is_read_page_by_page(self, client: Client, top: str) -> None:
        names = [f"{number:03}" for number in range(25)]
        client.call(batch, BatchBody([PutOperation(path=f"{top}/{name}", content=name) for name in names]))
        page = client.files.page(top, limit=10)
        assert (len(page.items), page.total) == (10, 25)
        rest = client.files.page(top, limit=100, after=page.next_cursor)
        assert [item.name for item in page.items + rest.items] == names
        assert rest.next_cursor is None
        assert [item.name for item in client.files.list(top)] == names
        assert [item.name for item in client.files.list("/", depth=-1, glob=f"{top}/02*")] == names[20:]

    def test_a_batch_that_is_refused_names_the_operation_by_its_own_error(
        self, client: Client, top: str
    ) -> None:
        with pytest.raises(errors.NotFound) as raised:
            made, gone = MakeDirectoryOperation(path=f"{top}/d"), DeleteOperation(path=f"{top}/nothing")
            client.call(batch, BatchBody([made, gone]))
        assert raised.value.details["operation"] == 1
        with pytest.raises(errors.NotFound):
            client.files.stat(f"{top}/d")

    def test_directories_links_and_moves(self, client: Client, top: str) -> None:
        client.call(make_directory, MakeDirectoryBody(f"{top}/d"))
        with pytest.raises(errors.AlreadyExists):
            client.call(make_directory, MakeDirectoryBody(f"{top}/d"))
        client.files.put(f"{top}/d/f", b"x")
        client.call(make_link, parse_path(f"{top}/link"), LinkBody(f"{top}/d"))
        assert client.files.stat(f"{top}/link").path == f"{top}/d"
        assert client.files.stat(f"{top}/link", follow=False).target == f"{top}/d"
        client.stream(change_path, parse_path(f"{top}/d/f"), RenameBody(f"{top}/g")).json(MovedEntry)
        with pytest.raises(errors.Conflict):
            client.stream(change_path, parse_path(f"{top}/g"), RenameBody(f"{top}/d"))
        assert [item.name for item in client.files.list(top)] == ["d", "g", "link"]
        client.call(delete_path, parse_path(f"{top}/g"))
        assert [gone.path for gone in client.items(list_deleted, DeletedQuery(path=top))] == [f"{top}/g"]

    def test_a_directory_is_no_file(self, client: Client) -> None:
        with pytest.raises(errors.ServiceUnavailable, match="directory"):
            client.files.get("/")

    def test_an_archive_comes_as_it_is_made(self, client: Client, top: str) -> None:
        import zipfile

        client.files.put(f"{top}/f", b"zipped")
        with client.stream(download, DownloadBody([top])) as response:
            archive = zipfile.ZipFile(io.BytesIO(response.content()))
        assert [archive.read(name) for name in archive.namelist() if name.endswith("/f")] == [b"zipped"]


class TestBlobs:
    def test_an_upload_sends_what_is_missing_and_nothing_twice(self, client: Client, top: str) -> None:
        content = os.urandom(3_000_000)
        hash = content_hasher().update(content).hexdigest()
        told: list[tuple[int, int]] = []
        done = upload_file(
            client, f"{top}/f", io.BytesIO(content), progress=lambda *bytes: told.append(bytes)
        )
        assert (done.bytes_sent, done.file.content_hash, told[-1]) == (
            len(content),
            hash,
            (len(content),) * 2,
        )
        again = upload_file(client, f"{top}/g", io.BytesIO(content))
        assert (again.bytes_sent, again.file.created) == (0, True)
        assert client.files.read(f"{top}/g") == content

    def test_an_upload_goes_on_where_another_ended(self, client: Client, top: str) -> None:
        content = os.urandom(2_500_000)

        class Ends(io.BytesIO):
            """Fails at its last part, once it has been read to its end."""

            was_read = False

            def read(self, size: int | None = -1, /) -> bytes:
                if self.was_read and self.tell() >= 2_000_000:
                    raise OSError("the disk is gone")
                content = super().read(size)
                self.was_read = self.was_read or not content
                return content

        with pytest.raises(OSError, match="gone"):
            upload_file(client, f"{top}/f", Ends(content))
        done = upload_file(client, f"{top}/f", io.BytesIO(content))
        assert 0 < done.bytes_sent < 600_000
        assert client.files.read(f"{top}/f") == content

    def test_an_empty_file_has_no_chunks(self, client: Client, top: str) -> None:
        assert upload_file(client, f"{top}/f", io.BytesIO()).file.size == 0

    def test_a_file_that_changes_while_it_is_sent_is_refused(self, client: Client, top: str) -> None:
        class Changes(io.BytesIO):
            def seek(self, place: int, whence: int = 0, /) -> int:
                with self.getbuffer() as content:
                    content[:8] = os.urandom(8)
                return super().seek(place, whence)

        with pytest.raises(errors.InvalidInput, match="changed"):
            upload_file(client, f"{top}/f", Changes(os.urandom(100_000)))

    def test_a_chunk_under_another_hash_is_refused(self, client: Client) -> None:
        with pytest.raises(errors.InvalidInput):
            client.stream(store_chunk, "00" * 32, content=b"other")


class TestVersions:
    def test_a_name_of_any_kind_means_a_version(self, client: Client, top: str) -> None:
        stored = client.files.put(f"{top}/f", b"1")
        client.call(versions.create_snapshot, NewSnapshot("named"))
        client.files.put(f"{top}/f", b"2")
        assert resolve(client, "named") == stored.version
        assert resolve(client, stored.version) == stored.version
        assert client.files.read(f"{top}/f", ReadAt(snapshot="named")) == b"1"
        with pytest.raises(errors.NotFound):
            resolve(client, "nothing of this name")

    def test_snapshots_come_and_go(self, client: Client, top: str) -> None:
        client.files.put(f"{top}/f", b"1")
        made = client.call(versions.create_snapshot, NewSnapshot("one", {"a": 1}))
        assert (made.value.metadata, made.created) == ({"a": 1}, True)
        same = client.call(versions.create_snapshot, NewSnapshot("two"))
        assert (same.value, same.created) == (made.value, False)
        client.call(versions.rename_snapshot, "one", SnapshotName("uno"))
        client.files.put(f"{top}/f", b"2")
        restored = client.call(versions.restore_snapshot, SnapshotName("uno"))
        assert client.files.read(f"{top}/f") == b"1"
        names = [one.name for one in client.call(versions.list_snapshots).snapshots]
        assert restored.auto_snapshot in names
        client.call(versions.delete_snapshot, "uno")
        with pytest.raises(errors.NotFound):
            client.call(versions.show_snapshot, "uno")

    def test_a_path_goes_back(self, client: Client, top: str) -> None:
        stored = client.files.put(f"{top}/f", b"1")
        client.files.put(f"{top}/f", b"2")
        body = PathRestoreBody(version=stored.version)
        assert client.call(versions.restore_path, (top[1:], "f"), body).path == f"{top}/f"
        assert client.files.read(f"{top}/f") == b"1"

    def test_a_fork_is_written_merged_promoted_and_left(self, client: Client, top: str) -> None:
        client.files.put(f"{top}/f", b"1")
        assert client.call(versions.create_fork, NewFork("a/b")).base == resolve(client, "HEAD")
        client.files.put(f"{top}/g", b"2", fork="a/b")
        assert client.call(versions.merge_versions, MergeBody("a/b", dry_run=True)).changes.added == 1
        assert client.call(versions.merge_versions, MergeBody("a/b")).fast_forward
        assert client.files.read(f"{top}/g") == b"2"
        client.files.put(f"{top}/g", b"3", fork="a/b")
        client.files.put(f"{top}/g", b"4")
        with pytest.raises(errors.Conflict) as raised:
            client.call(versions.merge_versions, MergeBody("a/b"))
        assert [one["path"] for one in raised.value.details["conflicts"]] == [f"{top}/g"]
        with pytest.raises(errors.Conflict):
            client.call(versions.promote_fork, "a/b")
        client.call(versions.promote_fork, "a/b", body=PromotionBody(force=True))
        assert client.files.read(f"{top}/g") == b"3"
        root = client.call(versions.show_fork, "a/b").root_hash
        assert client.call(versions.abandon_fork, "a/b").root_hash == root
        assert client.call(versions.list_forks).forks == []
        assert client.call(versions.list_forks, ForkQuery(abandoned=True)).forks[0].root_hash == root

    def test_the_history_of_a_path(self, client: Client, top: str) -> None:
        for content in (b"one\n", b"one\ntwo\n"):
            stored = client.files.put(f"{top}/f", content)
        where = (top[1:], "f")
        rows = list(client.items(history.show_history, where, HistoryQuery(commits=True)))
        assert [row.change_type for row in rows] == ["modified", "added"]
        page = client.call(history.list_commits, LogQuery(path=top, limit=1))
        assert page.items[0].version == stored.version
        commits = client.items(history.list_commits, LogQuery(path=top))
        assert [commit.version for commit in commits] == [row.version for row in rows]
        details = client.call(history.show_commit, stored.version)
        assert [change.path for change in details.changes] == [f"{top}/f"]
        lines = client.call(history.blame_path, where).lines
        assert lines is not UNSET
        assert [line.version for line in lines] == [rows[1].version, rows[0].version]
        entries = client.call(history.blame_path, (top[1:],)).items
        assert [entry.name for entry in entries] == ["f"]

    def test_a_comparison_is_read_while_it_comes(self, client: Client, top: str) -> None:
        before = resolve(client, "HEAD")
        names = [f"{number:05}-é" for number in range(3000)]
        client.call(batch, BatchBody([PutOperation(path=f"{top}/{name}", content=name) for name in names]))
        asked = CompareQuery(source=before)
        changes = client.stream(history.compare_versions, asked).items("changes", PathChange)
        found: list[PathChange] = []
        with pytest.raises(StopIteration) as end:
            while True:
                found.append(next(changes))
        compared = end.value.value
        assert (compared["totals"]["added"], compared["from"]) == (3000, before)
        assert [change.path for change in found if change.entry_type == 2] == [f"{top}/{n}" for n in names]

    def test_lifecycle_settings(self, client: Client) -> None:
        off = LifecycleChange(snapshot_writes_enabled=False)
        assert not client.call(versions.change_lifecycle, off).snapshot_writes_enabled
        client.call(versions.change_lifecycle, LifecycleChange(snapshot_writes_enabled=True))
        assert client.call(versions.show_lifecycle).snapshot_writes_enabled


def resolve(client: Client, name: str) -> str:
    return client.call(versions.resolve_version, ResolveQuery(name)).version


def test_a_version_leaves_and_comes_back(client: Client, top: str) -> None:
    base = client.files.put(f"{top}/f", b"1").version
    response = client.stream(export_version)
    export = response.content()
    report = msgspec.json.decode(response.header("X-Svc-Report"), type=ExportReport)
    assert (len(export), response.header("X-Svc-Version")) == (report.size, base)
    assert (report.version, report.size) == (base, len(export))
    client.files.put(f"{top}/f", b"2")
    patch = client.stream(diff_versions, DiffQuery(source=base)).content()

    def take_in(content: Body, **how: Any) -> ImportReport:
        return client.stream(import_version, ImportQuery(**how), content=content).json(ImportReport)

    with pytest.raises(errors.Conflict) as raised:
        take_in(patch)
    assert raised.value.details["base"] == base
    assert take_in(export, promote=True).version_hash == base
    assert client.files.read(f"{top}/f") == b"1"
    taken = take_in(lambda: iter([patch]))
    assert not taken.head_promoted
    promoted = client.call(promote_version, PromoteBody(taken.version_hash))
    assert (promoted.head, promoted.previous) == (taken.version_hash, base)
    assert client.files.read(f"{top}/f") == b"2"
    with pytest.raises(errors.InvalidInput):
        take_in(export[:-1])


def test_a_server_says_how_it_is_and_which_plugins_it_has(client: Client) -> None:
    health = client.health()
    assert (health.service, health.status) == ("svc", "healthy")
    assert client.call(list_findings).findings == []
    enabled = {plugin.id for plugin in client.call(list_plugins).plugins if plugin.enabled}
    assert {"files", "history", "versions"} <= enabled
    with pytest.raises(errors.NotFound):
        client.call(enable_plugin, "no.such")
    assert client.call(disable_plugin, "history").warning is UNSET
    with pytest.raises(errors.NotFound):
        client.call(history.list_commits)
    assert client.call(enable_plugin, "history").enabled
    assert client.call(history.list_commits).commits
