"""Strangers try to hold up a server for others, and to be served after they were shut out.

Every attempt stands in docs/security/attempts.md.
"""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import pytest

from attack.scale import scaled
from attack.strangers import Caller, World, until_let
from svc_blackbox.client import Client, files

READERS = 16
OPEN = "/docs/open/a.txt"

HEAVY_RULES = {
    "many wildcards below each other": ["/" + "/".join(f"*a{at}" for at in range(300))],
    "many depths": ["/" + "**/a*/" * 500 + "x"],
    "a wildcard above much": ["/*/" + "a/" * 1_500 + "x"],
    "much of all rules": [f"/{number}*" + "/*a" * 15 for number in range(1_000)],
    "stars in one segment": ["/" + "*a" * 120],
    "stars in many segments": [f"/{number}" + "/*a*b*c" * 16 for number in range(250)],
    "many short segments": ["/" + "a/" * 2_000] * 20,
    "many long segments": ["/" + "/".join(["a" * 250] * 16)] * 20,
}


@pytest.mark.parametrize("name", HEAVY_RULES)
def test_no_key_has_rules_that_hold_up_a_worker(world: World, name: str) -> None:
    rules = [{glob: "-r------"} for glob in HEAVY_RULES[name]]
    response = world.callers["ann"].ask("POST", "/auth/keys", {"rules": rules})
    assert response.status == 400, response.body[:200]
    assert response.json()["limit"] in (16, 64, 1_000, 8_000, 64 * 1024)


def test_the_heaviest_keys_that_are_taken_let_everybody_be_answered(world: World) -> None:
    """Each worker makes rules ready in the first request of a key, in turns."""
    stars = ["/" + "/".join([f"{number}*a*b*c*" + "x" * 40] * 15) for number in range(15)]
    names = [f"/?{number}/" + "/".join(["a" * 9] * 4) for number in range(90)]
    deep = ["/" + "a/" * 1_900] * 3
    for number in range(12):
        rules = [{f"{glob}{number}": "-r------"} for glob in (*stars, *names, *deep)]
        key = world.callers["ann"].made("POST", "/auth/keys", {"rules": rules})["key"]
        token = world.client.post("/auth/token", {"api_key": key}).json()["token"]
        assert Caller(world, "the key", token).ask("GET", f"/files{OPEN}").status == 404


@pytest.mark.parametrize(
    "target",
    [
        "/auth/keys?user_id=%00",
        "/auth/keys?user_id=a/b",
        "/auth/keys?user_id=..",
        "/auth/keys?user_id=%ed%a0%80",
        "/auth/keys?after=%00",
        "/auth/keys?limit=99999999999999999999",
        "/system/users/%00",
        "/system/users/..",
        "/system/users?after=%ed%a0%80",
        "/system/users?tag=a/b",
        "/system/users?username=%00/",
        "/system/groups/%00",
        "/system/groups/%ed%a0%80",
        "/system/groups/a%2Fb",
        "/system/grants/..%2f",
        "/system/grants?group=%00",
        "/system/grants?after=..%2F",
        "/system/access?path=/&user=%00",
        "/files/share-links?path=%00",
        "/files/share-links?after=%00",
        "/files/shares?path=/&after=%00",
        "/files/shared-with-me?after=%00",
        "/files/shared-with-me?after=WyJcdWQ4MDAiLCIiXQ",
        "/files/shared-with-me?after=WyIiLCJcdTAwMDAiXQ",
    ],
)
@pytest.mark.parametrize("method", ["GET", "DELETE", "POST", "PATCH", "PUT"])
def test_names_that_are_none_are_no_failure_of_the_server(world: World, method: str, target: str) -> None:
    for caller in (world.root, world.callers["ann"], world.callers["link"]):
        assert caller.ask(method, target).status < 500


