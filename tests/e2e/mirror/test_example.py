"""The client of the documentation follows a directory as the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from e2e.mirror.laptops import tree_of
from svc_blackbox.server import Server, run_svc
from svc_client import Client

PAGE = Path(__file__).parents[3] / "docs" / "http" / "mirror.md"


@pytest.fixture(scope="module")
def follow() -> Any:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, str(PAGE), "exec"), names)
    return names["follow"]


def test_the_example_follows(follow: Any, new_server: Any, tmp_path: Path) -> None:
    server: Server = new_server()
    client = Client(server.url)
    place, memory = tmp_path / "copy", tmp_path / "memory.json"
    for name in ("a", "b", "deep/c"):
        client.files.put(f"/d/{name}", f"first {name}".encode())
    follow(client, "/d", place, memory)
    assert tree_of(place) == {
        "d": "directory",
        "d/a": "file:first a",
        "d/b": "file:first b",
        "d/deep": "directory",
        "d/deep/c": "file:first deep/c",
    }
    client.files.put("/d/a", b"second")
    client.request("DELETE", "/files/d/b")
    follow(client, "/d", place, memory)
    assert (place / "d" / "a").read_text() == "second"
    assert not (place / "d" / "b").exists()
    client.request("DELETE", "/files/d/a")
    client.files.put("/d/new", b"third")
    run_svc("gc", "-D", server.url)
    client.files.put("/d/newer", b"fourth")
    follow(client, "/d", place, memory)
    assert sorted(path.name for path in (place / "d").iterdir()) == ["deep", "new", "newer"]
