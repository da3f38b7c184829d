"""Who may see a little tries to see and do more: by paths, by routes, by what answers tell.

Every attempt stands in docs/security/attempts.md.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from blake3 import blake3

from attack.strangers import HIDDEN, MISSING, SECRET, World, marks_in, target_of
from svc_blackbox.client import Response

NAMES = ["nobody", "bob", "ann", "scoped ann", "scoped root", "link", "cookie"]
SCOPED = ["scoped ann", "scoped root", "link"]
_REQUEST_ID = re.compile(rb'"request_id":\s*"[^"]*"')


def assert_tells_nothing(response: Response, asked: str = "") -> None:
    assert response.status < 500, response.body[:500]
    assert marks_in(response, asked) == []


# -- paths -----------------------------------------------------------------------------------------

SPELLINGS = [
    "/private/hidden.txt",
    "//private/hidden.txt",
    "/private//hidden.txt",
    "/private/hidden.txt/",
    "/./private/hidden.txt",
    "/private/./hidden.txt",
    "/docs/open/../../private/hidden.txt",
    "/docs/open/%2e%2e/%2e%2e/private/hidden.txt",
    "/docs/open/..%2f..%2fprivate/hidden.txt",
    "/docs/open/..%252f..%252fprivate/hidden.txt",
    "/docs/open/%252e%252e/private/hidden.txt",
    "/private%2Fhidden.txt",
    "/private%2fhidden.txt",
    "/%70rivate/hidden.txt",
    "/PRIVATE/hidden.txt",
    "/private/HIDDEN.TXT",
    "/private/hidden.txt%00",
    "/private/hidden.txt%00.png",
    "/private/hidden.txt;a=b",
    "/private/hidden.txt%20",
    "/private\\hidden.txt",
    "/docs\\open\\..\\..\\private\\hidden.txt",
    "/docs/open/..;/..;/private/hidden.txt",
    "/docs/open/..%c0%af../private/hidden.txt",
    "/docs/open/%c0%ae%c0%ae/%c0%ae%c0%ae/private/hidden.txt",
    "/%ef%bd%90rivate/hidden.txt",
    "/docs/open/out",
    "/docs/open/up/hidden.txt",
    "/docs/open/up/",
    "/docs/open/over/mark-c.txt",
    "/docs/open/sub/../out",
    "/docs/open/out/",
    "/docs/openx",
    "/docs/ope",
    "/docs/closed",
    "/docs/closed/",
    "/private",
    "/private/",
    "/.svc-system",
    "/.svc-system/api-keys",
    "/.system/users",
    "/.SVC-SYSTEM/api-keys",
    "/.svc%2Dsystem/auth-secrets/hash-key",
    "/docs/open/%2e%2e/closed/mark-c.txt",
    "/files/private/hidden.txt",
    "/docs/open/a.txt/../../closed",
    "/docs/open/a.txt%2f..%2f..%2fclosed",
    "/private/*",
    "/private/h?dden.txt",
    "/private/hidden.txt?version=HEAD",
    "/private/hidden.txt?snapshot=old",
    "/private/hidden.txt?fork=side",
    "/private/mark-gone.txt?snapshot=old",
    "/private/mark-of-the-fork.txt?fork=side",
    "/private/hidden.txt?at=2999-01-01",
    "/docs/open/?glob=/private/**&depth=-1",
    "/docs/open/?glob=../**",
    "/?depth=-1",
    "/?deleted=true&depth=-1",
    "/docs/?depth=-1&glob=**",
    "/docs/?glob=mark*",
    "/?limit=1",
    "/docs/open/?snapshot=old&depth=-1",
    "/docs/?fork=side&depth=-1",
    "/docs/open/?after=cHJpdmF0ZQ",
]


@pytest.mark.parametrize(
    "route", ["/files", "/links", "/share/files", "/versions/history", "/versions/blame"]
)
@pytest.mark.parametrize("path", SPELLINGS)
def test_no_spelling_of_a_path_leads_to_what_is_hidden(world: World, route: str, path: str) -> None:
    target = route + (path if path.startswith("/") else f"/{path}")
    for name in NAMES:
        caller = world.callers[name]
        for method in ("GET", "HEAD"):
            assert_tells_nothing(caller.ask(method, target), target)


# -- what answers tell -----------------------------------------------------------------------------

ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "/files/{path}", None),
    ("HEAD", "/files/{path}", None),
    ("PUT", "/files/{path}", b"x"),
    ("DELETE", "/files/{path}", None),
    ("OPTIONS", "/files/{path}", None),
    ("POST", "/files/{path}", {}),
    ("PATCH", "/files/{path}", {"to": "/docs/open/moved"}),
    ("GET", "/links/{path}", None),
    ("PUT", "/links/{path}", {"target": "/docs/open/a.txt"}),
    ("DELETE", "/links/{path}", None),
    ("GET", "/versions/history/{path}", None),
    ("GET", "/version/file-history/{path}", None),
    ("GET", "/versions/blame/{path}", None),
    ("POST", "/versions/file-restore/{path}", {"snapshot": "old"}),
    ("GET", "/share/files/{path}", None),
    ("GET", "/files/{path}?snapshot=old", None),
    ("GET", "/files/{path}?fork=side", None),
    ("GET", "/files/{path}?nofollow=true", None),
    ("GET", "/files/{path}?deleted=true", None),
    ("POST", "/files/fetch", {"paths": ["/{path}"]}),
    ("POST", "/files/fetch", {"items": [{"path": "/{path}", "if_content_hash": "0" * 64}]}),
    ("POST", "/files/download", {"paths": ["/{path}"]}),
    ("POST", "/files/mkdir", {"path": "/{path}"}),
    ("POST", "/files/mkdir", {"path": "/{path}/x", "exist_ok": True}),
    ("POST", "/files/copy", {"paths": ["/{path}"], "destination": "/docs/open/to"}),
    ("POST", "/files/copy", {"paths": ["/docs/open/a.txt"], "destination": "/{path}"}),
    ("POST", "/files/restore", {"paths": ["/{path}"]}),
    ("GET", "/files/deleted?path=/{path}", None),
    ("POST", "/files/batch", {"operations": [{"op": "copy", "from": "/{path}", "to": "/docs/open/x"}]}),
    ("POST", "/files/batch", {"operations": [{"op": "move", "from": "/{path}", "to": "/docs/open/x"}]}),
    ("POST", "/files/batch", {"operations": [{"op": "delete", "path": "/{path}"}]}),
    ("POST", "/files/share", {"paths": ["/{path}"], "users": ["ann"], "permissions": "-r------"}),
    ("POST", "/files/share-link", {"paths": ["/{path}"]}),
    ("GET", "/files/shares?path=/{path}", None),
    ("GET", "/system/access?path=/{path}&user=ann", None),
    ("GET", "/versions/log?path=/{path}", None),
    ("POST", "/system/grants", {"path": "/{path}", "group": "g", "allow": "-r------", "deny": "--------"}),
    ("GET", "/versions/compare?path=/{path}&from=old&to=HEAD", None),
]
CONDITIONS: list[dict[str, str]] = [
    {},
    {"If-Match": f'"{blake3(SECRET).hexdigest()}"'},
    {"If-None-Match": f'"{blake3(SECRET).hexdigest()}"'},
    {"If-None-Match": "*"},
    {"Range": "bytes=0-9"},
    {"Range": "bytes=7000-"},
    {"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"},
    {"If-Unmodified-Since": "Thu, 01 Jan 1970 00:00:10 GMT"},
    {"Content-Type": "application/merge-patch+json"},
]


def filled(value: Any, path: str) -> Any:
    if isinstance(value, str):
        return value.replace("{path}", path.lstrip("/"))
    if isinstance(value, list):
        return [filled(one, path) for one in value]
    return {key: filled(one, path) for key, one in value.items()} if isinstance(value, dict) else value


def told(world: World, name: str, route: tuple[str, str, Any], path: str, headers: dict[str, str]) -> Any:
    method, target, value = route
    body, value = (value, None) if isinstance(value, bytes) else (None, filled(value, path))
    response = world.callers[name].ask(method, target_of(target, path), value, headers, body)
    assert_tells_nothing(response)
    text = _REQUEST_ID.sub(b"", response.body).replace(b"hidden", b"absent")
    fields = {
        field.lower(): text for field, text in response.headers.items() if field.lower() not in _OF_ONE_ANSWER
    }
    return response.status, text, fields


_OF_ONE_ANSWER = {"date", "x-request-id"}


@pytest.mark.parametrize("headers", CONDITIONS, ids=str)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route[0]} {route[1]}")
def test_what_is_hidden_looks_like_what_is_missing(
    world: World, route: tuple[str, str, Any], headers: dict[str, str]
) -> None:
    for name in NAMES:
        assert told(world, name, route, HIDDEN, headers) == told(world, name, route, MISSING, headers), name


ASKED = [
    "/files/",
    "/files/docs",
    "/files/docs/open",
    "/files/docs/open?depth=-1",
    "/versions/log",
    "/versions/log?limit=1",
    "/version/snapshots",
    "/version/forks",
    "/versions/forks?abandoned=true",
    "/files/deleted",
    "/files/deleted?path=/",
    "/files/shared-with-me",
    "/files/shared-with-me?limit=1",
    "/auth/keys",
    "/auth/keys?user_id={root}",
    "/api-keys",
    "/auth/keys/admin",
    "/admin/api-keys",
    "/system/users",
    "/system/users/{root}",
    "/system/groups",
    "/system/grants",
    "/system/plugins",
    "/system/info",
    "/system/findings",
    "/system/lifecycle",
    "/system/health",
    "/files/shares?path=/",
    "/files/share-links",
    "/share/files/",
    "/share/files/docs",
    "/share/files/docs/closed",
    "/blobs/{hash}",
    "/blobs/chunks/{hash}",
    "/versions/compare?from=old&to=HEAD",
    "/versions/compare?base=old",
    "/system/users?username=ann",
    "/",
    "/versions/commits/HEAD",
    "/system/access?path=/&user=root",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", ASKED)
def test_no_list_shows_what_is_hidden(world: World, name: str, target: str) -> None:
    target = target.replace("{root}", "0" * 8 + "-0000-0000-0000-" + "0" * 12)
    target = target.replace("{hash}", blake3(SECRET).hexdigest())
    assert_tells_nothing(world.callers[name].ask("GET", target), target)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("route", ["/blobs/", "/blobs/chunks/", "/files/?version=", "/versions/commits/"])
def test_a_hash_that_is_guessed_right_looks_like_any_other(world: World, name: str, route: str) -> None:
    seen = set()
    for text in (blake3(SECRET).hexdigest(), "0" * 64):
        response = world.callers[name].ask("GET", route + text)
        seen.add((response.status, _REQUEST_ID.sub(b"", response.body).replace(text.encode(), b"")))
    assert len(seen) == 1, seen


# -- doing more ------------------------------------------------------------------------------------

POWERS: list[tuple[str, str, Any]] = [
    ("POST", "/system/users", {"username": "evil"}),
    ("PATCH", "/system/users/{me}", {"username": "evil"}),
    ("DELETE", "/system/users/{me}", None),
    ("POST", "/system/groups", {"name": "evil"}),
    ("PATCH", "/system/groups/user:{me}", {"tags": ["x"]}),
    ("DELETE", "/system/groups/x", None),
    ("POST", "/system/grants", {"path": "/", "group": "user:{me}", "allow": "crudlify", "deny": "--------"}),
    ("DELETE", "/system/grants/x", None),
    ("POST", "/auth/keys/admin", {"user_id": "{root}"}),
    ("POST", "/admin/api-keys", {"user_id": "{me}"}),
    ("DELETE", "/auth/keys/admin/{root_key}", None),
    ("POST", "/auth/keys", {"user_id": "{root}"}),
    ("POST", "/api-keys", {"user_id": "{root}"}),
    ("DELETE", "/auth/keys/{root_key}", None),
    ("DELETE", "/api-keys/{root_key}", None),
    ("POST", "/auth/signing-key", {"end_tokens": True}),
    ("POST", "/files/share", {"paths": ["/"], "users": ["ann"], "permissions": "crudlify"}),
    ("DELETE", "/files/shares", {"paths": ["/"], "users": ["ann"]}),
    ("POST", "/files/share-link", {"paths": ["/docs/open"]}),
    ("DELETE", "/files/share-links/{link}", None),
    ("POST", "/system/plugins/auth.disabled/enable", {}),
    ("POST", "/system/plugins/users/disable", None),
    ("PUT", "/system/plugins/auth.self/configuration", {"login_failures": 100}),
    ("PUT", "/system/lifecycle", {"snapshot_writes_enabled": False}),
    ("POST", "/version/restore", {"name": "old"}),
    ("POST", "/versions/restore", {"name": "old"}),
    ("POST", "/version/fork/side/promote", {"force": True}),
    ("POST", "/version/fork", {"name": "mine", "base": "old"}),
    ("DELETE", "/version/snapshot/old", None),
    ("POST", "/version/export", {}),
    ("POST", "/version/import", {}),
    ("POST", "/version/promote", {}),
    ("POST", "/versions/export", {}),
    ("POST", "/versions/diff", {}),
    ("POST", "/versions/merge", {"from": "side", "strategy": "theirs"}),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("power", POWERS, ids=lambda power: f"{power[0]} {power[1]}")
def test_what_is_for_root_is_for_root(world: World, name: str, power: tuple[str, str, Any]) -> None:
    caller = world.callers[name]
    words = {
        "{me}": caller.user_id or "x",
        "{root}": "0" * 8 + "-0000-0000-0000-" + "0" * 12,
        "{root_key}": key_id(world.root.key),
        "{link}": world.link["key_id"],
    }

    def said(value: Any) -> Any:
        if isinstance(value, str):
            for word, text in words.items():
                value = value.replace(word, text)
            return value
        if isinstance(value, list):
            return [said(one) for one in value]
        return {key: said(one) for key, one in value.items()} if isinstance(value, dict) else value

    method, target, value = power
    response = caller.ask(method, said(target), said(value))
    assert_tells_nothing(response)
    assert response.status in (400, 401, 403, 404, 405), (response.status, response.body[:300])


def key_id(key: str) -> str:
    digits = key.split("_")[2]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


WIDER = [
    [],
    None,
    [{"/**": "crudlify"}],
    [{"/docs/open/**": "-r------"}],
    [{"/private/**": "-r------"}],
    [{"/docs/open/../../**": "-r------"}],
]


@pytest.mark.parametrize("name", SCOPED)
@pytest.mark.parametrize("rules", WIDER, ids=str)
def test_a_scoped_key_makes_no_keys(world: World, name: str, rules: Any) -> None:
    for route in ("/auth/keys", "/api-keys"):
        assert world.callers[name].ask("POST", route, {"rules": rules}).status in (400, 403)


def test_a_wider_key_of_a_user_does_no_more_than_the_user(world: World) -> None:
    ann = world.callers["ann"]
    made = ann.made("POST", "/auth/keys", {"rules": [{"/**": "crudlify"}]})
    wider = world.sign_in("wider", made["key"])
    assert wider.ask("GET", "/files" + HIDDEN).status == 404
    assert wider.ask("GET", "/system/users").status == 403
    assert wider.ask("GET", "/files/docs/open/a.txt").status == 200


@pytest.mark.parametrize("name", SCOPED)
def test_a_scoped_key_sees_and_revokes_itself_alone(world: World, name: str) -> None:
    caller = world.callers[name]
    listed = caller.made("GET", "/auth/keys")
    assert [key["key_id"] for key in listed] == [key_id(caller.key)]
    for other in ("root", "bob", "ann"):
        key = world.root.key if other == "root" else world.callers[other].key
        assert caller.ask("DELETE", f"/auth/keys/{key_id(key)}").status == 404


@pytest.mark.parametrize("name", SCOPED)
def test_a_page_of_shares_shows_no_grant_that_is_hidden(world: World, name: str) -> None:
    """A page may end with a grant out of scope; nothing of what it grants is shown."""
    caller = world.callers[name]
    response = caller.ask("GET", "/files/shared-with-me?limit=1")
    assert_tells_nothing(response)


@pytest.mark.parametrize("op", ["copy", "move"])
@pytest.mark.parametrize("owner", ["root", "ann"])
def test_a_batch_makes_nothing_where_a_rule_denies_it(world: World, owner: str, op: str) -> None:
    """Of a directory that the batch itself makes nobody has decided what may be below it."""
    user_id = "00000000-0000-0000-0000-000000000000" if owner == "root" else world.callers["ann"].user_id
    rules = [{"/docs/open/box/**/*.key": "--------"}, {"/docs/open/**": "crudlify"}]
    careful = world.make_key("careful", user_id, rules)
    source, target = f"/docs/open/{owner}-{op}", f"/docs/open/box/{owner}-{op}"
    operations = [
        {"op": "put", "path": f"{source}/x.key", "content": "x"},
        {"op": op, "path": source, "to": target},
    ]
    assert careful.ask("POST", "/files/batch", {"operations": operations}).status == 409
    assert world.root.ask("GET", f"/files{target}").status == 404
    operations[1]["to"] = f"{source}-beside"
    assert careful.ask("POST", "/files/batch", {"operations": operations}).status == 200