@pytest.mark.parametrize("how", ["grant", "user", "key", "link", "cookie", "group"])
def test_nobody_is_served_who_was_shut_out_before_they_asked(world: World, how: str) -> None:
    """Sixteen clients read while a right comes and goes; no answer is of a time before its request."""
    cases = Comings(world, how)
    settled, stop = [0], threading.Event()
    wrong: list[tuple[int, int]] = []
    seen: set[int] = set()

    def read() -> None:
        with Client(world.server.url) as client:
            while not stop.is_set():
                # In this order: what is read of the case later is of this state, or of a later one.
                before = settled[0]
                target, fields = cases.target, cases.fields
                status = client.get(target, fields).status
                if before == settled[0] and before:
                    seen.add(status)
                    if (status == 200) != (before > 0):
                        wrong.append((before, status))

    threads = [threading.Thread(target=read) for _ in range(READERS)]
    for thread in threads:
        thread.start()
    for number in range(1, scaled(25) + 1):
        settled[0] = 0
        cases.let_in()
        settled[0] = number
        time.sleep(0.004)
        settled[0] = 0
        cases.shut_out()
        settled[0] = -number
        time.sleep(0.004)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert not any(status >= 500 for status in seen)


class Comings:
    """A right to read that comes and goes."""

    def __init__(self, world: World, how: str) -> None:
        self._world, self._how = world, how
        self._user = world.make_user(f"comes and goes by {how}")
        self._group = f"group of {how}"
        self.target, self.fields = files(OPEN), self._user.fields()
        self._id = ""
        if how in ("user", "key"):
            world.grant("/docs/open", f"user:{self._user.user_id}", "-r------")
        if how == "group":
            world.root.made("POST", "/system/groups", {"name": self._group})
            world.grant("/docs/open", self._group, "-r------")

    def let_in(self) -> None:
        root, user = self._world.root, self._user.user_id
        if self._how == "grant":
            self._id = self._world.grant("/docs/open", f"user:{user}", "-r------")["grant_id"]
        elif self._how == "user":
            root.made("PATCH", f"/system/users/{user}", {"is_active": True})
        elif self._how == "group":
            root.made("PATCH", f"/system/groups/{self._group.replace(' ', '%20')}", {"add_members": [user]})
        elif self._how == "key":
            made = root.made("POST", "/auth/keys", {"user_id": user})
            self._id = made["key_id"]
            self.fields = self._world.sign_in("", made["key"]).fields()
        else:
            made = root.made("POST", "/files/share-link", {"paths": ["/docs/open"]})
            self._id = made["key_id"]
            self._follow(made["token"])

    def _follow(self, key: str) -> None:
        if self._how == "link":
            self.fields = self._world.sign_in("", key).fields()
            return
        answer = until_let(lambda: Caller(self._world, "").ask("POST", "/share/session", {"key": key}))
        self.fields = {"Cookie": answer["Set-Cookie"].partition(";")[0]}
        self.target = "/share/files" + OPEN

    def shut_out(self) -> None:
        root, user = self._world.root, self._user.user_id
        if self._how == "grant":
            root.made("DELETE", f"/system/grants/{self._id}")
        elif self._how == "user":
            root.made("DELETE", f"/system/users/{user}")
        elif self._how == "group":
            name = self._group.replace(" ", "%20")
            root.made("PATCH", f"/system/groups/{name}", {"remove_members": [user]})
        elif self._how == "key":
            root.made("DELETE", f"/auth/keys/{self._id}")
        else:
            root.made("DELETE", f"/files/share-links/{self._id}")


@pytest.mark.parametrize("plugin", ["users", "auth.self"])
def test_a_plugin_that_others_need_is_not_disabled_live(world: World, plugin: str) -> None:
    assert world.root.ask("POST", f"/system/plugins/{plugin}/disable").status == 409
    assert world.root.ask("GET", "/system/users").status == 200


def test_sign_in_goes_on_when_the_counts_of_failures_are_removed(world: World) -> None:
    shutil.rmtree(Path(f"{world.server.database}.d") / "auth.self")
    body = {"api_key": f"svc_k_{0:032x}_{0:064x}"}
    for _ in range(4):
        assert Caller(world, "x").ask("POST", "/auth/token", body).status in (401, 429)
    bob = world.callers["bob"]
    response = until_let(lambda: Caller(world, "x").ask("POST", "/auth/token", {"api_key": bob.key}))
    assert response.status == 200
