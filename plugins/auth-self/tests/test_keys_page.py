"""The page of keys: everybody's own, for root all; a new one is shown once, and ends by a form."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from svc_portal.testing import OWN_FORM, PageReader

from svc.pipeline import check_route
from svc.plugins import Plugins, load_plugins

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    loaded = load_plugins(["users", "auth.self", "portal"], check_route=check_route)
    assert not loaded.problems
    return loaded


def show(http: Any, token: str, query: str = "") -> str:
    answer = http("GET", f"/portal/keys{query}", token)
    assert answer.status_code == 200, answer.text
    assert PageReader(answer.text).faults == []
    return str(answer.text)


def post(http: Any, token: str, **form: Any) -> Any:
    return http("POST", "/portal/keys", token, body=urlencode(form), headers=OWN_FORM)


def key_in(text: str) -> str:
    return "svc_k_" + text.partition("<code>svc_k_")[2].partition("<")[0]


def test_a_key_with_rules_is_made_shown_once_and_revoked(http: Any) -> None:
    made = post(http, http.root, action="make", label=HOSTILE, days="3", rules="rl /a/**\r\n\r\ny /b")
    assert made.status_code == 200, made.text
    assert PageReader(made.text).faults == []
    assert made.headers["cache-control"] == "no-store"
    key = key_in(made.text)
    shown = show(http, http.root)
    assert key not in shown
    assert "<code>-r--l---</code> /a/**; <code>-------y</code> /b" in shown
    token = http.token(key)
    assert "it makes no other keys" in show(http, token)
    key_id = http.whoami(token)["key_id"]
    revoked = post(http, http.root, action="revoke", key=key_id)
    assert revoked.status_code == 303
    assert http.status(token) == 401


def test_what_is_wrong_is_said_and_the_form_keeps_what_it_has(http: Any) -> None:
    for wrong in ({"days": "0"}, {"days": "many"}, {"rules": "z /a"}, {"rules": "rl"}, {"user_id": "nobody"}):
        answer = post(http, http.root, action="make", label="mine", **wrong)
        assert answer.status_code == 200, wrong
        assert 'role="alert"' in answer.text
        assert 'value="mine"' in answer.text
        assert "svc_k_" not in answer.text


def test_users_see_and_revoke_their_own_keys_and_root_all(http: Any) -> None:
    user_id, token = http.make_caller("ann", label="ann's")
    other_id, _ = http.make_caller("bob", label="bob's")
    own = show(http, token, f"?user={other_id}")
    assert "ann&#39;s" in own
    assert "bob&#39;s" not in own
    assert "For the user with this id" not in own
    everybody = show(http, http.root)
    assert "ann&#39;s" in everybody
    assert "bob&#39;s" in everybody
    assert "bob&#39;s" not in show(http, http.root, f"?user={user_id}")
    of_bob = http("GET", "/auth/keys/admin", http.root, query_string=f"user_id={other_id}").json
    refused = post(http, token, action="revoke", key=of_bob[0]["key_id"])
    assert "There is no key of this id." in refused.text
    foreign = post(http, token, action="make", user_id=other_id)
    assert 'role="alert"' in foreign.text


def test_nobody_is_sent_to_sign_in_and_no_other_site_sends_the_form(http: Any) -> None:
    assert http("GET", "/portal/keys").status_code == 303
    foreign = {**OWN_FORM, "Origin": "https://other.example"}
    assert http("POST", "/portal/keys", http.root, body="action=make", headers=foreign).status_code == 403
