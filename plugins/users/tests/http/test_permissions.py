"""All routes are root's: nobody else learns who there is, or changes what anybody may do."""

from __future__ import annotations

from typing import Any

import pytest

from svc.pipeline import AccessKind, access_of
from svc.plugin import ROOT_IDENTITY, Identity, ScopedRule
from svc.plugins import Plugins
from svc_testing import PathRights

from ..conftest import NOBODY, Http  # noqa: TID252

USER = Identity(NOBODY, "eve", rights=PathRights({"/": "crudlify"}))
SCOPED_ROOT = Identity(
    ROOT_IDENTITY.user_id, "root", is_root=True, key_id="key", rules=(ScopedRule("/**", "crudlify"),)
)

REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "/system/users", None),
    ("POST", "/system/users", {"username": "eve"}),
    ("GET", "/system/users/{ann}", None),
    ("PATCH", "/system/users/{ann}", {"is_active": False}),
    ("DELETE", "/system/users/{ann}", None),
    ("GET", "/system/groups", None),
    ("POST", "/system/groups", {"name": "eve"}),
    ("GET", "/system/groups/staff", None),
    ("PATCH", "/system/groups/staff", {"add_members": [NOBODY]}),
    ("DELETE", "/system/groups/staff", None),
    ("GET", "/system/grants", None),
    ("POST", "/system/grants", {"path": "/", "group": "staff", "allow": "crudlify"}),
    ("GET", "/system/grants/{grant}", None),
    ("DELETE", "/system/grants/{grant}", None),
    ("GET", "/system/access?path=/&user=ann", None),
]


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS)
@pytest.mark.parametrize(("who", "status"), [(USER, 403), (SCOPED_ROOT, 403), (None, 401)])
def test_nobody_but_root(
    http: Http, method: str, path: str, body: Any, who: Identity | None, status: int
) -> None:
    ann = http.user("ann")
    http.group("staff", members=[ann])
    grant = http.grant("/a", "staff", allow="-r------")
    before = http.database.head()
    http.become(who)
    where = path.format(ann=ann, grant=grant)
    answer = http(method, where) if body is None else http.send(method, where, body)
    assert answer.status_code == status
    assert "ann" not in answer.text
    assert http.database.head() == before


def test_every_route_declares_that_it_is_roots(plugins: Plugins) -> None:
    for route in plugins.registries.routes.of_plugin("users"):
        for responder in route.value.responders().values():
            access = access_of(responder)
            assert access is not None
            assert access.kind is AccessKind.ROOT


def test_every_route_is_tried(plugins: Plugins) -> None:
    tried = {(method, path.partition("?")[0].count("/")) for method, path, _ in REQUESTS}
    for route in plugins.registries.routes.of_plugin("users"):
        for method in route.value.responders():
            if method not in ("HEAD", "OPTIONS"):
                assert (method, route.value.template.count("/")) in tried
