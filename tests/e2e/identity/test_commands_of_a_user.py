"""The commands for files in the name of root, of a user with one grant, and of a scoped key of that user.

Whoever may see something far below finds the way from the root: the directories above show what leads there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc_blackbox.prepared import run_svc
from svc_testing import Server, start_server

AREA = "/area/ann"


class Shell:
    """Runs commands in the name of somebody."""

    def __init__(self, server: Server, token: str, directory: Path) -> None:
        self.server = server
        self.token = token
        self.directory = directory

    def __call__(self, *words: str, expect: int = 0) -> str:
        env = {"SVC_DATABASE": self.server.url, "SVC_TOKEN": self.token}
        done = run_svc(*words, check=False, cwd=self.directory, env=env)
        assert done.returncode == expect, (words, done.returncode, done.stdout, done.stderr)
        return (done.stdout if expect == 0 else done.stderr).decode()

    def get(self, path: str) -> Any:
        answer = self.server.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        return answer.status, answer.json()


@pytest.fixture(scope="module")
def shells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Shell]]:
    directory = tmp_path_factory.mktemp("walk")
    with start_server(directory / "x.svcdb", "--auth", "self", plugins=None) as server:

        def shell(name: str, key: str) -> Shell:
            body = json.dumps({"api_key": key, "refresh": False}).encode()
            headers = {"Content-Type": "application/json"}
            token = server.request("POST", "/auth/token", body=body, headers=headers).json()["token"]
            (directory / name).mkdir()
            return Shell(server, token, directory / name)

        root = shell("root", re.findall(r"svc_k_\S+", server.output)[0])
        (root.directory / "a.txt").write_text("one\n")
        for path in (f"{AREA}/a.txt", f"{AREA}/deep/b.txt", "/area/bob/c.txt", "/other/d.txt", "/area/e.txt"):
            root("put", "a.txt", path)
        root("snapshot", "create", "then")
        root("user", "add", "ann")
        root("grant", "add", AREA, "--user", "ann", "--allow", "crudl")
        root("user", "add", "nobody")
        made = {}
        for name, who, rules in (
            ("user", "ann", ()),
            ("key", "ann", ("--rule", f"{AREA}/**=crudl---")),
            ("nobody", "nobody", ()),
        ):
            text = root("key", "create", "--user", who, "--label", name, *rules, "--json")
            made[name] = shell(name, re.findall(r"svc_k_\w+", text)[0])
        yield {"root": root, **made}


@pytest.fixture(params=["user", "key"])
def ann(request: pytest.FixtureRequest, shells: dict[str, Shell]) -> Shell:
    return shells[request.param]


def test_what_leads_to_a_grant_is_listed_and_nothing_beside_it(ann: Shell) -> None:
    assert ann("ls", "/").split() == ["area/"]
    assert ann("ls", "/area").split() == ["ann/"]
    assert ann("ls", AREA).split() == ["a.txt", "deep/"]
    assert ann("ls", "-R", "/").split() == [
        *("/area/", "/area/ann/", "/area/ann/a.txt", "/area/ann/deep/", "/area/ann/deep/b.txt")
    ]
    for path in ("/", "/area"):
        status, listing = ann.get(f"/files{path}")
        assert (status, len(listing["items"]), listing["total"]) == (200, 1, 1)
        [item] = listing["items"]
        if item["path"] != AREA:
            assert [item[name] for name in ("hash", "size", "total_size", "file_count")] == [None] * 4
    assert ann.get("/files/?depth=-1")[1]["total"] == 2


def test_what_may_be_seen_is_read(ann: Shell) -> None:
    assert ann("cat", f"{AREA}/a.txt") == "one\n"
    assert ann("cat", f"{AREA}/a.txt", "--snapshot", "then") == "one\n"
    ann("get", f"{AREA}/a.txt", "out.txt")
    assert (ann.directory / "out.txt").read_text() == "one\n"
    ann("dump", "whole", "/", "--force")
    assert sorted(path.name for path in (ann.directory / "whole").rglob("*")) == [
        *("a.txt", "ann", "area", "b.txt", "deep")
    ]
    ann("dump", "part", AREA, "--force")
    assert (ann.directory / "part" / "deep" / "b.txt").read_text() == "one\n"


def test_what_may_be_changed_is_changed(ann: Shell) -> None:
    (ann.directory / "tree").mkdir(exist_ok=True)
    (ann.directory / "tree" / "new.txt").write_text("new\n")
    ann("load", "tree", f"{AREA}/tree")
    ann("load", "tree", f"{AREA}/tree")
    ann("put", "tree/new.txt", f"{AREA}/put.txt")
    ann("cp", f"{AREA}/put.txt", f"{AREA}/copy.txt")
    ann("mv", f"{AREA}/copy.txt", f"{AREA}/moved.txt")
    ann("ln", f"{AREA}/moved.txt", f"{AREA}/link")
    ann("mkdir", f"{AREA}/made")
    assert ann("cat", f"{AREA}/link") == "new\n"
    ann("rm", "-r", "-f", *(f"{AREA}/{name}" for name in ("tree", "put.txt", "moved.txt", "link", "made")))
    assert ann("ls", AREA).split() == ["a.txt", "deep/"]


@pytest.mark.parametrize(
    "words",
    [("ls",), ("cat",), ("get",), ("dump", "there"), ("rm",), ("mkdir",), ("put", "a.txt"), ("load", ".")],
)
def test_a_refusal_names_what_was_refused(shells: dict[str, Shell], words: tuple[str, ...]) -> None:
    ann = shells["user"]
    (ann.directory / "a.txt").write_text("x")
    assert "/other/d.txt" in ann(*words, "/other/d.txt", expect=5)


def test_who_may_see_nothing_is_told_so(shells: dict[str, Shell]) -> None:
    assert "/area" in shells["nobody"]("ls", "/area", expect=5)
    assert shells["nobody"].get("/files/")[0] == 403


def test_beside_the_way_nothing_is_told(ann: Shell, shells: dict[str, Shell]) -> None:
    denied = 403 if ann is shells["user"] else 404
    for path in ("/area/bob", "/area/bob/c.txt", "/area/e.txt", "/other", "/none", "/area/none"):
        assert ann.get(f"/files{path}")[0] == denied, path


def test_root_sees_all(shells: dict[str, Shell]) -> None:
    assert shells["root"]("ls", "/area").split() == ["ann/", "bob/", "e.txt"]


def test_root_reads_names_beside_the_ids_of_users(shells: dict[str, Shell]) -> None:
    root, ann = shells["root"], shells["user"]
    (ann.directory / "mine.txt").write_text("mine\n")
    ann("put", "mine.txt", f"{AREA}/mine.txt")
    user_id = next(
        one["user_id"] for one in json.loads(root("user", "list", "--json")) if one["username"] == "ann"
    )
    shown = f"ann ({user_id})"
    assert shown in root("log", f"{AREA}/mine.txt")
    assert f"user     {shown}" in root("show", json.loads(root("log", "--json"))["commits"][0]["version"])
    assert shown in root("history", "--commits", f"{AREA}/mine.txt")
    assert shown in root("blame", f"{AREA}/mine.txt")
    assert f"ann (user:{user_id})" in root("grant", "list")
    root("share", "add", "/other", "--user", "ann")
    assert shown in root("events", "--type", "files_shared")
    grant = root.get(f"/system/grants?path={AREA}")[1]["grants"][0]
    assert (grant["username"], grant["created_by_name"]) == ("ann", "root")
    # Whose names they are is for root to know.
    assert "root" in ann("log", f"{AREA}/a.txt")
    assert user_id in ann("log", f"{AREA}/mine.txt")
    assert shown not in ann("log", f"{AREA}/mine.txt")
