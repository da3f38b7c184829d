"""The list of sign-ins: who, when, from where, and who was refused; bounded, and root's alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from svc_portal.testing.contract import PageReader

from svc.pipeline import check_route
from svc.plugin import AddressLog
from svc.plugins import Plugins, load_plugins
from svc_auth_self import sign_in_list, sign_in_log
from svc_auth_self.sign_in_list import SignInLine, keep_sign_in, read_sign_ins


@pytest.fixture(autouse=True)
def _no_failures_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in_log, "_refused", AddressLog(sign_in_log._log, "refused sign-ins"))


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load_plugins(["users", "auth.self", "portal"], check_route=check_route)


def test_root_reads_who_has_signed_in_and_who_was_refused(http: Any) -> None:
    ann = http.make_user("ann")
    key = http.make_key(user_id=ann, expires_in_days=9)
    token = http.token(key["key"])
    assert http.sign_in(key["key"][:-4] + "0000").status_code == 401
    refused, good = http("GET", "/auth/sign-ins?limit=2", http.root).json["sign_ins"]
    assert (good["username"], good["key_id"], good["reason"]) == ("ann", key["key_id"], None)
    assert (refused["username"], refused["key_id"]) == (None, key["key_id"])
    assert refused["reason"] == "its secret is wrong"
    assert refused["at"] >= good["at"] > 0
    only = http("GET", "/auth/sign-ins?refused=true", http.root).json["sign_ins"]
    assert [one["reason"] for one in only] == ["its secret is wrong"]
    assert http("GET", "/auth/sign-ins", token).status_code == 403
    assert http("GET", "/portal/sign-ins", token).status_code == 404
    for query in ("", "?only=refused"):
        page = http("GET", f"/portal/sign-ins{query}", http.root)
        assert page.status_code == 200
        assert PageReader(page.text).faults == []
        assert "refused: its secret is wrong" in page.text
        assert ("ann</" in page.text) == (query == "")
        assert key["key"][-20:] not in page.text
    assert "/portal/sign-ins" in http("GET", "/portal/keys", http.root).text
    assert "/portal/sign-ins" not in http("GET", "/portal/keys", token).text


def test_what_is_kept_is_bounded_and_refusals_push_nothing_else_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in_list, "MOST_BYTES", 2_000)
    database: Any = SimpleNamespace(state_directory=tmp_path)
    keep_sign_in(database, SignInLine(at=1, how="API key", user_id="ann"))
    for at in range(2, 200):
        keep_sign_in(database, SignInLine(at=at, how="API key", reason="its secret is wrong"))
    files = sorted((tmp_path / "sign-ins").iterdir())
    assert [one.name for one in files] == ["good", "refused", "refused.older"]
    assert all(one.stat().st_size < 2_200 and one.stat().st_mode & 0o777 == 0o600 for one in files)
    assert [one.at for one in read_sign_ins(database, limit=3, is_refused=None)] == [199, 198, 197]
    assert [one.user_id for one in read_sign_ins(database, limit=9, is_refused=False)] == ["ann"]
    assert len(read_sign_ins(database, limit=1_000, is_refused=True)) > 20


def test_a_line_that_was_cut_is_left_out_and_what_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    database: Any = SimpleNamespace(state_directory=tmp_path)
    keep_sign_in(database, SignInLine(at=1, how="API key", user_id="ann"))
    with (tmp_path / "sign-ins" / "good").open("ab") as file:
        file.write(b'{"at": 2, "how"')
    assert [one.at for one in read_sign_ins(database, limit=9, is_refused=None)] == [1]
    nowhere: Any = SimpleNamespace(state_directory=tmp_path / "sign-ins" / "good")
    keep_sign_in(nowhere, SignInLine(at=1, how="API key"))
    assert read_sign_ins(nowhere, limit=9, is_refused=None) == []
