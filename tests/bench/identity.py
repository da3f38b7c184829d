"""What signing in costs: reads by token of callers with few and many rights, and a token's first sight."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import wrk
from http_files import SECONDS
from measurement import Bench, kibibyte
from report import interleave, seconds_of
from servers import Server, running_svc

from svc.database import Database
from svc.paths import parse_path
from svc.plugins import AuthContext, Credentials
from svc_auth_self.api import create_key
from svc_auth_self.mode import SelfContainedAuthMode
from svc_users.api import Grant, checked_grant, own_group, put_grant
from svc_users.records import User, encode, user_file, username_file

_AIM_GET = 0.95
_AIM_LISTING = 2.0
_AIM_FIRST = 2.0
_FLAGS = "cr--l---"
_LATER_MS = 4_000_000_000_000


class Caller:
    """Root, by HTTP."""

    def __init__(self, server: Server, key: str) -> None:
        self._server = server
        self._headers = {"Authorization": f"Bearer {self.token(key)}"}

    def token(self, key: str) -> str:
        """The token of a key."""
        return str(self._post("/auth/token", {"api_key": key}, {})["token"])

    def post(self, path: str, **body: object) -> dict[str, object]:
        """What a POST that makes something answers."""
        return self._post(path, body, self._headers)

    def signed_in(self, key: str) -> Server:
        """The server with the token of a key in each request."""
        return replace(self._server, headers={"Authorization": f"Bearer {self.token(key)}"})

    def _post(self, path: str, body: dict[str, object], headers: dict[str, str]) -> dict[str, object]:
        connection = http.client.HTTPConnection(*self._server.address, timeout=60)
        connection.request("POST", path, json.dumps(body), {**headers, "Content-Type": "application/json"})
        answer = connection.getresponse()
        found: dict[str, object] = json.loads(answer.read())
        connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"POST {path}: {answer.status} {found}")
        return found


@contextlib.contextmanager
def _self_contained(database: Path) -> Iterator[tuple[Server, str]]:
    """A server with sign-in of its own and one worker, and the root key that its first start prints."""
    with running_svc(database, "self-contained") as (server, log):
        found = re.search(r"svc_k_\w+", log.read_text())
        if found is None:
            raise RuntimeError("The first start printed no root key.")
        yield server, found[0]


def identity(bench: Bench) -> None:
    """GET and listing by token: root, a user with 100 grants, a key with 100 rules; tokens never seen."""
    entries = bench.choose(10_000, 1_000)
    path = bench.directory / "identity.svcdb"
    with (
        _self_contained(path) as (server, key),
        running_svc(bench.directory / "open.svcdb", "disabled") as open_,
    ):
        root = Caller(server, key)
        by_root = root.signed_in(key)
        user = root.post("/system/users", username="ann")
        reader = root.post("/system/users", username="ben")
        for number in range(50):
            root.post("/system/groups", name=f"g{number}", members=[user["user_id"]])
        with Database(path) as database:
            _fill(database, entries, str(user["user_id"]), str(reader["user_id"]))
        open_[0].put("/files/file", kibibyte(0))
        by_root.put("/files/file", kibibyte(0))
        by_user, by_reader = (
            root.signed_in(str(root.post("/auth/keys", user_id=one["user_id"])["key"]))
            for one in (user, reader)
        )
        rules = [{f"/elsewhere/{number}/**": "crudlify"} for number in range(99)]
        scoped_key = root.post("/auth/keys", rules=[*rules, {"/**": "-r--l---"}])["key"]
        by_scoped = root.signed_in(str(scoped_key))
        _gets(
            bench,
            open_[0],
            {"root": by_root, "user, 100 grants in 50 groups": by_user, "key with 100 rules": by_scoped},
        )
        listing = f"/files/list?limit={entries}"

        def list_by(caller: Server) -> float:
            found = json.loads(caller.get(listing))
            assert len(found["items"]) == entries, len(found["items"])
            return seconds_of(partial(caller.get, listing)) * 1000

        theirs, ours = interleave(bench.rounds(5), partial(list_by, by_root), partial(list_by, by_reader))
        work = f"listing of {entries:,} entries, {entries:,} grants, by a user"
        bench.report.compare(work, ours, "ms", "by root", theirs, _AIM_LISTING, at_most=True)
    _first_tokens(bench)


def _gets(bench: Bench, without: Server, callers: dict[str, Server]) -> None:
    targets = [without, *callers.values()]
    base, *found = interleave(
        bench.rounds(5),
        *(lambda target=target: wrk.get(target, "/files/file", 1024, 32, SECONDS).rate for target in targets),
    )
    for label, rates in zip(callers, found, strict=True):
        work = f"GET 1 KiB, 32 connections, token of {label}"
        bench.report.compare(work, rates, "1/s", "without sign-in", base, _AIM_GET)


def _fill(database: Database, entries: int, user_id: str, reader_id: str) -> None:
    """Files to list, a grant on each of them for one user, and a hundred grants of groups of another."""
    with database.transaction() as transaction:
        for number in range(entries):
            transaction.put(("list", f"f{number:05}"), b"x")
    grants = [_grant("/file", own_group(user_id)), _grant("/list", own_group(reader_id))]
    grants += [_grant(f"/list/f{number:05}", own_group(reader_id)) for number in range(entries)]
    grants += [_grant(f"/teams/{number}", f"g{number % 50}") for number in range(100)]
    for start in range(0, len(grants), 1000):
        with database.transaction() as transaction:
            system = database.system()
            for grant in grants[start : start + 1000]:
                put_grant(transaction, system, grant)


def _grant(path: str, group: str) -> Grant:
    return checked_grant(parse_path(path), group, allow=_FLAGS, created_at=1)


def _first_tokens(bench: Bench) -> None:
    """A token that was never seen, in a database of few and of many users and keys."""
    many = bench.choose(100_000, 10_000)
    with (
        Database(bench.directory / "few.svcdb") as few,
        Database(bench.directory / "many.svcdb") as more,
    ):
        modes = [(_mode_with(few, 100)), (_mode_with(more, many))]
        ours, theirs = interleave(
            bench.rounds(5), *(partial(_microseconds_of_first_tokens, *mode) for mode in reversed(modes))
        )
    work = f"token seen for the first time, {many:,} users with keys"
    bench.report.compare(work, ours, "us", "100 of each", theirs, _AIM_FIRST, at_most=True)


def _mode_with(database: Database, count: int) -> tuple[SelfContainedAuthMode, list[str]]:
    """A mode of a database with so many users, each with a key; and the ids of some keys."""
    prototype = SelfContainedAuthMode()
    context = AuthContext(database, "", None)
    list(prototype.prepare(context))
    keys: list[str] = []
    for start in range(0, count, 1000):
        with database.transaction() as transaction:
            for number in range(start, min(start + 1000, count)):
                user_id = f"00000000-0000-4000-8000-{number + 1:012x}"
                user = User(user_id=user_id, username=f"user{number}", created_at=1, updated_at=1)
                transaction.put_system(user_file(user_id), encode(user))
                transaction.put_system(username_file(user.username), user_id.encode())
                record, _ = create_key(
                    database,
                    transaction,
                    user_id=user_id,
                    label="",
                    expires_at=_LATER_MS,
                    rules=[],
                    created_by=None,
                )
                keys.append(record.key_id)
    return prototype.bind(context), keys[:: max(1, count // 100)]  # type: ignore[return-value]


def _microseconds_of_first_tokens(mode: SelfContainedAuthMode, keys: list[str]) -> float:
    matches = [mode.find_match(key_id) for key_id in keys]
    # No two tokens are alike: the second in which they were made would be the same.
    lifetime = iter(range(1000 + int(time.time() * 1000) % 100_000, 10**9))
    tokens = [mode.write_token(match, next(lifetime))[0] for match in matches if match is not None]
    credentials = [Credentials(scheme="bearer", value=token) for token in tokens]
    began = time.perf_counter()
    for one in credentials:
        assert mode.authenticate(one) is not None
    return (time.perf_counter() - began) / len(credentials) * 1e6
