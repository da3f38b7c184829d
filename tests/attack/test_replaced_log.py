"""An older copy of the file is put back, and the views stay: they tell of what is, and of nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from attack.scale import scaled
from svc_blackbox.client import Client
from svc_blackbox.server import Server


def put_back(server: Server, copy: Path) -> None:
    """Replaces the log, and takes away what would give the replacement away; the views stay."""
    shutil.copy(copy, server.database)
    state = server.database.with_name(f"{server.database.name}.d")
    for name in ("index", "head", "tail"):
        place = state / name
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


def told(client: Client) -> list[str]:
    return [item["version"] for item in client.get("/versions/log", limit="100").json()["commits"]]


def deleted(client: Client) -> list[str]:
    return [item["path"] for item in client.get("/files/deleted").json()["items"]]


@pytest.mark.parametrize("later", [1, scaled(6)])
def test_views_list_exactly_what_is(new_server: Callable[..., Server], tmp_path: Path, later: int) -> None:
    server = new_server()
    client = server.client()
    kept = [client.store("/a", b"a")["version"], client.store("/b", b"b")["version"]]
    assert told(client)[:2] == kept[::-1]
    base = len(told(client))
    assert server.stop() == 0
    shutil.copy(server.database, tmp_path / "copy")
    client = server.start().client()
    for number in range(3):
        client.store(f"/lost{number}", b"x")
    client.delete("/files/a")
    assert deleted(client) == ["/a"]
    assert len(told(client)) == base + 4
    assert server.stop() == 0
    put_back(server, tmp_path / "copy")
    client = server.start().client()
    new = [client.store(f"/new{number}", b"x")["version"] for number in range(later)]
    assert told(client) == [*new[::-1], *kept[::-1]][: later + base]
    assert deleted(client) == []
    assert client.get("/versions/history/lost0").json()["history"] == []
    client.delete("/files/b")
    assert deleted(client) == ["/b"]
