"""Two databases, one with hidden parts, one without: to who may not see them both give the same answers."""

from __future__ import annotations

import difflib
import io
import json
import re
import zipfile
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from attack.strangers import Caller, World, open_empty_world
from svc_blackbox.client import Response

Twins = tuple[World, World]

VISIBLE = ["/", "/vis", "/vis/a.txt", "/vis/sub", "/vis/sub/c.json", "/vis/mixed", "/vis/del", "/vis/zz"]
LINKS = ["/vis/l-a", "/vis/l-hid", "/vis/l-hiddir", "/vis/l-hiddir/x.txt", "/vis/l-key", "/vis/zz/l-deep"]
HIDDEN = ["/hid", "/hid/x.txt", "/hid/gone.txt", "/vis/secret", "/vis/secret/h1.txt", "/vis/mixed/m.key"]
NOTHING = "/never"

READS = [
    *("/files{path}" + query for query in ("", "?nofollow=true", "?depth=-1", "?deleted=true", "?limit=1")),
    *("/files{path}" + query for query in ("?snapshot=v1", "?snapshot=v1&depth=-1", "?fork=f1&depth=-1")),
    *("/files{path}" + query for query in ("?glob=**/*.key&depth=-1", "?offset=1&limit=2")),
    "/links{path}",
    "/version/file-history{path}",
    "/versions/blame{path}",
    "/versions/blame{path}?snapshot=v1",
    "/versions/log?path={path}",
    "/versions/compare?from=v1&to=v2&path={path}",
    "/versions/compare?from=HEAD&to=forks/f1&path={path}",
    "/files/deleted?path={path}",
    "/query/status?path={path}",
    "/system/events?last_event_id=0&follow=false&path_prefix={path}",
]
LISTS = [
    "/versions/log",
    "/versions/log?limit=1",
    "/versions/log?fork=f1",
    "/versions/snapshots",
    "/versions/forks",
    "/files/shared-with-me",
    "/system/events?last_event_id=0&follow=false",
]
BODIES: list[tuple[str, dict[str, Any]]] = [
    ("/files/fetch", {"paths": ["{path}"]}),
    ("/files/fetch?snapshot=v1", {"paths": ["{path}"]}),
    ("/files/download", {"paths": ["{path}"]}),
    ("/query", {"path": "{path}", "where": [], "include_total": True}),
    ("/query", {"path": "{path}", "where": [{"field": "year", "op": "gt", "value": 0}]}),
    ("/query", {"path": "{path}", "where": [], "aggregate": {"count": True, "sum": ["@size"]}}),
    ("/files/search", {"path": "{path}", "query": "visible"}),
]

_DENYING = [{"/vis/secret/**": "--------"}, {"/**/*.key": "--------"}]
_KEYS = {
    "scoped root": [*_DENYING, {"/vis/**": "crudlify"}],
    "some": [*_DENYING, {"/vis/*/*.json": "-r-dl---"}, {"/vis/l-*": "-r--l---"}],
}
CALLERS = ["ann", "bob", *_KEYS, "link"]


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """The one with the hidden parts is the first."""
    made = []
    for name in ("with", "without"):
        made.append(open_empty_world(tmp_path_factory.mktemp(name)))
        build(made[-1], hides=name == "with")
    yield made[0], made[1]
    for world in made:
        world.server.close()


