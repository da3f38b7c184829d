"""The version routes as a client calls them, in both families of paths."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from svc_blackbox.client import Client, Response, files

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Family:
    """One family of paths; the same operations stand under both.

    Attributes:
        name: first segment of its paths.
        snapshot_routes: where snapshots are made, and where they are listed.
        snapshot_route: prefix of one snapshot's path.
        fork_routes: where forks are made, and where they are listed.
        fork_route: prefix of one fork's path.
        wraps: whether lists are members of an object.
    """

    name: str
    snapshot_routes: tuple[str, str]
    snapshot_route: str
    fork_routes: tuple[str, str]
    fork_route: str
    wraps: bool

    def snapshot(self, name: str) -> str:
        """The request target of a snapshot."""
        return f"{self.snapshot_route}/{quote(name, safe='')}"

    def fork(self, name: str, action: str = "") -> str:
        """The request target of a fork, or of something that is done with it."""
        return f"{self.fork_route}/{quote(name, safe='')}{action}"

    def history(self, path: str) -> str:
        """The request target of a path's history."""
        return f"/{self.name}/file-history" + quote("/" + path.lstrip("/"), safe="/")

    def restore_path(self, path: str) -> str:
        """The request target that restores one path."""
        return f"/{self.name}/file-restore" + quote("/" + path.lstrip("/"), safe="/")

    @property
    def restore(self) -> str:
        """The request target that restores a snapshot."""
        return f"/{self.name}/restore"


SINGULAR = Family(
    "version",
    ("/version/snapshot", "/version/snapshots"),
    "/version/snapshot",
    ("/version/fork", "/version/forks"),
    "/version/fork",
    wraps=False,
)
PLURAL = Family(
    "versions",
    ("/versions/snapshots", "/versions/snapshots"),
    "/versions/snapshots",
    ("/versions/forks", "/versions/forks"),
    "/versions/forks",
    wraps=True,
)
FAMILIES = (SINGULAR, PLURAL)


def fresh(stem: str = "name") -> str:
    """A name that no other test of this run uses."""
    return f"{stem}-{next(_numbers)}"


def head_version(client: Client, **query: object) -> str:
    """The root hash of HEAD, or of what the query names."""
    response = client.head("/files/", **query)
    assert response.status == 200, (response.status, query)
    return response["X-Svc-Version"]


def make_snapshot(client: Client, name: str, family: Family = PLURAL, **members: Any) -> Any:
    """Makes a snapshot that does not exist yet; returns its JSON."""
    response = client.post(family.snapshot_routes[0], {"name": name, **members})
    assert response.status == 201, (response.status, response.body[:500])
    return response.json()


def list_snapshots(client: Client, family: Family = PLURAL) -> list[Any]:
    """All snapshots, newest first."""
    response = client.get(family.snapshot_routes[1])
    assert response.status == 200, (response.status, response.body[:500])
    value = response.json()
    found: list[Any] = value["snapshots"] if family.wraps else value
    assert isinstance(found, list)
    return found


def snapshot_names(client: Client) -> list[str]:
    """The names of all snapshots, newest first."""
    return [snapshot["name"] for snapshot in list_snapshots(client)]


def make_fork(client: Client, name: str, family: Family = PLURAL, **members: Any) -> Any:
    """Makes a fork that does not exist yet; returns its JSON."""
    response = client.post(family.fork_routes[0], {"name": name, **members})
    assert response.status == 201, (response.status, response.body[:500])
    return response.json()


def list_forks(client: Client, family: Family = PLURAL) -> list[Any]:
    """All active forks, newest first."""
    response = client.get(family.fork_routes[1])
    assert response.status == 200, (response.status, response.body[:500])
    value = response.json()
    found: list[Any] = value["forks"] if family.wraps else value
    assert isinstance(found, list)
    return found


def fork_names(client: Client) -> list[str]:
    """The names of all active forks, newest first."""
    return [fork["name"] for fork in list_forks(client)]


def fork_of(client: Client, name: str) -> Any:
    """An active fork by its name."""
    (found,) = [fork for fork in list_forks(client) if fork["name"] == name]
    return found


def merge(
    client: Client, source: str, into: str = "HEAD", strategy: str = "fail", **members: Any
) -> Response:
    """Asks for a merge."""
    return client.post("/versions/merge", {"from": source, "into": into, "strategy": strategy, **members})


def tree(client: Client, path: str = "/", **query: object) -> dict[str, str]:
    """Content hash of every file below a directory, by path; page by page."""
    found: dict[str, str] = {}
    while True:
        response = client.get(files(path), depth=-1, **query)
        assert response.status == 200, (path, query, response.status, response.body[:500])
        value = response.json()
        found |= {item["path"]: item["hash"] for item in value["items"]}
        if not value["has_more"]:
            return found
        query = {**query, "after": value["next_cursor"]}


def contents(client: Client, path: str = "/", **query: object) -> dict[str, bytes]:
    """Content of every file below a directory, by path."""
    return {name: client.read(name, **query) for name in tree(client, path, **query)}


def log_entries(client: Client, **query: object) -> list[Any]:
    """The whole log, newest first, page by page."""
    found: list[Any] = []
    cursor: dict[str, object] = {}
    while True:
        response = client.get("/versions/log", **{"limit": 1000, **query, **cursor})
        assert response.status == 200, (query, response.status, response.body[:500])
        page = response.json()
        found.extend(page["commits"])
        if not page["has_more"]:
            return found
        cursor = {"after": page["next_cursor"]}


def compare(client: Client, source: str, to: str, **query: object) -> Any:
    """Compares two versions and insists on success."""
    response = client.get("/versions/compare", **{"from": source, "to": to, **query})
    assert response.status == 200, (source, to, response.status, response.body[:500])
    return response.json()


def changes_of(comparison: Any) -> set[tuple[str, str]]:
    """(change, path) of the files and links that a comparison lists."""
    return {
        (change["change_type"], change["path"])
        for change in comparison["changes"]
        if change["entry_type"] != 3
    }
