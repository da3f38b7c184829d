"""API keys over HTTP: who makes, sees and revokes which, and what a key may do."""

from __future__ import annotations

import re
import time
import uuid
from typing import Any

import pytest

from svc.plugin import ROOT_USER_ID
from svc_auth_self.api import KeyRecord, create_key, find_key, revoke_key
from svc_auth_self.jobs import prune_keys
from svc_auth_self.keys import verified_key

from .conftest import Clock, Http, Serve  # noqa: TID252

DAY_MS = 86_400_000
FAMILIES = ["/auth/keys", "/api-keys", "/auth/keys/admin", "/admin/api-keys"]
READ = [{"/reports/**": "-r--l---"}]


@pytest.mark.parametrize("path", FAMILIES)
def test_a_key_is_made_listed_and_revoked(http: Http, path: str) -> None:
    before = int(time.time() * 1000)
    answer = http("POST", path, http.root, json={"label": "ci", "expires_in_days": 2, "rules": READ})
    made = answer.json
    assert answer.status_code == 201
    assert answer.headers["Cache-Control"] == "no-store"
    assert list(made) == ["key_id", "key", "user_id", "label", "expires_at", "rules"]
    assert re.fullmatch(r"svc_k_[0-9a-f]{32}_[0-9a-f]{64}", made["key"])
    assert made["key"].split("_")[2] == uuid.UUID(made["key_id"]).hex
    assert (made["user_id"], made["label"], made["rules"]) == (ROOT_USER_ID, "ci", READ)
    assert before + 2 * DAY_MS <= made["expires_at"] <= int(time.time() * 1000) + 2 * DAY_MS

    listed = http("GET", path, http.root).json
    assert [set(one) for one in listed] == [
        {"key_id", "label", "user_id", "expires_at", "created_at", "rules"}
    ] * len(listed)
    assert [one["label"] for one in listed] == ["root", "ci"]
    assert made["key"].split("_")[3] not in http("GET", path, http.root).text

    token = http.token(made["key"])
    assert http.status(token) == 200
    gone = http("DELETE", f"{path}/{made['key_id']}", http.root)
    assert (gone.status_code, gone.json) == (200, {"revoked": True, "key_id": made["key_id"]})
    assert http.status(token) == 401
    assert http.sign_in(made["key"]).status_code == 401
    assert [one["label"] for one in http("GET", path, http.root).json] == ["root"]
    assert http("DELETE", f"{path}/{made['key_id']}", http.root).status_code == 404


def test_a_key_without_settings_is_good_for_two_years_and_is_not_narrowed(http: Http) -> None:
    made = http.make_key()
    assert made["label"] == ""
    assert made["rules"] == []
    assert abs(made["expires_at"] - time.time() * 1000 - 730 * DAY_MS) < DAY_MS / 2


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"expires_in_days": 0}, "expires_in_days"),
        ({"expires_in_days": -1}, "expires_in_days"),
        ({"expires_in_days": 3651}, "expires_in_days"),
        ({"expires_in_days": 1.5}, "expires_in_days"),
        ({"expires_in_days": "7"}, "expires_in_days"),
        ({"expires_in_days": 10**40}, "expires_in_days"),
        ({"label": "x" * 201}, "label"),
        ({"label": "a\nb"}, "label"),
        ({"label": 7}, "label"),
        ({"rules": {}}, "rules"),
        ({"rules": [{}]}, "rules[0]"),
        ({"rules": [{"/a": "--------", "/b": "--------"}]}, "rules[0]"),
        ({"rules": [{"/a": "--------"}, {"/b": "-------"}]}, "rules[1]"),
        ({"rules": [{"/a": "---------"}]}, "rules[0]"),
        ({"rules": [{"/a": "rc------"}]}, "rules[0]"),
        ({"rules": [{"/a": "CRUDLIFY"}]}, "rules[0]"),
        ({"rules": [{"/a": ""}]}, "rules[0]"),
        ({"rules": [{"/a": None}]}, "rules"),
        ({"rules": [{"": "--------"}]}, "rules[0]"),
        ({"rules": [{"reports/**": "--------"}]}, "rules[0]"),
        ({"rules": [{"/a/../b": "--------"}]}, "rules[0]"),
        ({"rules": [{"/a\u0000": "--------"}]}, "rules[0]"),
        ({"rules": [{"/" + "a/" * 2048: "--------"}]}, "rules[0]"),
        ({"rules": [{"/a": "--------"}] * 1001}, "rules"),
        ({"surprise": 1}, None),
        ([], None),
    ],
)
def test_what_is_no_key_is_refused(http: Http, body: Any, field: str | None) -> None:
    answer = http("POST", "/auth/keys", http.root, json=body)
    assert (answer.status_code, answer.json["code"]) == (400, "INVALID_INPUT")
    if field is not None:
        assert answer.json["field"].startswith(field)
    assert len(http("GET", "/auth/keys", http.root).json) == 1