def build(world: World, *, hides: bool) -> None:
    """Makes the same of both, but for what is hidden."""

    def batch(*operations: dict[str, Any], hidden: tuple[dict[str, Any], ...] = ()) -> None:
        every = [*operations, *(hidden if hides else ())]
        world.root.made("POST", "/files/batch", {"operations": every})

    fields = [{"name": name, "type": "exact"} for name in ("title", "year")]
    batch(
        put("/vis/.svc-config/indexes.json", json.dumps({"glob": "**/*", "indexes": fields})),
        put("/vis/a.txt", "alpha visible\n"),
        put("/vis/sub/c.json", '{"title": "visible", "year": 1900}'),
        put("/vis/mixed/m.txt", "mixed visible\n"),
        put("/vis/del/v.txt", "to be deleted\n"),
        put("/vis/zz/last.txt", "last\n"),
        link("/vis/l-a", "/vis/a.txt"),
        link("/vis/l-hid", "/hid/x.txt"),
        link("/vis/l-hiddir", "/hid"),
        link("/vis/l-key", "/vis/mixed/m.key"),
        link("/vis/zz/l-deep", "/vis/secret/deep"),
        hidden=(
            put("/hid/x.txt", "hidden visible\n"),
            put("/hid/gone.txt", "gone\n"),
            put("/vis/secret/h1.txt", "secret visible\n"),
            put("/vis/secret/deep/h2.json", '{"title": "visible", "year": 1850}'),
            put("/vis/mixed/m.key", "key\n"),
            put("/vis/sub/h.key", '{"title": "key", "year": 1901}'),
            put("/aaa.txt", "root\n"),
        ),
    )
    world.root.made("POST", "/version/snapshot", {"name": "v1", "metadata": {}})
    if hides:
        batch(*(put(path, "changed\n") for path in ("/vis/secret/h1.txt", "/vis/sub/h.key", "/hid/x.txt")))
        batch({"op": "delete", "path": "/hid/gone.txt"})
    batch(put("/vis/a.txt", "alpha changed\n"), hidden=(put("/vis/mixed/both.key", "both\n"),))
    batch({"op": "delete", "path": "/vis/del", "recursive": True})
    world.root.made("POST", "/version/snapshot", {"name": "v2", "metadata": {}})
    world.root.made("POST", "/version/fork", {"name": "f1"})
    if hides:
        world.root.ask("PUT", "/files/vis/secret/onfork.txt?fork=f1", body=b"fork\n")
    people(world)


def people(world: World) -> None:
    """Those who may not see what is hidden."""
    for name in ("ann", "bob"):
        world.callers[name] = world.make_user(name)
    ann, bob = (f"user:{world.callers[name].user_id}" for name in ("ann", "bob"))
    world.grant("/vis", ann, "crudlify")
    world.grant("/vis/sub", bob, "-r--l---")
    hidden = [("/vis/secret", ann, None), ("/vis", ann, "**/*.key"), ("/vis/sub", bob, "**/*.key")]
    for path, group, pattern in hidden:
        denied = {"allow": "--------", "deny": "crudlify", "path_pattern": pattern}
        world.root.made("POST", "/system/grants", {"path": path, "group": group, **denied})
    for name, rules in _KEYS.items():
        world.callers[name] = world.make_key(name, "00000000-0000-0000-0000-000000000000", rules)
    made = world.root.made("POST", "/files/share-link", {"paths": ["/vis/zz", "/vis/a.txt"]})
    world.callers["link"] = world.sign_in("link", made["token"])


def put(path: str, content: str) -> dict[str, Any]:
    kind = "application/json" if path.endswith(".json") else "text/plain"
    times = {"created_at": 1_577_836_800_000, "updated_at": 1_577_836_800_000}
    return {"op": "put", "path": path, "content": content, "content_type": kind, **times}


def link(path: str, target: str) -> dict[str, Any]:
    return {"op": "link", "path": path, "target": target, "created_at": 1_577_836_800_000}


_VARYING = [
    (r"\b[0-9a-f]{64}\b", "HASH"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,}\b", "UUID"),
    (r"\b[0-9a-f]{32}\b", "ID"),
    (r"\b1[7-9]\d{11}\b", "TIME"),
    (r"\b\d{12}\.\d{6}\b", "EVENT"),
    (r'"(next_cursor|prev_cursor)": ?"[^"]*"', r'"\1": "CURSOR"'),
    (r'"(sequence|duration_ms|uptime_ms|score)": ?[\d.]+', r'"\1": 0'),
]
_HEADERS = {"date", "x-request-id", "connection", "content-length", "last-modified", "etag", "x-svc-version"}


