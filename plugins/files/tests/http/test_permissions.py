"""Every route asks before it acts, and what is denied looks like what is missing."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from falcon.testing import Result
from msgspec.structs import replace

from svc.plugin import ROOT_IDENTITY, Identity, ScopedRule
from svc_testing import PathRights

from .conftest import Http, scoped_root, user  # noqa: TID252

READER = user({"/open": "rl", "/open/closed": ""})
WRITER = user({"/mine": "crudl"})


@pytest.fixture
def tree(http: Http) -> Http:
    http.fill("/open/a", "/open/b", "/open/closed/c", "/mine/x", "/other/y")
    http("PUT", "/links/open/to-closed", json={"target": "/open/closed/c"})
    http("PUT", "/links/open/to-other", json={"target": "/other"})
    http("PUT", "/links/mine/to-other", json={"target": "/other"})
    return http


def test_a_listing_leaves_out_what_the_caller_may_not_see(tree: Http) -> None:
    tree.become(READER)
    page = tree.get("/files/open").json
    assert [item["name"] for item in page["items"]] == ["a", "b", "to-closed", "to-other"]
    assert page["total"] == 4
    assert {item["effective_permissions"] for item in page["items"]} == {"-r--l---"}
    assert tree.items("/files/open", params={"depth": "-1"}) == ["/open/a", "/open/b"]
    assert tree.items("/files/open", params={"glob": "**/c", "depth": "-1"}) == []
    assert (
        tree.get("/files/open", params={"offset": "2", "limit": "1"}).json["items"][0]["name"] == "to-closed"
    )


def test_root_sees_everything_without_flags(tree: Http) -> None:
    item = tree.get("/files/open").json["items"][0]
    assert "effective_permissions" not in item


def test_a_link_opens_nothing(tree: Http) -> None:
    tree.become(READER)
    assert tree.get("/files/open/to-closed").status_code == 403
    assert tree.get("/files/open/to-other").status_code == 403
    assert tree.get("/files/open/to-other/y").status_code == 403
    assert tree.get("/links/open/to-other").json["resolved"] is None
    tree.become(WRITER)
    assert tree.put("/files/mine/to-other/z", b"x").status_code == 403
    assert tree.delete("/files/mine/to-other/y").status_code == 403
    assert tree.post("/files/mkdir", {"path": "/mine/to-other/d"}).status_code == 403
    assert tree("PATCH", "/files/mine/x", json={"to": "/mine/to-other/x"}).status_code == 403
    assert (
        tree.post("/files/copy", {"paths": ["/mine/x"], "destination": "/mine/to-other"}).status_code == 403
    )
    assert (
        tree.post("/files/copy", {"paths": ["/mine/to-other/y"], "destination": "/mine"}).status_code == 403
    )


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/files/other/y", None),
        ("GET", "/files/other", None),
        ("HEAD", "/files/other/y", None),
        ("PUT", "/files/open/a", b"x"),
        ("PUT", "/files/open/new", b"x"),
        ("DELETE", "/files/open/a", None),
        ("PATCH", "/files/open/a", {"to": "/open/z"}),
        ("PUT", "/links/open/l", {"target": "/open/a"}),
        ("DELETE", "/links/open/to-other", None),
        ("POST", "/files/mkdir", {"path": "/open/d"}),
        ("POST", "/files/copy", {"paths": ["/open/a"], "destination": "/open/d"}),
        ("POST", "/files/copy", {"paths": ["/other/y"], "destination": "/open/d"}),
        ("POST", "/files/download", {"paths": ["/other"]}),
        ("POST", "/files/restore", {"path": "/open/a"}),
        ("POST", "/files/batch", {"operations": [{"op": "put", "path": "/open/n", "content": ""}]}),
        ("POST", "/files/batch", {"operations": [{"op": "delete", "path": "/open/a"}]}),
        ("POST", "/files/batch", {"operations": [{"op": "move", "from": "/open/a", "to": "/open/n"}]}),
        ("POST", "/files/batch", {"operations": [{"op": "copy", "from": "/other/y", "to": "/open/n"}]}),
        ("POST", "/files/batch", {"operations": [{"op": "copy", "from": "/other/none", "to": "/open/n"}]}),
        ("POST", "/files/batch", {"operations": [{"op": "link", "path": "/open/n", "target": "/x"}]}),
        ("POST", "/files/batch", {"operations": [{"op": "mkdir", "path": "/open/n"}]}),
        ("POST", "/blobs/commit", {"files": [{"path": "/open/n", "chunk_hashes": []}]}),
        ("GET", "/files/deleted", None),
        ("GET", "/files/open?deleted=true", None),
    ],
)
def test_what_was_not_granted_is_refused(tree: Http, method: str, path: str, body: Any) -> None:
    tree.become(READER)
    version = tree.database.head().root
    path, _, query = path.partition("?")
    options: dict[str, Any] = {"query_string": query} if query else {}
    if isinstance(body, bytes):
        options["body"] = body
    elif body is not None:
        options["json"] = body
    answer = tree(method, path, **options)
    assert answer.status_code == 403
    tree.become(scoped_root(("/open/closed/**", ""), ("/open/**", "-r--l---")))
    assert tree(method, path, **options).status_code == 404
    assert tree.database.head().root == version


def test_to_a_scoped_key_denied_and_missing_look_the_same(tree: Http) -> None:
    tree.become(scoped_root(("/open/closed/**", "--------"), ("/open/**", "-r--l---")))
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        denied = tree(method, "/files/open/closed/c")
        missing = tree(method, "/files/open/closed/nothing-here")
        assert denied.status_code == missing.status_code == 404
        assert denied.text.replace("closed/c", "") == missing.text.replace("closed/nothing-here", "")
    assert tree.items("/files") == ["/open"]
    assert [item["path"] for item in tree.get("/files/open").json["items"]] == [
        "/open/a", "/open/b", "/open/to-closed", "/open/to-other",
    ]  # fmt: skip


def test_fetch_and_download_leave_out_what_is_denied(tree: Http) -> None:
    tree.become(READER)
    items = tree.post("/files/fetch", {"paths": ["/open/a", "/open/closed/c", "/open/to-other/y"]}).json[
        "items"
    ]
    assert [item.get("code") for item in items] == [None, "FORBIDDEN", "FORBIDDEN"]
    answer = tree.post("/files/download", {"paths": ["/open"]})
    assert zipfile.ZipFile(io.BytesIO(answer.content)).namelist() == ["open/a", "open/b"]


def test_what_may_not_be_read_everywhere_is_not_moved_copied_or_deleted_as_a_whole(http: Http) -> None:
    http.fill("/d/a", "/d/keep/b", "/e/f")
    http.become(user({"/": "crudl", "/d/keep": ""}))
    assert http.delete("/files/d", params={"recursive": "true"}).status_code == 403
    assert http("PATCH", "/files/d", json={"to": "/z"}).status_code == 403
    assert http.post("/files/copy", {"paths": ["/d"], "destination": "/z"}).status_code == 403
    operations = [{"op": "delete", "path": "/d", "recursive": True}]
    assert http.post("/files/batch", {"operations": operations}).status_code == 403
    assert http.post("/files/copy", {"paths": ["/e"], "destination": "/z"}).status_code == 200
    assert http.post("/files/copy", {"paths": ["/e"], "destination": "/z"}).status_code == 409
    assert http.get("/files/z/e/f").content == b"/e/f"
    assert http("PATCH", "/files/e", json={"to": "/y"}).status_code == 200
    assert http.delete("/files/y", params={"recursive": "true"}).status_code == 200
    assert http.get("/files/d/a").status_code == 200


CREATOR = user({"/": "crl"})
UPDATER = user({"/": "url"})


@pytest.mark.parametrize(("who", "new", "old"), [(CREATOR, 201, 403), (UPDATER, 403, 200)])
def test_creating_and_updating_are_different_rights(http: Http, who: Identity, new: int, old: int) -> None:
    http.fill("/there")
    http("PUT", "/links/link", json={"target": "/there"})
    http.become(who)
    assert http.put("/files/there", b"x").status_code == old
    assert http.put("/files/new", b"x").status_code == new
    merge = {"Content-Type": "application/merge-patch+json"}
    assert http("PATCH", "/files/doc", body="{}", headers=merge).status_code == new
    assert http("PUT", "/links/link", json={"target": "/x"}).status_code == old
    assert http("PUT", "/links/new-link", json={"target": "/x"}).status_code == new
    assert http.delete("/files/there").status_code == 403


def test_deleted_files_need_the_right_to_delete(http: Http) -> None:
    http.fill("/a/x", "/b/y")
    version = http.get("/files").headers["x-svc-version"]
    http.delete("/files/a/x")
    http.delete("/files/b/y")
    http.become(user({"/": "rld", "/b": "rl"}))
    assert [item["path"] for item in http.get("/files/deleted").json["items"]] == ["/a/x"]
    assert http.get("/files/a/x", params={"version": version}).status_code == 200
    # As at HEAD, where it is gone: that it was there is a matter of the same permission.
    assert http.get("/files/b/y", params={"version": version}).status_code == 404
    assert http.items("/files", params={"version": version, "depth": "-1"}) == ["/a/x"]
    assert http.post("/files/restore", {"path": "/b/y"}).status_code == 403


def test_the_etag_of_a_listing_is_the_callers_own(tree: Http) -> None:
    root = tree.get("/files/open").headers["etag"]
    tree.become(READER)
    mine = tree.get("/files/open").headers["etag"]
    assert mine != root
    assert tree.get("/files/open", headers={"If-None-Match": root}).status_code == 200
    assert tree.get("/files/open", headers={"If-None-Match": mine}).status_code == 304
    tree.become(user({"/open": "rl"}, "bob"))
    assert tree.get("/files/open", headers={"If-None-Match": mine}).status_code == 200


class MarkedRights(PathRights):
    """Rights that have a fingerprint."""

    @property
    def fingerprint(self) -> bytes:
        return repr(self.flags).encode()


def test_the_etag_of_a_listing_follows_the_callers_own_rights(tree: Http) -> None:
    def listing(identity: Identity, etag: str = "none") -> Result:
        tree.become(identity)
        return tree.get("/files/open", headers={"If-None-Match": etag})

    def grant_to_somebody() -> None:
        with tree.database.transaction() as transaction:
            transaction.put_system(("x", tree.database.head().root.hex()), str(tree.database.head()).encode())

    link = Identity(None, "link", key_id="key", rules=(ScopedRule("/open/a", "-r--l---"),))
    flags = {"/open": "rl", "/open/closed": ""}
    marked = Identity("9", "ann", rights=MarkedRights(flags))
    for caller in (link, scoped_root(("/open/**", "-r--l---")), marked):
        etag = listing(caller).headers["etag"]
        grant_to_somebody()
        assert listing(caller, etag).status_code == 304
    more = replace(marked, rights=MarkedRights({"/open": "rl"}))
    assert listing(more, etag).status_code == 200
    unmarked = replace(marked, rights=PathRights(flags))
    etag = listing(unmarked).headers["etag"]
    assert listing(unmarked, etag).status_code == 304
    grant_to_somebody()
    assert listing(unmarked, etag).status_code == 200


def test_the_etag_of_the_past_follows_what_was_deleted_since(tree: Http) -> None:
    query = {"version": tree.get("/files").headers["x-svc-version"]}
    callers = {"may not see it": READER, "may see it": user({"/open": "rld"})}
    etags = {}
    for name, caller in callers.items():
        tree.become(caller)
        etags[name] = tree.get("/files/open", params=query).headers["etag"]
    tree.become(ROOT_IDENTITY)
    tree.delete("/files/open/a")
    for name, caller in callers.items():
        tree.become(caller)
        answer = tree.get("/files/open", params=query, headers={"If-None-Match": etags[name]})
        if name == "may see it":
            assert answer.status_code == 304
        else:
            assert "/open/a" not in [item["path"] for item in answer.json["items"]]


def test_a_directory_that_changes_between_check_and_commit_is_a_conflict(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    from svc_files.responders import files

    http.fill("/d/a")
    http.become(user({"/": "crudl", "/d/keep": ""}))
    check = files.authorize_below

    def check_and_let_others_write(*arguments: Any) -> Any:
        guard = check(*arguments)
        with http.database.transaction() as transaction:
            transaction.put(("d", "keep", "b"), b"not the caller's")
        return guard

    monkeypatch.setattr(files, "authorize_below", check_and_let_others_write)
    answer = http.delete("/files/d", params={"recursive": "true"})
    assert (answer.status_code, answer.json["code"]) == (409, "CONFLICT")
    http.become(ROOT_IDENTITY)
    assert http.get("/files/d/keep/b").status_code == 200


@pytest.mark.parametrize("way", ["patch", "batch"])
def test_a_move_needs_the_permission_to_read(http: Http, way: str) -> None:
    """It would give away what it moves to a place where the mover may read."""

    def move(source: str, target: str) -> int:
        if way == "patch":
            return int(http("PATCH", f"/files{source}", json={"to": target}).status_code)
        operations = [{"op": "move", "from": source, "to": target}]
        return int(http.post("/files/batch", {"operations": operations}).status_code)

    http.fill("/secret/a", "/d/open", "/d/secret", "/mine/x")
    http.become(user({"/": "rl", "/mine": "crudl", "/d": "crudl", "/secret": "cudl", "/d/secret": "cudl"}))
    assert move("/secret/a", "/mine/a") == 403
    assert move("/d", "/mine/d") == 403
    assert move("/d/open", "/mine/open") == 200
    http.become(scoped_root(("/mine/**", "crudl---"), ("/secret/**", "cud-l---")))
    assert move("/secret/a", "/mine/a") == 404


def test_a_merge_patch_needs_the_permission_to_read_what_it_merges_into(http: Http) -> None:
    def merge(path: str) -> Any:
        headers = {"Content-Type": "application/merge-patch+json"}
        return http("PATCH", f"/files{path}", body="{}", headers=headers)

    http.put("/files/d/secret.json", '{"a": 1}')
    http.become(user({"/d": "cu"}))
    assert merge("/d/secret.json").status_code == 403
    assert merge("/d/new.json").status_code == 201


def test_a_pattern_opens_no_file_beside_the_way(http: Http) -> None:
    """Directories on the way are listed; files there are neither shown nor read."""
    http.fill("/a/x.json", "/a/x.txt", "/y.txt", "/b/z.txt")
    http("PUT", "/links/l", json={"target": "/a/x.json"})
    http.become(scoped_root(("/**/*.json", "-r--l---")))
    assert http.items("/files") == ["/a", "/b"]
    assert http.items("/files/a") == ["/a/x.json"]
    assert http.items("/files", params={"depth": "-1"}) == ["/a/x.json"]
    assert http.get("/files/a/x.json").status_code == 200
    for path in ("/files/a/x.txt", "/files/y.txt", "/files/l", "/links/l", "/files/b/z.txt"):
        assert http.get(path).status_code == 404, path
    for item in http.get("/files").json["items"]:
        assert (item["effective_permissions"], item["hash"], item["total_size"]) == ("-r--l---", None, None)


IN_VAIN = {
    "put": ("PUT", "/files{}", {"body": b"{}"}),
    "put into a fork": ("PUT", "/files{}", {"body": b"{}", "params": {"fork": "f"}}),
    "move": ("PATCH", "/files/d/a.json", {"json": {"to": "{}"}}),
    "move a directory": ("PATCH", "/files/d", {"json": {"to": "{directory}"}}),
    "link": ("PUT", "/links{}", {"json": {"target": "/d/a.json"}}),
    "mkdir": ("POST", "/files/mkdir", {"json": {"path": "{directory}"}}),
    "copy": ("POST", "/files/copy", {"json": {"paths": ["/d/a.json"], "destination": "{directory}"}}),
    "batch": (
        "POST",
        "/files/batch",
        {"json": {"operations": [{"op": "put", "path": "{}", "content": "{}"}]}},
    ),
    "batch copy": (
        "POST",
        "/files/batch",
        {"json": {"operations": [{"op": "copy", "from": "/d/a.json", "to": "{}"}]}},
    ),
    "commit of blobs": (
        "POST",
        "/blobs/commit",
        {"json": {"files": [{"path": "{}", "content_type": "application/json", "chunk_hashes": []}]}},
    ),
}


@pytest.mark.parametrize("way", IN_VAIN)
@pytest.mark.parametrize("configuration", ["/d/.svc-config/x.json", "/.config/x.json"])
def test_who_may_only_write_stores_nothing_that_configures(http: Http, way: str, configuration: str) -> None:
    http.fill("/d/a.json")
    with http.database.transaction() as transaction:
        transaction.copy_ref("HEAD", "forks/f")
    before = http.database.head().root

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: filled(one) for key, one in value.items()}
        if isinstance(value, list):
            return [filled(one) for one in value]
        directory = configuration.rpartition("/")[0]
        return (
            {"{}": configuration, "{directory}": directory}.get(value, value)
            if isinstance(value, str)
            else value
        )

    method, url, options = IN_VAIN[way]
    request = {key: filled(value) for key, value in options.items()}
    for identity, status in ((user({"/": "crudl"}), 403), (scoped_root(("/**", "crudl---")), 404)):
        http.become(identity)
        assert http(method, url.replace("{}", configuration), **request).status_code == status
        assert http.database.head().root == before
    http.become(user({"/": "crudly"}))
    allowed = http(method, url.replace("{}", configuration), **request).status_code
    assert (allowed == 403) is configuration.startswith("/.config"), allowed
    if configuration.startswith("/.config"):
        http.become(scoped_root(("/**", "crudlify")))
        assert http(method, url.replace("{}", configuration), **request).status_code == 404
    http.become(ROOT_IDENTITY)
    if configuration.startswith("/.config"):
        assert http(method, url.replace("{}", configuration), **request).status_code in (200, 201)


def test_a_directory_takes_its_configuration_along(http: Http) -> None:
    http.fill("/d/a.json", "/d/.svc-config/x.json", "/.config/x.json")
    http.become(user({"/": "crudl"}))
    assert http("PATCH", "/files/d", json={"to": "/e"}).status_code == 200
    assert http.get("/files/e/.svc-config/x.json").status_code == 200
    assert http.delete("/files/e", params={"recursive": "true"}).status_code == 200
    assert http.delete("/files/.config/x.json").status_code == 403
    assert http.delete("/files/.config", params={"recursive": "true"}).status_code == 403


class SlowBody(io.BytesIO):
    """A body before whose last bytes the rights of its sender change."""

    def __init__(self, http: Http, to: Identity) -> None:
        super().__init__(b"0123456789")
        self._http = http
        self._to = to

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() == 5:
            self._http.become(self._to)
        return super().read(5)


@pytest.mark.parametrize(
    ("path", "by_now", "status"),
    [
        ("/mine/x", "crudl", 200),
        ("/mine/new", "crudl", 201),
        ("/mine/x", "rl", 403),
        ("/mine/new", "", 403),
        ("/mine/x", "c", 403),
        ("/mine/new", "c", 201),
        ("/mine/new", "u", 403),
        ("/mine/to-own", "cu", 403),
    ],
)
def test_rights_that_were_taken_away_while_a_body_came_are_gone(
    tree: Http, path: str, by_now: str, status: int
) -> None:
    tree("PUT", "/links/mine/to-own", json={"target": "/own/z"})
    tree.become(user({"/mine": "crudl", "/own": "crudl"}))
    before = tree.database.head().root
    body = SlowBody(tree, user({"/mine": by_now}))
    answer = tree.put(
        f"/files{path}", extras={"wsgi.input": body}, headers={"Content-Length": "10", "Content-Type": "a/b"}
    )
    assert answer.status_code == status, answer.text
    assert (tree.database.head().root == before) is (status > 201)


CHANGES_OF_THE_SERVERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "delete": ("DELETE", "/files/.config/x.json", {}),
    "delete the directory": ("DELETE", "/files/.config", {"params": {"recursive": "true"}}),
    "delete by a link": ("DELETE", "/files/ln/x.json", {}),
    "delete in a batch": (
        "POST",
        "/files/batch",
        {"json": {"operations": [{"op": "delete", "path": "/.config", "recursive": True}]}},
    ),
    "move away": ("PATCH", "/files/.config/x.json", {"json": {"to": "/d/x.json"}}),
    "move the directory away": ("PATCH", "/files/.config", {"json": {"to": "/d/config"}}),
    "move a directory over it": ("PATCH", "/files/e", {"json": {"to": "/.config", "overwrite": True}}),
    "copy a directory over it": (
        "POST",
        "/files/copy",
        {"json": {"paths": ["/e"], "destination": "/.config", "overwrite": True}},
    ),
    "put a link there": ("PUT", "/links/.config", {"json": {"target": "/e"}}),
}


@pytest.mark.parametrize("way", CHANGES_OF_THE_SERVERS)
def test_only_root_itself_takes_away_what_configures_the_server(http: Http, way: str) -> None:
    http.fill("/d/a.json", "/e/x.json", "/.config/x.json")
    with http.database.transaction() as transaction:
        transaction.link(("ln",), "/.config")
    before = http.database.head().root
    method, url, options = CHANGES_OF_THE_SERVERS[way]
    for identity, status in (
        (user({"/": "crudlify"}), 403),
        (scoped_root(("/**", "crudlify")), 404),
        (scoped_root(("/.config/**", "crudlify"), ("/**", "crudlify")), 404),
        (scoped_root(("/**", "crudl---")), 404),
    ):
        http.become(identity)
        answer = http(method, url, **options)
        assert answer.status_code == status, answer.text
        assert http.database.head().root == before