def test_bounds_are_inside(http: Http) -> None:
    made = http.make_key(expires_in_days=3650, label="x" * 200, rules=[{"/a": "crudlify"}] * 1000)
    assert len(made["rules"]) == 1000
    http.make_key(expires_in_days=1)


def test_a_glob_is_kept_in_the_normal_form_of_paths(http: Http) -> None:
    made = http.make_key(rules=[{"/cafe\u0301/**": "-r--l---"}])
    assert made["rules"] == [{"/caf\u00e9/**": "-r--l---"}]


def test_users_have_their_own_keys_and_see_no_others(http: Http) -> None:
    ann_id, ann = http.make_caller("ann")
    ben_id, ben = http.make_caller("ben")
    made = http.make_key(ann, label="mine")
    assert made["user_id"] == ann_id
    assert {one["user_id"] for one in http("GET", "/auth/keys", ann).json} == {ann_id}
    assert {one["user_id"] for one in http("GET", "/auth/keys", ben).json} == {ben_id}
    assert http("GET", "/auth/keys", ben, params={"user_id": ann_id}).json == []
    assert http("DELETE", f"/auth/keys/{made['key_id']}", ben).status_code == 404
    unknown = http("DELETE", f"/auth/keys/{uuid.uuid4()}", ben)
    other = http("DELETE", f"/auth/keys/{made['key_id']}", ben)
    assert unknown.json == other.json
    assert http("POST", "/auth/keys", ben, json={"user_id": ann_id}).status_code == 403
    assert http.make_key(ben, user_id=ben_id)["user_id"] == ben_id
    assert {one["user_id"] for one in http("GET", "/auth/keys", http.root).json} == {
        ROOT_USER_ID,
        ann_id,
        ben_id,
    }
    assert http("DELETE", f"/auth/keys/{made['key_id']}", ann).status_code == 200


@pytest.mark.parametrize("path", ["/auth/keys/admin", "/admin/api-keys"])
def test_the_keys_of_everybody_are_roots(http: Http, path: str) -> None:
    _, ann = http.make_caller("ann")
    scoped = http.token(http.make_key(rules=[{"/**": "crudlify"}])["key"])
    key_id = http.make_key()["key_id"]
    for token, status in ((ann, 403), (scoped, 403), (None, 401)):
        assert http("POST", path, token, json={}).status_code == status
        assert http("GET", path, token).status_code == status
        assert http("DELETE", f"{path}/{key_id}", token).status_code == status


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize("path", ["/auth/keys", "/api-keys"])
def test_nobody_has_no_keys(http: Http, method: str, path: str) -> None:
    where = f"{path}/{uuid.uuid4()}" if method == "DELETE" else path
    assert http(method, where, json={}).status_code == 401


def test_root_makes_keys_of_users_who_are_there_and_active(http: Http) -> None:
    user_id = http.make_user("ann")
    assert http.make_key(user_id=user_id)["user_id"] == user_id
    http("PATCH", f"/system/users/{user_id}", http.root, json={"is_active": False})
    for wanted in (user_id, str(uuid.uuid4()), "ann", "", "../root"):
        answer = http("POST", "/auth/keys", http.root, json={"user_id": wanted})
        assert (answer.status_code, answer.json["field"]) == (404, "user_id")


def test_a_scoped_key_sees_and_ends_itself_only_and_makes_none(http: Http) -> None:
    _, ann = http.make_caller("ann")
    scoped_key = http.make_key(ann, rules=READ)
    scoped = http.token(scoped_key["key"])
    root_scoped_key = http.make_key(rules=[{"/**": "crudlify"}])
    root_scoped = http.token(root_scoped_key["key"])
    for token, own in ((scoped, scoped_key), (root_scoped, root_scoped_key)):
        assert http("POST", "/auth/keys", token, json={"rules": READ}).status_code == 403
        listed = http("GET", "/auth/keys", token).json
        assert [one["key_id"] for one in listed] == [own["key_id"]]
        assert http("GET", "/auth/keys", token, params={"after": own["key_id"]}).json == []
        others = [one["key_id"] for one in http("GET", "/auth/keys", http.root).json]
        for other in set(others) - {own["key_id"]}:
            assert http("DELETE", f"/auth/keys/{other}", token).status_code == 404
    assert http("DELETE", f"/auth/keys/{scoped_key['key_id']}", scoped).status_code == 200
    assert http.status(scoped) == 401
    assert http.status(ann) == 200


def test_the_rules_of_a_key_are_those_of_its_callers(http: Http) -> None:
    rules = [{"/reports/**": "-r--l---"}, {"/**": "--------"}]
    token = http.token(http.make_key(rules=rules)["key"])
    me = http.whoami(token)
    assert me["rules"] == rules
    assert me["is_root"]
    assert http("GET", "/system/plugins", token).status_code == 403


