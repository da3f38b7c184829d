"""Signing in at a real server with two workers: first start, keys and tokens, ends, and a kill."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from svc_blackbox.client import Client, Response, files
from svc_blackbox.raw import RawConnection
from svc_blackbox.server import Server, free_port, run_svc
from svc_testing.processes import Completed
from svc_testing.processes import run_svc as run_command

ASKED = 24
"""Requests on connections of their own: with two workers, both answer some of them."""


class SignedServer:
    """``svc start`` with nothing but a database, a port and two workers, and the key that it printed."""

    def __init__(self, directory: Path) -> None:
        self.server = Server(directory / "x.svcdb")
        self.printed = ""
        self.start()
        self.root_key = self.key_in(self.printed)

    def start(self) -> None:
        arguments = ["-D", str(self.server.database), "--port", str(free_port()), "--workers", "2"]
        self.server.start_with(*arguments, "--host", "127.0.0.1")
        self.printed = "".join(self.server.printed)

    @staticmethod
    def key_in(text: str) -> str:
        [key] = re.findall(r"svc_k_[0-9a-f]{32}_[0-9a-f]{64}", text)
        return str(key)

    def call(self, method: str, path: str, value: Any = None, token: str | None = None) -> Response:
        """Sends one request on a connection of its own."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        with Client(self.server.url) as client:
            if value is None:
                return client.request(method, path, None, headers)
            return client.send_json(method, path, value, headers)

    def sign_in(self, key: str | None = None) -> dict[str, Any]:
        answer = self.call("POST", "/auth/token", {"api_key": key or self.root_key})
        assert answer.status == 200, answer.body
        signed_in: dict[str, Any] = answer.json()
        return signed_in

    def refresh(self, token: str) -> Response:
        return self.call("POST", "/auth/refresh", {"refresh_token": token})

    def statuses(self, token: str) -> set[int]:
        """What every worker says to a token."""
        return {self.call("GET", "/system/whoami", None, token).status for _ in range(ASKED)}

    def log(self) -> str:
        return self.server.log_text()


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignedServer]:
    running = SignedServer(tmp_path_factory.mktemp("sign-in"))
    try:
        yield running
    finally:
        running.server.close()


def test_the_first_start_prints_the_root_key_and_a_restart_prints_nothing(signed: SignedServer) -> None:
    assert signed.printed.count("svc_k_") == 1
    assert signed.call("GET", files("/")).status == 401
    token = signed.sign_in()["token"]
    assert signed.call("GET", files("/"), None, token).status == 200
    assert signed.server.stop() == 0
    signed.start()
    assert "svc_k_" not in signed.printed
    assert signed.statuses(token) == {200}
    assert signed.sign_in()["token"]


