"""The specification's tables of authentication, row by row, at a real server with two workers.

Endpoints with what they take and answer, the operations of root alone, the eight flags, the rules by which
keys are evaluated, and the errors. Each request has a connection of its own, so that both workers answer.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from svc_blackbox.client import Client, Response
from svc_blackbox.server import Server, free_port

ROOT = "00000000-0000-0000-0000-000000000000"
NOBODY = "7f0a2b1c-0000-4000-8000-00000000dead"
KEY = re.compile(r"svc_k_[0-9a-f]{32}_[0-9a-f]{64}")
TOKENS = {"token", "expires_in", "refresh_token"}
KEY_MADE = {"key_id", "key", "user_id", "label", "expires_at", "rules"}
KEY_LISTED = {"key_id", "label", "user_id", "expires_at", "created_at", "rules"}
DAY_MS = 86_400_000
EVERYTHING = "crudlify"


class World:
    """A server, and who calls it: root, ann (everything is granted to her), and keys that are made."""

    def __init__(self, directory: Path) -> None:
        self.server = Server(directory / "x.svcdb", environment={"SVC_LOG_MAGIC_LINKS": "1"})
        options = ["-D", str(self.server.database), "--port", str(free_port()), "--workers", "2"]
        self.server.start_with(*options, "--host", "127.0.0.1")
        [self.root_key] = KEY.findall("".join(self.server.printed))
        self.tokens: dict[str | None, str | None] = {None: None}
        self.tokens["root"] = self.sign_in(self.root_key)["token"]
        self.ann = self.made("POST", "/system/users", {"username": "ann@example.org"})["user_id"]
        self.made("POST", "/system/grants", {"path": "/", "group": f"user:{self.ann}", "allow": EVERYTHING})
        self.ann_key = self.made("POST", "/auth/keys", {"user_id": self.ann})["key"]
        self.tokens["ann"] = self.sign_in(self.ann_key)["token"]
        for path in ("/a/file", "/a/b/file", "/c/file", "/old"):
            self.made("PUT", f"/files{path}", b"text")
        for kind in ("snapshots", "forks"):
            self.made("POST", f"/versions/{kind}", {"name": "first"})
        self.call("DELETE", "/files/old", None, "root")

    def call(self, method: str, path: str, body: Any = None, caller: str | None = None) -> Response:
        token = self.tokens.get(caller, caller)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        with Client(self.server.url) as client:
            if isinstance(body, bytes) or body is None:
                return client.request(method, path, body, headers)
            return client.send_json(method, path, body, headers)

    def made(self, method: str, path: str, body: Any, caller: str = "root") -> dict[str, Any]:
        answer = self.call(method, path, body, caller)
        assert answer.status in (200, 201), (method, path, answer.body)
        found: dict[str, Any] = answer.json()
        return found

    def sign_in(self, key: str) -> dict[str, Any]:
        answer = self.call("POST", "/auth/token", {"api_key": key})
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.json()
        return found

    def by_rules(self, *rules: tuple[str, str], owner: str | None = None) -> str:
        """The token of a new scoped key, of ann or of whoever it says."""
        body = {"rules": [{glob: flags} for glob, flags in rules], "user_id": owner or self.ann}
        return str(self.sign_in(self.made("POST", "/auth/keys", body)["key"])["token"])

    def status(self, method: str, path: str, body: Any, caller: str | None) -> int:
        return self.call(method, path, body, caller).status

    def code_of_link(self) -> str:
        """A code that is mailed to ann: here, to the log."""
        self.made("POST", "/auth/magic-link", {"email": "ann@example.org"})
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            codes = re.findall(r"verify\?code=([\w-]+)", self.server.log_text())
            if len(codes) > len(self.codes):
                self.codes = codes
                return str(codes[-1])
            time.sleep(0.05)
        raise AssertionError("no link was logged")

    codes: tuple[str, ...] | list[str] = ()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("specification"))
    yield world
    world.server.close()


# -- endpoints ---------------------------------------------------------------------------------------------


def test_a_key_is_exchanged_and_refreshing_rotates(world: World) -> None:
    first = world.sign_in(world.ann_key)
    assert set(first) == TOKENS
    assert first["expires_in"] == 3600
    answer = world.call("POST", "/auth/refresh", {"refresh_token": first["refresh_token"]})
    assert (answer.status, set(answer.json())) == (200, TOKENS)
    assert answer.json()["refresh_token"] != first["refresh_token"]
    again = world.call("POST", "/auth/refresh", {"refresh_token": first["refresh_token"]})
    assert (again.status, again.json()["code"]) == (401, "AUTH_REQUIRED")


def test_a_link_is_asked_for_and_signs_in_once(world: World) -> None:
    code = world.code_of_link()
    verified = world.call("GET", f"/auth/magic-link/verify?code={code}")
    assert verified.status == 200
    assert {"token", "expires_in"} <= set(verified.json())
    me = world.call("GET", "/system/whoami", None, verified.json()["token"]).json()
    assert me["user_id"] == world.ann
    assert world.status("GET", f"/auth/magic-link/verify?code={code}", None, None) == 401


def test_whoever_asks_for_a_link_gets_one_answer_until_there_are_too_many(world: World) -> None:
    answers = [world.call("POST", "/auth/magic-link", {"email": "no@example.org"}) for _ in range(6)]
    assert [answer.status for answer in answers] == [200] * 5 + [429]
    known = world.call("POST", "/auth/magic-link", {"email": "ANN@example.org"})
    assert (known.status, known.body) == (200, answers[0].body)
    assert set(known.json()) == {"message"}
    assert answers[5].json()["code"] == "RATE_LIMITED"
    assert int(answers[5]["Retry-After"]) > 0


@pytest.mark.parametrize("path", ["/auth/keys", "/api-keys", "/auth/keys/admin", "/admin/api-keys"])
@pytest.mark.parametrize("caller", ["root", "ann"])
def test_keys_are_made_listed_and_revoked(world: World, path: str, caller: str) -> None:
    rules = [{"/a/**": "-r--l---"}]
    body = {"label": "l", "expires_in_days": 2, "rules": rules}
    answer = world.call("POST", path, body, caller)
    if "admin" in path and caller == "ann":
        assert answer.status == 403
        assert world.status("GET", path, None, caller) == 403
        assert world.status("DELETE", f"{path}/{NOBODY}", None, caller) == 403
        return
    assert answer.status == 201
    made = answer.json()
    assert set(made) >= KEY_MADE
    assert KEY.fullmatch(made["key"])
    assert (made["label"], made["rules"]) == ("l", rules)
    assert made["user_id"] == (ROOT if caller == "root" else world.ann)
    assert abs(made["expires_at"] - time.time() * 1000 - 2 * DAY_MS) < DAY_MS / 2
    listed = world.call("GET", path, None, caller).json()
    assert all(set(one) >= KEY_LISTED and "key" not in one for one in listed)
    assert {one["user_id"] for one in listed} >= ({ROOT, world.ann} if caller == "root" else {world.ann})
    assert caller == "root" or {one["user_id"] for one in listed} == {world.ann}
    token = world.sign_in(made["key"])["token"]
    revoked = world.call("DELETE", f"{path}/{made['key_id']}", None, caller)
    assert (revoked.status, revoked.json()["revoked"], revoked.json()["key_id"]) == (
        200,
        True,
        made["key_id"],
    )
    assert world.status("GET", "/system/whoami", None, token) == 401
    assert world.status("POST", "/auth/token", {"api_key": made["key"]}, None) == 401
    if caller == "ann":
        assert made["key_id"] not in [one["key_id"] for one in world.call("GET", path, None, caller).json()]


@pytest.mark.parametrize(("days", "status"), [(None, 201), (1, 201), (3650, 201), (3651, 400), (0, 400)])
def test_every_key_expires(world: World, days: int | None, status: int) -> None:
    body = {} if days is None else {"expires_in_days": days}
    answer = world.call("POST", "/auth/keys", body, "ann")
    assert answer.status == status
    if status == 201:
        left = answer.json()["expires_at"] - time.time() * 1000
        assert abs(left - (days or 730) * DAY_MS) < DAY_MS / 2


def test_nobody_ends_the_keys_of_others_or_makes_keys_for_them_but_root(world: World) -> None:
    of_root = world.made("POST", "/auth/keys", {})
    assert world.status("DELETE", f"/auth/keys/{of_root['key_id']}", None, "ann") in (403, 404)
    assert world.sign_in(of_root["key"])["token"]
    assert world.status("POST", "/auth/keys", {"user_id": ROOT}, "ann") == 403
    assert world.made("POST", "/auth/keys", {"user_id": world.ann})["user_id"] == world.ann


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/auth/token", {"api_key": "x"}),
        ("POST", "/auth/refresh", {"refresh_token": "x"}),
        ("POST", "/auth/magic-link", {"email": "none@example.org"}),
        ("GET", "/auth/magic-link/verify?code=x", None),
        ("GET", "/system/health", None),
        ("GET", "/", None),
    ],
)
def test_public_routes_ask_for_no_bearer_token(world: World, method: str, path: str, body: Any) -> None:
    answer = world.call(method, path, body)
    assert answer.status in (200, 401)
    assert answer.status == 200 or "bearer" not in answer.json()["error"].lower()


# -- who may do what ---------------------------------------------------------------------------------------

OF_ROOT: list[tuple[str, str, Any]] = [
    ("POST", "/system/users", {"username": "x"}),
    ("GET", "/system/users", None),
    ("PATCH", f"/system/users/{NOBODY}", {"email": None}),
    ("DELETE", f"/system/users/{NOBODY}", None),
    ("POST", "/system/groups", {"name": "x"}),
    ("GET", "/system/groups", None),
    ("PATCH", "/system/groups/x", {"members": []}),
    ("DELETE", "/system/groups/x", None),
    ("POST", "/auth/keys/admin", {}),
    ("GET", "/auth/keys/admin", None),
    ("DELETE", f"/auth/keys/admin/{NOBODY}", None),
    ("POST", "/files/share", {"paths": ["/a"], "users": [ROOT], "permissions": "-r--l---"}),
    ("DELETE", "/files/shares", {"path": "/a", "group": "x"}),
    ("POST", "/files/share-link", {"paths": ["/a"]}),
    ("GET", "/files/share-links?path=/a", None),
    ("DELETE", f"/files/share-links/{NOBODY}", None),
    ("POST", "/version/restore", {"name": "first"}),
    ("POST", "/versions/restore", {"name": "first"}),
    ("DELETE", "/version/snapshot/first", None),
    ("DELETE", "/versions/snapshots/first", None),
    ("POST", "/version/fork/first/promote", None),
    ("POST", "/versions/forks/first/promote", None),
    ("DELETE", "/version/fork/first", None),
    ("DELETE", "/versions/forks/first", None),
    ("POST", "/version/file-restore/old", {"snapshot": "first"}),
    ("POST", "/versions/export", None),
    ("POST", "/versions/import", b"x"),
    ("POST", "/versions/promote", {"hash": "0" * 64}),
]
"""What only root may do. Tasks, schedules and collections have tests with their own plugins."""


@pytest.mark.parametrize(("method", "path", "body"), OF_ROOT)
def test_what_is_roots_alone_is_403_to_whom_everything_is_granted(
    world: World, method: str, path: str, body: Any
) -> None:
    answer = world.call(method, path, body, "ann")
    assert (answer.status, answer.json()["code"]) == (403, "FORBIDDEN")
    nobody = world.call(method, path, body)
    assert (nobody.status, nobody.json()["code"]) == (401, "AUTH_REQUIRED")
    assert nobody["WWW-Authenticate"] == "Bearer"
    scoped_root = world.tokens.get("scoped root")
    if scoped_root is None:
        scoped_root = world.tokens["scoped root"] = world.by_rules(("/**", EVERYTHING), owner=ROOT)
    assert world.status(method, path, body, scoped_root) in (403, 404)


class Use(NamedTuple):
    """A request that needs one operation; what it answers to whoever has it."""

    letter: str
    method: str
    path: str
    body: Any
    status: int


USES = [
    Use("c", "PUT", "/files/flags/{new}", b"x", 201),
    Use("c", "POST", "/files/mkdir", {"path": "/flags/d{new}"}, 201),
    Use("r", "GET", "/files/flags/file", None, 200),
    Use("r", "POST", "/files/fetch", {"paths": ["/flags/file"]}, 200),
    Use("u", "PUT", "/files/flags/file", b"y", 200),
    Use("d", "DELETE", "/files/flags/{there}", None, 200),
    Use("d", "GET", "/files/deleted?path=/flags", None, 200),
    Use("l", "GET", "/files/flags/", None, 200),
]


@pytest.mark.parametrize("letter", EVERYTHING)
def test_each_flag_allows_its_operation_and_no_other(world: World, letter: str) -> None:
    world.call("PUT", "/files/flags/file", b"x", "root")
    flags = "".join(one if one == letter else "-" for one in EVERYTHING)
    token = world.by_rules(("/flags", flags), ("/flags/**", flags))
    for number, use in enumerate(USES):
        name = f"{letter}{number}"
        if "{there}" in use.path:
            world.call("PUT", f"/files/flags/{name}", b"x", "root")
        body = {"path": f"/flags/d{name}"} if use.path == "/files/mkdir" else use.body
        path = use.path.replace("{new}", name).replace("{there}", name)
        answer = world.call(use.method, path, body, token)
        if use.letter == letter:
            assert answer.status == use.status, (use, answer.body)
        elif use.path == "/files/fetch":
            assert answer.json()["items"][0]["code"] == "NOT_FOUND", use
        else:
            assert answer.status == 404, (use, answer.body)


@pytest.mark.parametrize("flags", ["", "-r--l--", "-r--l----", "r-------", "crudlifX", "CRUDLIFY", None, 7])
def test_flags_are_eight_letters_in_their_places(world: World, flags: Any) -> None:
    answer = world.call("POST", "/auth/keys", {"rules": [{"/a": flags}]}, "ann")
    assert (answer.status, answer.json()["code"]) == (400, "INVALID_INPUT")


def test_the_first_rule_that_matches_decides(world: World) -> None:
    token = world.by_rules(("/a/b/**", "--------"), ("/a/**", "-r--l---"))
    assert world.status("GET", "/files/a/file", None, token) == 200
    assert world.status("GET", "/files/a/b/file", None, token) == 404
    other = world.by_rules(("/a/**", "-r--l---"), ("/a/b/**", "--------"))
    assert world.status("GET", "/files/a/b/file", None, other) == 200


def test_what_no_rule_matches_is_denied(world: World) -> None:
    token = world.by_rules(("/a/**", "-r--l---"))
    denied, missing = (world.call("GET", f"/files/{name}", None, token) for name in ("c/file", "none"))
    assert denied.status == missing.status == 404
    assert denied.json()["error"] == missing.json()["error"]


def test_without_rules_a_key_does_what_its_user_may(world: World) -> None:
    assert world.status("PUT", "/files/c/new", b"x", "ann") == 201
    assert world.call("GET", "/system/whoami", None, "ann").json()["rules"] == []


def test_rules_give_nothing_that_the_user_has_not(world: World) -> None:
    user = world.made("POST", "/system/users", {"username": "without"})["user_id"]
    token = world.by_rules(("/**", EVERYTHING), owner=user)
    assert world.status("GET", "/files/a/file", None, token) == 404
    assert world.status("PUT", "/files/a/file", b"x", token) == 404


def test_ancestors_are_listed_and_siblings_are_not_there(world: World) -> None:
    token = world.by_rules(("/a/b/**", "-r--l---"))
    top = world.call("GET", "/files/", None, token).json()["items"]
    assert [item["path"] for item in top] == ["/a"]
    assert [len(item["effective_permissions"]) for item in top] == [8]
    inner = world.call("GET", "/files/a/", None, token).json()["items"]
    assert [(item["path"], item["effective_permissions"]) for item in inner] == [("/a/b", "-r--l---")]
    assert world.status("GET", "/files/a/file", None, token) == 404


def test_the_key_of_a_link_has_its_rules_and_nothing_else(world: World) -> None:
    link = world.made("POST", "/files/share-link", {"paths": ["/a/b"], "permissions": "-r--l---"})
    assert {"url", "token", "key_id", "permissions", "expires_at", "paths"} <= set(link)
    token = world.sign_in(link["token"])["token"]
    assert world.call("GET", "/system/whoami", None, token).json()["user_id"] is None
    assert world.status("GET", "/files/a/b/file", None, token) == 200
    assert world.status("PUT", "/files/a/b/file", b"x", token) == 404
    assert world.status("GET", "/files/c/file", None, token) == 404
    assert world.status("POST", "/auth/keys", {}, token) == 403
    [key] = [one for one in world.call("GET", "/auth/keys", None, "root").json()
             if one["key_id"] == link["key_id"]]  # fmt: skip
    assert key["user_id"] is None
    assert world.status("DELETE", f"/files/share-links/{link['key_id']}", None, "root") == 200
    assert world.status("GET", "/files/a/b/file", None, token) == 401


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", ["", "x", "svc_k_x_y", "svc_k_" + "0" * 32 + "_" + "0" * 64, "{revoked}", "{wrong}", "{token}"]
)
def test_a_key_that_is_not_good_is_401(world: World, key: str) -> None:
    revoked = world.made("POST", "/auth/keys", {})
    world.call("DELETE", f"/auth/keys/{revoked['key_id']}", None, "root")
    key = key.format(revoked=revoked["key"], wrong=world.ann_key[:-64] + "0" * 64, token=world.tokens["ann"])
    answer = world.call("POST", "/auth/token", {"api_key": key})
    assert (answer.status, answer.json()["code"]) == (401, "AUTH_REQUIRED")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/auth/magic-link/verify?code=" + "0" * 64, None),
        ("GET", "/auth/magic-link/verify?code=x", None),
        ("POST", "/auth/refresh", {"refresh_token": "rt_x"}),
        ("POST", "/auth/refresh", {"refresh_token": f"rt_{'0' * 32}_0_{'0' * 128}"}),
    ],
)
def test_codes_and_refresh_tokens_that_are_not_good_are_401(
    world: World, method: str, path: str, body: Any
) -> None:
    answer = world.call(method, path, body)
    assert (answer.status, answer.json()["code"]) == (401, "AUTH_REQUIRED")


@pytest.mark.parametrize("path", ["/files/a/file", "/auth/keys", "/system/whoami", "/versions/snapshots"])
@pytest.mark.parametrize("token", [None, "x", "{key}", "eyJhbGciOiJub25lIn0.e30."])
def test_without_a_good_bearer_token_a_protected_route_is_401(
    world: World, path: str, token: str | None
) -> None:
    answer = world.call("GET", path, None, None if token is None else token.format(key=world.ann_key))
    assert (answer.status, answer.json()["code"]) == (401, "AUTH_REQUIRED")
    assert answer["WWW-Authenticate"] == "Bearer"
    assert set(answer.json()) == {"error", "code"}


def test_a_user_who_is_deactivated_is_out(world: World) -> None:
    user = world.made("POST", "/system/users", {"username": "leaver"})["user_id"]
    key = world.made("POST", "/auth/keys", {"user_id": user})["key"]
    signed_in = world.sign_in(key)
    assert world.status("DELETE", f"/system/users/{user}", None, "root") == 200
    assert world.status("GET", "/system/whoami", None, signed_in["token"]) == 401
    assert world.status("POST", "/auth/token", {"api_key": key}, None) == 401
    refresh = {"refresh_token": signed_in["refresh_token"]}
    assert world.status("POST", "/auth/refresh", refresh, None) == 401


def test_names_are_taken_once(world: World) -> None:
    for path, body in (("/system/users", {"username": "twice"}), ("/system/groups", {"name": "twice"})):
        assert world.status("POST", path, body, "root") == 201
        answer = world.call("POST", path, body, "root")
        assert (answer.status, answer.json()["code"]) == (409, "ALREADY_EXISTS")
