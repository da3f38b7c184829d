"""The commands on a database file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from svc_auth_self.keys import verified_key
from svc_auth_self.root_key import ensure_root_key
from svc_testing.processes import Completed

from .conftest import Http  # noqa: TID252

Run = Callable[..., Completed]
KEY = re.compile(r"svc_k_[0-9a-f]{32}_[0-9a-f]{64}")


@pytest.fixture
def svc(http: Http, run_svc: Run) -> Run:
    """Runs a command on the file that ``http`` serves meanwhile."""
    path = str(http.database.path)
    return lambda *arguments, **options: run_svc(*arguments, "-D", path, **options)


def test_keys_of_a_file_are_made_listed_and_revoked(svc: Run, http: Http) -> None:
    user_id = http.make_user("ann")
    made = svc("key", "create", "--user", "ANN", "--label", "x", "--days", "2", "--rule", "/a=b/**=-r------")
    key = made.stdout.strip()
    assert KEY.fullmatch(key)
    assert key not in made.stderr
    me = http.whoami(http.token(key))
    assert (me["user_id"], me["rules"]) == (user_id, [{"/a=b/**": "-r------"}])
    listed = svc("key", "list", "--json").json()
    assert listed == http("GET", "/auth/keys", http.root).json
    assert [one["label"] for one in svc("key", "list", "--user", user_id, "--json").json()] == ["x"]
    assert "x" in svc("key", "list").stdout
    assert svc("key", "revoke", me["key_id"]).exit_code == 0
    assert http.sign_in(key).status_code == 401
    assert svc("key", "revoke", me["key_id"]).exit_code == 3


def test_bad_options_are_refused(svc: Run) -> None:
    assert svc("key", "create", "--days", "0").exit_code == 2
    assert svc("key", "create", "--days", "3651").exit_code == 2
    assert svc("key", "create", "--rule", "/a").exit_code == 2
    assert svc("key", "create", "--rule", "/a=rr").exit_code == 2
    assert svc("key", "create", "--user", "nobody").exit_code == 3


def test_a_new_signing_key_by_hand(svc: Run, http: Http) -> None:
    assert svc("key", "rotate-signing").exit_code == 0
    assert http.status(http.root) == 200
    kid = svc("key", "rotate-signing", "--end-tokens", "--json").json()["kid"]
    assert kid
    assert http.status(http.root) == 401


def test_the_root_key_is_reset_beside_a_server(svc: Run, http: Http) -> None:
    printed = svc("reset-root-key").stdout
    [key] = KEY.findall(printed)
    assert http.status(http.root) == 401
    assert http.whoami(http.token(key))["is_root"]
    again = svc("reset-root-key", "--json").json()
    assert again["revoked"] == 1
    assert verified_key(http.database, key) is None
    assert verified_key(http.database, again["key"]) is not None
    assert list(ensure_root_key(http.database)) == []


def test_who_is_asked_of_a_server_only(svc: Run, run_svc: Run, tmp_path: Path) -> None:
    assert svc("whoami").exit_code == 2
    state = {"XDG_STATE_HOME": str(tmp_path)}
    assert run_svc("login", "http://127.0.0.1:1", env=state).exit_code == 2, "there is no key"
    assert run_svc("login", "http://127.0.0.1:1", "--key-file", "none", env=state).exit_code == 2
    assert run_svc("login", "http://127.0.0.1:1", env=state, stdin=b"svc_k_x\n").exit_code == 8
    assert run_svc("logout", "http://127.0.0.1:1", env=state).exit_code == 0