def test_of_many_refreshes_over_two_workers_one_wins_and_goes_on(signed: SignedServer) -> None:
    token = signed.sign_in()["refresh_token"]
    answers: list[Response] = []
    begin = threading.Barrier(32)

    def refresh() -> None:
        with Client(signed.server.url) as client:
            client.get("/system/health")
            begin.wait()
            answers.append(client.post("/auth/refresh", {"refresh_token": token}))

    threads = [threading.Thread(target=refresh) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(answer.status for answer in answers) == {200: 1, 401: 31}
    [won] = [answer.json() for answer in answers if answer.status == 200]
    assert signed.refresh(token).status == 401
    following = signed.refresh(won["refresh_token"])
    assert following.status == 200
    assert signed.statuses(following.json()["token"]) == {200}


def test_what_ends_ends_on_every_worker_with_the_next_request(signed: SignedServer) -> None:
    root = signed.sign_in()["token"]
    user_id = signed.call("POST", "/system/users", {"username": "ann"}, root).json()["user_id"]
    one, two = (signed.call("POST", "/auth/keys", {"user_id": user_id}, root).json() for _ in range(2))
    first, second = signed.sign_in(one["key"])["token"], signed.sign_in(two["key"])["token"]
    assert signed.statuses(first) == signed.statuses(second) == {200}
    assert signed.call("DELETE", f"/auth/keys/{one['key_id']}", None, root).status == 200
    assert signed.statuses(first) == {401}
    assert signed.statuses(second) == {200}
    assert signed.call("DELETE", f"/system/users/{user_id}", None, root).status == 200
    assert signed.statuses(second) == {401}
    assert signed.call("POST", "/auth/signing-key", {"end_tokens": True}, root).status == 201
    assert signed.statuses(root) == {401}


def test_an_upload_that_has_begun_ends_with_the_right_to_it(signed: SignedServer) -> None:
    root = signed.sign_in()["token"]

    def call(method: str, path: str, value: Any = None) -> Any:
        answer = signed.call(method, path, value, root)
        assert answer.status in (200, 201), answer.body
        return answer.json()

    def grant(allow: str) -> None:
        flags = {"allow": allow, "deny": "-" * 8}
        call("POST", "/system/grants", {"path": "/slow", "group": f"user:{user_id}", **flags})

    def upload(token: str, name: str, meanwhile: Callable[[], object]) -> int:
        head = f"PUT {files(f'/slow/{name}')} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        with RawConnection(signed.server.url) as connection:
            connection.send(f"{head}Content-Length: 10\r\n\r\n01234".encode())
            time.sleep(0.3)
            meanwhile()
            connection.send(b"56789")
            response = connection.response()
            assert response is not None
            return response.status

    user_id = call("POST", "/system/users", {"username": "slow"})["user_id"]
    grant("crudl---")
    first, second = (call("POST", "/auth/keys", {"user_id": user_id}) for _ in range(2))
    token = signed.sign_in(first["key"])["token"]
    assert upload(token, "a", lambda: call("PUT", files("/elsewhere"))) == 201
    assert upload(token, "b", lambda: call("DELETE", f"/auth/keys/{first['key_id']}")) == 401
    token = signed.sign_in(second["key"])["token"]
    assert upload(token, "c", lambda: grant("-r--l---")) == 403
    grant("crudl---")
    assert upload(token, "d", lambda: call("DELETE", f"/system/users/{user_id}")) == 401
    link = call("POST", "/files/share-link", {"paths": ["/slow"], "permissions": "crudl---"})
    assert upload(link["token"], "e", lambda: call("DELETE", f"/files/share-links/{link['key_id']}")) == 401
    assert [item["name"] for item in call("GET", files("/slow"))["items"]] == ["a"]


def test_commands_sign_in_once_and_use_what_was_kept(signed: SignedServer, tmp_path: Path) -> None:
    url = signed.server.url
    kept = tmp_path / "state" / "svc" / "credentials.json"

    def svc(*arguments: str, stdin: bytes = b"", **variables: str) -> Completed:
        return run_command(
            *arguments, stdin=stdin, env={"XDG_STATE_HOME": str(tmp_path / "state"), **variables}
        )

    assert svc("whoami", url).exit_code == 5
    refused = svc("login", url, SVC_API_KEY=signed.root_key[:-64] + "0" * 64)
    assert refused.exit_code == 5
    assert not kept.exists()
    done = svc("login", url, stdin=signed.root_key.encode() + b"\n")
    assert (done.exit_code, done.stdout) == (0, f"signed in at {url} as root\n")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    assert signed.root_key[-64:] not in kept.read_text()
    me = svc("whoami", url, "--json").json()
    assert (me["name"], me["is_root"], me["auth_mode"]) == ("root", True, "self-contained")
    assert svc("put", str(Path(__file__)), "/there", "--url", url).exit_code == 0

    # The access token is over: of commands that run side by side, one refreshes.
    document = json.loads(kept.read_text())
    before = document["servers"][url]
    document["servers"][url] = {**before, "expires_at": 0}
    kept.write_text(json.dumps(document))
    with ThreadPoolExecutor(3) as pool:
        codes = list(pool.map(lambda _: svc("whoami", url).exit_code, range(3)))
    assert codes == [0] * 3
    after = json.loads(kept.read_text())["servers"][url]
    assert [one["refresh_token"].split("_")[2] for one in (before, after)] == ["0", "1"]

    # A token that a server refuses is renewed too.
    root = signed.sign_in()["token"]
    assert signed.call("POST", "/auth/signing-key", {"end_tokens": True}, root).status == 201
    assert svc("whoami", url).exit_code == 0

    made = svc("key", "create", "--label", "ci", "--rule", "/a/**=-r--l---", "--days", "1", "--url", url)
    key = made.stdout.strip()
    assert svc("whoami", url, "--json", SVC_API_KEY=key).json()["rules"] == [{"/a/**": "-r--l---"}]
    listed = svc("key", "list", "--url", url, "--json").json()
    local = svc("key", "list", "-D", str(signed.server.database), "--json").json()
    assert listed == local
    [key_id] = [one["key_id"] for one in listed if one["label"] == "ci"]
    assert svc("key", "revoke", key_id, "--url", url).exit_code == 0
    assert svc("whoami", url, SVC_API_KEY=key).exit_code == 5

    assert svc("logout", url).stdout == f"signed out at {url}\n"
    assert signed.refresh(after["refresh_token"]).status == 401
    assert json.loads(kept.read_text())["servers"] == {}
    assert svc("whoami", url).exit_code == 5


def test_both_workers_together_bound_how_often_a_key_is_exchanged(signed: SignedServer) -> None:
    database = str(signed.server.database)
    configured = run_svc("plugins", "config", "auth.self", "-D", database, "--set", "sign_ins_per_minute=10")
    assert configured.returncode == 0, configured.stderr
    try:
        key = signed.call("POST", "/auth/keys", {}, signed.sign_in()["token"]).json()["key"]
        body = {"api_key": key, "refresh": False}
        answers = [signed.call("POST", "/auth/token", body) for _ in range(ASKED)]
        assert [answer.status for answer in answers] == [200] * 10 + [429] * (ASKED - 10)
        assert all(0 < int(answer["Retry-After"]) <= 60 for answer in answers[10:])
    finally:
        run_svc("plugins", "config", "auth.self", "-D", database, "--unset", "sign_ins_per_minute")


def test_a_new_root_key_beside_a_running_server_and_a_kill_that_loses_nothing(signed: SignedServer) -> None:
    before = signed.sign_in()
    made = run_svc("reset-root-key", "-D", signed.server.database).stdout.decode()
    assert signed.statuses(before["token"]) == {401}
    assert signed.refresh(before["refresh_token"]).status == 401
    assert signed.call("POST", "/auth/token", {"api_key": signed.root_key}).status == 401
    signed.root_key = signed.key_in(made)
    present = signed.sign_in()
    key = signed.call("POST", "/auth/keys", {"label": "kept"}, present["token"]).json()["key"]
    wrong = key[:-64] + "0" * 64
    statuses = [signed.call("POST", "/auth/token", {"api_key": wrong}).status for _ in range(ASKED)]
    assert set(statuses) == {401, 429}
    assert statuses == sorted(statuses), "one count for both workers"

    signed.server.kill()
    signed.start()
    assert "svc_k_" not in signed.printed
    refused = signed.call("POST", "/auth/token", {"api_key": wrong})
    assert refused.status == 429, "the limit outlives the kill"
    assert int(refused["Retry-After"]) > 0
    assert signed.call("POST", "/auth/token", {"api_key": key}).status == 200
    assert signed.statuses(present["token"]) == {200}
    assert signed.refresh(present["refresh_token"]).status == 200


def test_no_secret_is_in_the_log(signed: SignedServer) -> None:
    log = signed.log()
    assert signed.root_key[-64:] not in log
    assert not re.search(r"rt_[0-9a-f]{8}|eyJ[A-Za-z0-9_-]{8}|_[0-9a-f]{64}", log)
