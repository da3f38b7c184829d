"""A mirror of a user with one grant, and of a scoped key: what they may see, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.mirror.laptops import tree_of
from svc_blackbox.prepared import run_svc
from svc_testing import Server, start_server

AREA = "/area/ann"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("rights") / "x.svcdb"
    with start_server(place, "--auth", "self", plugins=None) as running:
        yield running


@pytest.fixture(scope="module")
def keys(server: Server) -> dict[str, str]:
    """Keys of root, of a user with one grant, and a scoped one of that user."""
    keys = {"root": re.findall(r"svc_k_\S+", server.output)[0]}
    root = {"SVC_DATABASE": server.url, "SVC_API_KEY": keys["root"]}

    def shell(*words: str) -> str:
        return run_svc(*words, env=root).stdout.decode()

    operations = [
        {"op": "put", "path": path, "content": path}
        for path in (f"{AREA}/a", f"{AREA}/deep/b", "/area/bob/c", "/other/d", "/e")
    ]
    shell("api", "POST", "/files/batch", f"operations:={json.dumps(operations)}")
    shell("user", "add", "ann")
    shell("grant", "add", AREA, "--user", "ann", "--allow", "crudl")
    for name, rules in (("user", ()), ("scoped", ("--rule", f"{AREA}/deep/**=-r--l---"))):
        made = shell("key", "create", "--user", "ann", "--label", name, *rules, "--json")
        keys[name] = re.findall(r"svc_k_\w+", made)[0]
    return keys


def mirror(server: Server, key: str, place: Path, *options: str, expect: int = 0) -> Any:
    env = {"SVC_API_KEY": key}
    done = run_svc("mirror", f"{server.url}/", str(place), "--json", *options, check=False, env=env)
    assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


def test_each_has_what_they_may_see_and_changes_what_they_may(
    server: Server, keys: dict[str, str], tmp_path: Path
) -> None:
    user, scoped = tmp_path / "user", tmp_path / "scoped"
    mirror(server, keys["user"], user)
    mine = {"area": "directory", "area/ann": "directory", "area/ann/deep": "directory"}
    files = {"area/ann/a": f"file:{AREA}/a", "area/ann/deep/b": f"file:{AREA}/deep/b"}
    assert tree_of(user) == mine | files
    mirror(server, keys["scoped"], scoped)
    assert tree_of(scoped) == mine | {"area/ann/deep/b": f"file:{AREA}/deep/b"}

    (user / "area" / "ann" / "new").write_text("mine")
    (user / "area" / "ann" / "deep" / "b").write_text("changed")
    (user / "top").write_text("not allowed")
    left = mirror(server, keys["user"], user, expect=12)["left"]
    assert [one["path"] for one in left] == ["top"]
    assert (user / "top").read_text() == "not allowed"
    (scoped / "area" / "ann" / "deep" / "mine").write_text("not allowed")
    left = mirror(server, keys["scoped"], scoped, expect=12)["left"]
    assert [one["path"] for one in left] == ["area/ann/deep/mine"]
    assert (scoped / "area" / "ann" / "deep" / "b").read_text() == "changed"

    whole = tmp_path / "root"
    mirror(server, keys["root"], whole)
    assert tree_of(whole)["area/ann/new"] == "file:mine"
    assert {"other/d", "e"} <= set(tree_of(whole))
    assert "top" not in tree_of(whole)


def test_what_is_no_longer_granted_goes_and_what_is_comes(
    server: Server, keys: dict[str, str], tmp_path: Path
) -> None:
    root = {"SVC_DATABASE": server.url, "SVC_API_KEY": keys["root"]}
    place = tmp_path / "user"
    mirror(server, keys["user"], place)
    assert (place / "area" / "ann" / "a").exists()
    words = ("/area/bob", "--user", "ann", "--allow", "rl", "--json")
    made = json.loads(run_svc("grant", "add", *words, env=root).stdout)
    mirror(server, keys["user"], place)
    assert (place / "area" / "bob" / "c").read_text() == "/area/bob/c"
    run_svc("grant", "remove", made["grant_id"], env=root)
    mirror(server, keys["user"], place)
    assert not (place / "area" / "bob").exists()
    assert (place / "area" / "ann" / "a").exists()


def test_what_the_server_never_shows_stays_here(server: Server, keys: dict[str, str], tmp_path: Path) -> None:
    root = {"SVC_DATABASE": server.url, "SVC_API_KEY": keys["root"]}
    run_svc("api", "POST", "/files/mkdir", "path=/drop", env=root)
    run_svc("user", "add", "eve", env=root)
    run_svc("grant", "add", "/drop", "--user", "eve", "--allow", "c", env=root)
    made = run_svc("key", "create", "--user", "eve", "--json", env=root).stdout.decode()
    env = {"SVC_API_KEY": re.findall(r"svc_k_\w+", made)[0]}
    (tmp_path / "sub").mkdir()
    (tmp_path / "file").write_text("precious")
    (tmp_path / "sub" / "file").write_text("precious too")
    mine = tree_of(tmp_path)
    said: list[str] = []
    for _ in range(4):
        done = run_svc("mirror", f"{server.url}/drop", str(tmp_path), env=env)
        said.append((done.stdout + done.stderr).decode())
        assert tree_of(tmp_path) == mine
    for path in mine:
        assert "".join(said).count(f"not shown: {path} was stored") == 1, said
    assert said[2:] == ["nothing to do\n"] * 2
