"""File mode as people meet it: ``svc start --auth file://PATH``, two workers, and a file that is edited."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from svc_testing import Server, run_svc, start_server
from svc_testing.processes import Response

ROOT_KEY = re.compile(r"svc_k_\w+")
EVERYWHERE = 24
"""So many new connections in a row reach both workers."""


class Caller:
    """Sends requests with a token."""

    def __init__(self, server: Server, token: str = "") -> None:
        self.server = server
        self.token = token

    def __call__(self, method: str, path: str, value: Any = None) -> Response:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if value is not None and not isinstance(value, bytes):
            headers["Content-Type"] = "application/json"
            value = msgspec.json.encode(value)
        return self.server.request(method, path, body=value, headers=headers)

    def signed_in(self, key: str) -> Caller:
        answer = self("POST", "/auth/token", {"api_key": key})
        assert answer.status == 200, answer.body
        return Caller(self.server, answer.json()["token"])


def new_key(*options: str) -> tuple[str, str]:
    """A key, and its lines for the file."""
    document = run_svc("auth-file", "new-key", "--json", *options).json()
    return document["key"], document["toml"]


def user(name: str, *lines: str) -> str:
    return "\n".join(["[[users]]", f'username = "{name}"', *lines, ""])


def replace(file: Path, text: str) -> None:
    """Puts another file in the place of one, as a careful editor does."""
    new = file.with_name(file.name + ".new")
    new.write_text(text)
    new.replace(file)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)


def everywhere(call: Callable[[], Response], status: int) -> bool:
    """Whether all workers answer so."""
    return all(call().status == status for _ in range(EVERYWHERE))


def root_key_of(server: Server) -> str:
    found = ROOT_KEY.search(server.output)
    assert found, server.output
    return found[0]


OPTIONS = ("--workers", "2", "--background", "true")


@pytest.fixture(scope="module")
def ann() -> tuple[str, str]:
    return new_key("--label", "laptop")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, ann: tuple[str, str]) -> Path:
    file = tmp_path_factory.mktemp("users") / "users.toml"
    file.write_text(user("ann", 'groups = ["editors"]') + ann[1])
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, file: Path) -> Iterator[Server]:
    database = tmp_path_factory.mktemp("served") / "x.svcdb"
    with start_server(database, "--auth", f"file://{file}", *OPTIONS, plugins=None) as running:
        yield running


@pytest.fixture(scope="module")
def root(server: Server) -> Caller:
    return Caller(server).signed_in(root_key_of(server))


@pytest.fixture(autouse=True)
def _as_it_was(request: pytest.FixtureRequest, file: Path) -> Iterator[None]:
    """Every test finds the file as the first one did, and all workers by it."""
    text = file.read_text()
    yield
    if file.read_text() != text:
        replace(file, text)
        server = request.getfixturevalue("server")
        wait_for(lambda: all(healthy(server) for _ in range(EVERYWHERE)))


def healthy(server: Server) -> bool:
    document = server.get("/system/health").json()
    return bool(document["status"] == "healthy")


def test_the_first_start_enables_the_plugin_and_prints_a_key_of_root(server: Server, root: Caller) -> None:
    assert server.output.count("svc_k_") == 1
    assert server.output.index("svc_k_") < server.output.index("svc ready")
    me = root("GET", "/system/whoami").json()
    assert (me["is_root"], me["auth_mode"]) == (True, "file")


def test_without_a_token_nothing_is_shown(server: Server) -> None:
    assert Caller(server)("GET", "/files/").status == 401


def test_a_group_of_the_file_has_grants_of_the_database(
    server: Server, root: Caller, ann: tuple[str, str]
) -> None:
    caller = Caller(server).signed_in(ann[0])
    assert root("PUT", "/files/docs/plan.txt", b"the plan").status == 201
    assert caller("GET", "/files/docs/plan.txt").status == 403
    assert root("POST", "/system/groups", {"name": "editors"}).status == 201
    grant = {"path": "/docs", "group": "editors", "allow": "crudl---"}
    assert root("POST", "/system/grants", grant).status == 201
    assert everywhere(lambda: caller("GET", "/files/docs/plan.txt"), 200)
    assert caller("PUT", "/files/docs/plan.txt", b"a better plan").status == 200
    assert caller("GET", "/files/other").status == 403


def test_a_single_user_of_the_file_is_granted_and_shared_with(
    server: Server, root: Caller, ann: tuple[str, str]
) -> None:
    caller = Caller(server).signed_in(ann[0])
    ann_id = caller("GET", "/system/whoami").json()["user_id"]
    for name in ("granted", "by-name", "by-id"):
        assert root("PUT", f"/files/{name}/file.txt", b"hers").status == 201
    grant = {"path": "/granted", "group": f"user:{ann_id.upper()}", "allow": "-r------"}
    made = root("POST", "/system/grants", grant)
    assert made.status == 201, made.body
    assert caller("GET", "/files/granted/file.txt").status == 200
    listed = root("GET", f"/system/grants?group=user:{ann_id}").json()["grants"]
    assert [one["path"] for one in listed] == ["/granted"]
    for path, named in (("/by-name", "Ann"), ("/by-id", ann_id)):
        body = {"paths": [path], "users": [named], "permissions": "-r--l---"}
        shared = root("POST", "/files/share", body)
        assert shared.status == 200, shared.body
        assert shared.json()["users"] == [{"user_id": ann_id, "username": "ann"}]
        assert caller("GET", f"/files{path}/file.txt").status == 200
        (item,) = root("GET", f"/files/shares?path={path}").json()["shares"]
        assert (item["user_id"], item["username"]) == (ann_id, "ann")
        assert root("DELETE", "/files/shares", {"paths": [path], "users": [named]}).json()["removed"] == 1
        assert caller("GET", f"/files{path}/file.txt").status == 403


def test_whom_neither_the_file_nor_the_database_knows_is_granted_nothing(
    server: Server, root: Caller
) -> None:
    nobody = "11111111-2222-3333-4444-555555555555"
    assert root("PUT", "/files/nobodys.txt", b"").status in (200, 201)
    grant = {"path": "/nobodys.txt", "group": f"user:{nobody}", "allow": "-r------"}
    assert root("POST", "/system/grants", grant).status == 404
    for named in (nobody, "nobody", "root", "00000000-0000-0000-0000-000000000000"):
        body = {"paths": ["/nobodys.txt"], "users": [named], "permissions": "-r------"}
        assert root("POST", "/files/share", body).status == 404, named


def test_a_user_of_the_file_comes_before_one_of_the_database_of_the_same_name(
    server: Server, root: Caller, ann: tuple[str, str]
) -> None:
    other = root("POST", "/system/users", {"username": "ann"}).json()["user_id"]
    caller = Caller(server).signed_in(ann[0])
    assert root("PUT", "/files/whose.txt", b"").status == 201
    body = {"paths": ["/whose.txt"], "users": ["ann"], "permissions": "-r------"}
    assert root("POST", "/files/share", body).json()["users"][0]["user_id"] != other
    assert caller("GET", "/files/whose.txt").status == 200
    body = {"paths": ["/whose.txt"], "users": [other], "permissions": "-r------"}
    assert root("POST", "/files/share", body).json()["users"][0]["user_id"] == other


def test_who_is_taken_out_of_the_file_is_out_on_every_worker(server: Server, file: Path) -> None:
    key, lines = new_key()
    text = file.read_text()
    replace(file, text + user("eve") + lines)
    wait_for(lambda: Caller(server)("POST", "/auth/token", {"api_key": key}).status == 200)
    wait_for(lambda: everywhere(lambda: Caller(server)("POST", "/auth/token", {"api_key": key}), 200))
    eve = Caller(server).signed_in(key)
    assert everywhere(lambda: eve("GET", "/system/whoami"), 200)
    file.write_text(text + user("eve", "active = false") + lines)
    wait_for(lambda: everywhere(lambda: eve("GET", "/system/whoami"), 401))
    replace(file, text + user("eve") + lines)
    wait_for(lambda: everywhere(lambda: eve("GET", "/system/whoami"), 200))
    replace(file, text)
    wait_for(lambda: everywhere(lambda: eve("GET", "/system/whoami"), 401))


def test_a_broken_file_keeps_nobody_out_and_is_told_of(
    server: Server, root: Caller, file: Path, ann: tuple[str, str]
) -> None:
    caller = Caller(server).signed_in(ann[0])
    file.write_text("[[users]]\nusername = ann\n")
    wait_for(lambda: not any(healthy(server) for _ in range(EVERYWHERE)))
    health = server.get("/system/health").json()
    assert health["checks"]["users-file"]["status"] == "degraded"
    assert str(file) not in str(health)
    assert everywhere(lambda: caller("GET", "/system/whoami"), 200)
    (finding,) = [
        item for item in root("GET", "/system/findings").json()["findings"] if item["source"] == "auth.file"
    ]
    assert f"The file of users {file} can't be used. It is not TOML:" in finding["detail"]
    assert "at line 2" in finding["detail"]
    wait_for(lambda: "The last good one is used." in server.errors)


def test_who_was_taken_out_of_the_file_stays_out_when_it_breaks_though_nobody_asked_meanwhile(
    server: Server, file: Path
) -> None:
    key, lines = new_key()
    text = file.read_text()
    replace(file, text + user("eve") + lines)
    time.sleep(4)  # until no worker reads the file once more because it was written just now
    eve = Caller(server).signed_in(key)
    assert everywhere(lambda: eve("GET", "/system/whoami"), 200)
    replace(file, text)
    time.sleep(2)  # twice as long as it takes
    replace(file, "broken")
    wait_for(lambda: not any(healthy(server) for _ in range(EVERYWHERE)))
    assert everywhere(lambda: eve("GET", "/system/whoami"), 401)


def test_a_worker_that_begins_while_the_file_is_broken_knows_the_last_good_one(
    server: Server, file: Path, ann: tuple[str, str]
) -> None:
    caller = Caller(server).signed_in(ann[0])
    file.write_text("")
    wait_for(lambda: not healthy(server))
    workers = children(server.process.pid)
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    wait_for(lambda: len(children(server.process.pid)) >= len(workers))
    wait_for(lambda: not set(workers) & set(children(server.process.pid)))
    wait_for(lambda: answers(server))
    assert everywhere(lambda: caller("GET", "/system/whoami"), 200)


def children(process: int) -> list[int]:
    """The processes that a process has started, as long as they live."""
    found = []
    for task in Path(f"/proc/{process}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return [child for child in found if not is_dead(child)]


def is_dead(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def answers(server: Server) -> bool:
    try:
        return all(server.get("/system/health").status == 200 for _ in range(EVERYWHERE))
    except OSError:
        return False


def test_a_key_that_was_made_over_http_works_for_a_user_of_the_file(
    server: Server, ann: tuple[str, str]
) -> None:
    caller = Caller(server).signed_in(ann[0])
    made = caller("POST", "/auth/keys", {"label": "script", "expires_in_days": 1})
    assert made.status == 201, made.body
    script = Caller(server).signed_in(made.json()["key"])
    assert script("GET", "/system/whoami").json()["name"] == "ann"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("no TOML", "(at line 1, column 8)"),
        ("unknown key", "[[users]] 1 ('ann'): Object contains unknown field `rool`"),
        ("pipe", "It is no regular file."),
    ],
)
def test_a_broken_file_keeps_the_server_from_starting(tmp_path: Path, how: str, words: str) -> None:
    bad = tmp_path / "bad.toml"
    if how == "pipe":
        os.mkfifo(bad)
    else:
        bad.write_text("[[users]" if how == "no TOML" else user("ann", "rool = true"))
    refused = run_svc("start", "-D", tmp_path / "x.svcdb", "--auth", f"file://{bad}", "--port", "0")
    assert refused.exit_code == 2, refused
    assert words in refused.stderr
    assert str(bad) in refused.stderr
    assert "svc_k_" not in refused.stdout


def test_the_mode_without_a_file_says_how_it_is_written(tmp_path: Path) -> None:
    refused = run_svc("start", "-D", tmp_path / "x.svcdb", "--auth", "file", "--port", "0")
    assert refused.exit_code == 2
    assert "--auth file:///path/of/users.toml" in refused.stderr


def test_from_self_contained_mode_to_the_file_and_back(
    tmp_path: Path, file: Path, ann: tuple[str, str]
) -> None:
    """The steps of docs/plugins/auth-file.md."""
    database = tmp_path / "x.svcdb"
    with start_server(database, "--auth", "self-contained", plugins=None) as first:
        root_key = root_key_of(first)
        root = Caller(first).signed_in(root_key)
        bob = root("POST", "/system/users", {"username": "bob"}).json()["user_id"]
        bobs = root("POST", "/auth/keys", {"user_id": bob}).json()["key"]
        assert Caller(first).signed_in(bobs)("GET", "/system/whoami").status == 200
    refused = run_svc("start", "-D", database, "--auth", f"file://{file}", "--port", "0")
    assert refused.exit_code == 11
    assert "svc plugins enable auth.file" in refused.stderr
    enabled = run_svc("plugins", "enable", "auth.file", "-D", database)
    assert enabled.exit_code == 0, enabled.stderr
    with start_server(database, "--auth", f"file://{file}", plugins=None) as second:
        assert "svc_k_" not in second.output, "the root key is the one that it was"
        assert Caller(second).signed_in(root_key)("GET", "/system/whoami").json()["is_root"]
        assert Caller(second).signed_in(ann[0])("GET", "/system/whoami").json()["name"] == "ann"
        assert Caller(second)("POST", "/auth/token", {"api_key": bobs}).status == 401
    with start_server(database, "--auth", "self-contained", plugins=None) as third:
        assert Caller(third).signed_in(bobs)("GET", "/system/whoami").json()["name"] == "bob"
        assert Caller(third)("POST", "/auth/token", {"api_key": ann[0]}).status == 401