def make_share_key(http: Http, **changes: Any) -> tuple[KeyRecord, str]:
    given: dict[str, Any] = {"user_id": None, "label": "link", "rules": READ, "kind": "share", **changes}
    with http.database.transaction() as transaction:
        return create_key(
            http.database,
            transaction,
            expires_at=int(time.time() * 1000) + DAY_MS,
            created_by=ROOT_USER_ID,
            **given,
        )


def test_a_share_key_has_no_user_and_its_rules_alone(http: Http) -> None:
    record, text = make_share_key(http)
    token = http.token(text)
    me = http.whoami(token)
    assert (me["user_id"], me["is_root"], me["key_id"], me["rules"]) == (None, False, record.key_id, READ)
    assert http("POST", "/auth/keys", token, json={}).status_code == 403
    assert [one["key_id"] for one in http("GET", "/auth/keys", token).json] == [record.key_id]
    assert http("DELETE", f"/auth/keys/{record.key_id}", token).status_code == 404
    listed = http("GET", "/auth/keys", http.root).json
    assert {"user_id": None, "label": "link"}.items() <= listed[-1].items()
    assert http("DELETE", f"/auth/keys/{record.key_id}", http.root).status_code == 200
    assert http.status(token) == 401


def test_a_share_key_without_rules_may_nothing(http: Http) -> None:
    _, text = make_share_key(http, rules=())
    answer = http.sign_in(text)
    assert answer.status_code == 401 or http.status(answer.json["token"]) == 401


def test_keys_are_found_and_ended_through_the_module_for_plugins(http: Http) -> None:
    record, text = make_share_key(http)
    system = http.database.system()
    assert find_key(system, record.key_id) == record
    assert find_key(system, record.key_id.upper()) is None
    assert find_key(system, "../users") is None
    assert verified_key(http.database, text) == record
    with http.database.transaction() as transaction:
        assert revoke_key(http.database, transaction, record.key_id) == record
    assert find_key(http.database.system(), record.key_id) is None


def test_pages_of_keys_join(http: Http) -> None:
    for number in range(5):
        http.make_key(label=str(number))
    found: list[str] = []
    after = None
    while True:
        params = {"limit": "2", **({} if after is None else {"after": after})}
        page = http("GET", "/auth/keys", http.root, params=params)
        found += [one["label"] for one in page.json]
        after = page.headers.get("X-Svc-Next-Key")
        if after is None:
            break
        assert len(page.json) == 2
    # Those of one millisecond are in the order of their ids.
    assert found == [one["label"] for one in http("GET", "/auth/keys", http.root).json]
    assert sorted(found) == ["0", "1", "2", "3", "4", "root"]
    for limit in ("0", "1001", "x"):
        assert http("GET", "/auth/keys", http.root, params={"limit": limit}).status_code == 400


def test_a_user_has_so_many_keys_at_most(serve: Serve) -> None:
    http = serve(keys_per_user=2)
    _, ann = http.make_caller("ann")
    http.make_key(ann)
    answer = http("POST", "/auth/keys", ann, json={})
    assert (answer.status_code, answer.json["limit"]) == (409, 2)


def test_expired_keys_are_removed_in_time(http: Http, clock: Clock) -> None:
    user_id = http.make_user("ann")
    key_id = http.make_key(user_id=user_id, expires_in_days=1)["key_id"]
    clock.forward(2 * 86_400)
    assert prune_keys(http.database, None) is None
    assert find_key(http.database.system(), key_id) is not None
    clock.forward(30 * 86_400)
    prune_keys(http.database, None)
    system = http.database.system()
    assert find_key(system, key_id) is None
    assert system.get(("api-keys-of", user_id)) is None or not list(system.entries(("api-keys-of", user_id)))
    assert verified_key(http.database, http.root_key) is not None


def test_nothing_shows_a_secret(http: Http) -> None:
    record, text = make_share_key(http)
    secret = text.rpartition("_")[2]
    system = http.database.system()
    stored = b"".join(
        system.read_all(entry) for _, entry in system.walk(files_only=True) if entry.kind.name == "FILE"
    )
    assert secret.encode() not in stored
    assert record.hash not in repr(record)
    assert record.hash.encode() in stored
    assert http.root_key.rpartition("_")[2].encode() not in stored


def test_the_same_secret_has_another_hash_in_another_database(serve: Serve) -> None:
    from svc_auth_self.secret_hashes import secret_hashes

    one, two = secret_hashes(serve().database), secret_hashes(serve().database)
    assert one.of("secret") != two.of("secret")
    assert one.fits("secret", one.of("secret"))
    assert not one.fits("secret", two.of("secret"))
    assert repr(one) == "SecretHashes()"


def test_a_refresh_token_that_was_presented_is_not_shown(http: Http) -> None:
    from svc_auth_self.refresh import require_chain

    token = http.sign_in(http.root_key).json["refresh_token"]
    presented = require_chain(http.database, token, 0)
    shown = repr(presented)
    assert presented.chain_secret in token
    assert presented.chain_secret not in shown
    assert presented.chain.chain_hash not in shown
