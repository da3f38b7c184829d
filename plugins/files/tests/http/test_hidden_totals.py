"""What is made from everything below a directory is for those only who may see everything below."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from svc.plugin import EntryKind, Identity
from svc_client import Client
from svc_files.client.remote import RemoteStore

from .conftest import Http, scoped_root, share_key, user  # noqa: TID252

SUMMED_UP = ("hash", "size", "created_at", "updated_at", "file_count", "total_size")
HEADERS = (
    "x-svc-size",
    "x-svc-content-hash",
    "x-svc-created-at",
    "x-svc-updated-at",
    "last-modified",
)

PARTLY = [
    user({"/": "rl", "/d/secret": ""}),
    user({"/": "l", "/d/secret": ""}),
    scoped_root(("/d/secret/**", "--------"), ("/**", "-r--l---")),
    share_key(("/d/open/**", "-r--l---")),
]
WHOLLY = [
    user({"/": "rl"}),
    user({"/": "l"}),
    scoped_root(("/other/**", "--------"), ("/d/**", "-r--l---")),
    share_key(("/d/**", "-r--l---")),
]


@pytest.fixture
def tree(http: Http) -> Http:
    http.fill("/d/open/a", "/d/secret/b", "/d/secret/c", "/x")
    return http


def directory_item(http: Http, path: str) -> dict[str, Any]:
    parent, _, name = path.rpartition("/")
    items = http.get(f"/files{parent}").json["items"]
    found: dict[str, Any] = next(item for item in items if item["name"] == name)
    return found


@pytest.mark.parametrize("identity", PARTLY)
def test_an_item_of_a_directory_with_something_hidden_tells_nothing_of_it(
    tree: Http, identity: Identity
) -> None:
    tree.become(identity)
    item = directory_item(tree, "/d")
    assert {name: item[name] for name in SUMMED_UP} == dict.fromkeys(SUMMED_UP)
    assert directory_item(tree, "/d/open")["file_count"] == 1


@pytest.mark.parametrize("identity", WHOLLY)
def test_who_sees_everything_below_has_totals_and_hash(tree: Http, identity: Identity) -> None:
    of_root = directory_item(tree, "/d")
    tree.become(identity)
    item = directory_item(tree, "/d")
    assert {name: item[name] for name in SUMMED_UP} == {name: of_root[name] for name in SUMMED_UP}
    assert (item["file_count"], tree.get("/files/d", params={"depth": "-1", "limit": "1"}).json["total"]) == (
        3,
        3,
    )
    answer = tree("HEAD", "/files/d")
    assert all(name in answer.headers for name in HEADERS)


@pytest.mark.parametrize("identity", PARTLY)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_neither_do_the_headers(tree: Http, identity: Identity, method: str) -> None:
    of_root = tree(method, "/files/d")
    assert all(name in of_root.headers for name in HEADERS)
    tree.become(identity)
    answer = tree(method, "/files/d")
    assert not [name for name in HEADERS if name in answer.headers]
    assert answer.headers["etag"] != of_root.headers["etag"]
    since = {"If-Modified-Since": "Fri, 31 Dec 2100 23:59:59 GMT"}
    assert tree(method, "/files/d", headers=since).status_code == 200


@pytest.mark.parametrize("identity", PARTLY)
def test_a_total_counts_what_is_shown(tree: Http, identity: Identity) -> None:
    tree.become(identity)
    answer = tree.get("/files/d", params={"depth": "-1"}).json
    assert [item["path"] for item in answer["items"]] == ["/d/open/a"]
    assert answer["total"] == 1
    first = tree.get("/files/d", params={"limit": "1"}).json
    assert first["total"] is None or not first["has_more"]


def test_what_was_deleted_since_is_hidden_in_the_past_too(tree: Http) -> None:
    version = tree.database.head().root.hex()
    tree.delete("/files/d/open/a")
    tree.become(user({"/": "rl"}))
    past = tree("HEAD", "/files/d", params={"version": version})
    assert "x-svc-content-hash" not in past.headers
    assert "x-svc-content-hash" in tree("HEAD", "/files/d").headers
    tree.become(user({"/": "rld"}))
    assert "x-svc-content-hash" in tree("HEAD", "/files/d", params={"version": version}).headers


@pytest.mark.parametrize(
    ("hidden", "write"),
    [
        ("/d/secret", lambda http: http.post("/files/mkdir", {"path": "/d", "exist_ok": True})),
        ("/e/secret", lambda http: http("PATCH", "/files/d", json={"to": "/e"})),
    ],
)
def test_answers_of_writes_tell_no_more(tree: Http, hidden: str, write: Callable[[Http], Any]) -> None:
    tree.become(user({"/": "crudl", hidden: "cud"}))
    answer = write(tree)
    assert answer.status_code == 200, answer.text
    assert {name: answer.json[name] for name in SUMMED_UP} == dict.fromkeys(SUMMED_UP)
    assert len(answer.json["version"]) == 64


def test_a_whole_directory_is_moved_without_asking_for_each_path(
    tree: Http, set_limits: Callable[..., None]
) -> None:
    set_limits(scan_entries=2)
    tree.become(user({"/": "crudl"}))
    assert tree("PATCH", "/files/d", json={"to": "/e"}).status_code == 200
    assert tree.delete("/files/e", params={"recursive": "true"}).status_code == 200


@pytest.mark.parametrize(("entries", "status"), [(4, 200), (3, 413)])
def test_asking_for_each_path_is_bounded(
    tree: Http, set_limits: Callable[..., None], entries: int, status: int
) -> None:
    set_limits(scan_entries=entries)
    tree.delete("/files/d/secret/c")
    version = tree.database.head().root
    tree.become(user({"/": "crudl", "/d/unused": ""}))
    answer = tree.delete("/files/d", params={"recursive": "true"})
    assert answer.status_code == status
    if status == 413:
        assert answer.json["limit"] == entries
        assert tree.database.head().root == version


@pytest.fixture
def remote(tree: Http) -> Iterator[RemoteStore]:
    class Quiet(WSGIRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with make_server("127.0.0.1", 0, tree.app, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        store = RemoteStore(Client(f"http://127.0.0.1:{server.server_port}"))
        try:
            yield store
        finally:
            store.close()
            server.shutdown()
            thread.join()


def test_the_client_takes_a_directory_without_totals(tree: Http, remote: RemoteStore) -> None:
    tree.become(PARTLY[0])
    found = remote.stat(("d",))
    assert (found.kind, found.is_complete, found.file_count) == (EntryKind.DIRECTORY, False, None)
    assert found.as_json()["hash"] is None
    assert found.as_json()["size"] is None
    (child,) = remote.children(("d",))
    assert (child.name, child.is_complete, child.file_count) == ("open", True, 1)


def test_the_client_follows_the_pages_whatever_their_size(
    tree: Http, remote: RemoteStore, set_limits: Callable[..., None]
) -> None:
    names = [f"/many/f{number:02}" for number in range(30)]
    tree.fill(*names)
    set_limits(listing_default=4, listing_maximum=5, scan_entries=3)
    assert [f"/many/{child.name}" for child in remote.children(("many",))] == names


def test_ls_shows_a_directory_without_totals(
    tree: Http, remote: RemoteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from svc_files.commands.listing import ls

    tree.become(PARTLY[0])
    for variable in ("SVC_DATABASE", "SVC_TOKEN", "SVC_TLS_CA"):
        monkeypatch.delenv(variable, raising=False)
    shown = CliRunner().invoke(ls, ["-l", "-D", remote.label, "/"], catch_exceptions=False)
    hidden, whole = shown.output.splitlines()
    assert hidden.split() == ["d", "-", "-", "d/"]
    assert whole.split()[0] == "-"
    assert whole.rindex("x") == hidden.rindex("d/")