def shown(response: Response) -> tuple[object, ...]:
    """What an answer tells, without what differs between any two databases."""
    text = response.body.decode("utf-8", "backslashreplace")
    if response.body[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(response.body)) as archive:
            text = repr([(name, archive.read(name)) for name in archive.namelist()])
    elif "json" in response.headers.get("Content-Type", ""):
        value = json.loads(text)
        value.pop("meta", None)  # how far the indexes have come
        text = json.dumps(value, sort_keys=True)
    text = "\n".join(line for line in text.split("\n") if not line.startswith((":", "id:")))
    headers = {name.lower(): value for name, value in response.headers.items()}
    told = repr({name: value for name, value in sorted(headers.items()) if name not in _HEADERS})
    for pattern, name in _VARYING:
        text, told = re.sub(pattern, name, text), re.sub(pattern, name, told)
    return response.status, told, text


def compare(twins: Twins, caller: str, method: str, target: str, value: Any = None) -> str | None:
    """Asks both; returns how they differ."""
    left, right = (shown(ask(world.callers[caller], method, target, value)) for world in twins)
    if left == right:
        return None
    parts = [re.split(r"(?<=[,{\[])", " ".join(map(str, one))) for one in (left, right)]
    lines = [line for line in difflib.ndiff(*parts) if line[0] in "+-"]
    return "\n  ".join([f"{method} {target} {value or ''}", *lines[:20]])


def ask(caller: Caller, method: str, target: str, value: Any) -> Response:
    response = caller.ask(method, target, value)
    assert response.status < 500, (method, target, value, response.body)
    return response


@pytest.mark.parametrize("caller", CALLERS)
def test_no_answer_tells_of_what_is_hidden(twins: Twins, caller: str) -> None:
    found = [compare(twins, caller, "GET", target) for target in LISTS]
    for path in (*VISIBLE, *LINKS, *HIDDEN, NOTHING):
        found += [compare(twins, caller, "GET", target.replace("{path}", quote(path))) for target in READS]
        for target, body in BODIES:
            value = json.loads(json.dumps(body).replace("{path}", path))
            found.append(compare(twins, caller, "POST", target, value))
    differing = [one for one in found if one is not None]
    assert not differing, "\n".join(differing[:10])
    assert len(found) > 500


@pytest.mark.parametrize("caller", CALLERS)
def test_no_refused_write_tells_of_what_is_hidden(twins: Twins, caller: str) -> None:
    found: list[str | None] = []
    for path in HIDDEN:
        operations = [
            {"op": "put", "path": path, "content": "x", "if_none_match": "*"},
            {"op": "copy", "path": path, "to": "/vis/stolen.txt"},
            {"op": "move", "path": path, "to": "/vis/stolen.txt"},
            {"op": "delete", "path": path, "recursive": True},
        ]
        asked: list[tuple[str, str, Any]] = [
            *(("PATCH", f"/files{path}{fork}", {"to": "/vis/stolen.txt"}) for fork in ("", "?fork=f1")),
            *(("DELETE", f"/files{path}{fork}", None) for fork in ("", "?fork=f1")),
            ("PUT", f"/links{path}", {"target": "/vis/a.txt"}),
            ("POST", "/files/mkdir", {"path": path}),
            ("POST", "/files/copy", {"paths": [path], "destination": "/vis/into"}),
            ("POST", "/files/restore", {"path": path}),
            ("POST", "/files/share-link", {"paths": [path]}),
            *(("POST", "/files/batch", {"operations": [operation]}) for operation in operations),
        ]
        found += [compare(twins, caller, *one) for one in asked]
    differing = [one for one in found if one is not None]
    assert not differing, "\n".join(differing[:10])
