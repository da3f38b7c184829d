"""Which routes ask nobody who it is: those that the security page lists, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from falcon.testing import TestClient

from svc.pipeline import AccessKind, PipelineSettings, check_route, create_app, endpoints_of
from svc.pipeline.binding import all_routes
from svc.plugin import Database
from svc.plugins import Plugins, enable, initialize, load_plugins

PAGE = Path(__file__).parents[3] / "docs" / "security.md"


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    loaded = load_plugins(check_route=check_route)
    assert not loaded.problems
    return loaded


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, plugins: Plugins) -> Iterator[TestClient]:
    """An application with all plugins that need no settings, and a caller whom it does not know."""
    database = Database(tmp_path_factory.mktemp("public") / "public.svcdb")
    initialize(database, plugins)
    for plugin_id in ("auth.file", "auth.magic-link", "sharing", "sync", "sync.http"):
        enable(database, plugins, plugin_id)
    app = create_app(database, plugins, settings=PipelineSettings(auth="self-contained"))
    yield TestClient(app)
    app.service.close()


def routes(client: TestClient, plugins: Plugins) -> Iterator[tuple[str, str, bool]]:
    """Every method and template, and whether it is public."""
    for route in all_routes(plugins):
        for method, endpoint in endpoints_of(route).items():
            yield method, route.template, endpoint.access.kind is AccessKind.PUBLIC


def documented() -> set[tuple[str, str]]:
    section = PAGE.read_text().partition("### Public routes")[2].partition("\n### ")[0]
    return {
        (method, template)
        for methods, template in re.findall(r"^\| `([A-Z, ]+) (/\S*)` \|", section, re.MULTILINE)
        for method in methods.split(", ")
    }


def test_the_security_page_lists_the_public_routes(client: TestClient, plugins: Plugins) -> None:
    public = {
        (method, template.replace(":text}", "}"))
        for method, template, is_public in routes(client, plugins)
        if is_public
    }
    assert public == documented()


def test_all_others_refuse_whoever_is_not_signed_in(client: TestClient, plugins: Plugins) -> None:
    tried = 0
    for method, template, is_public in routes(client, plugins):
        path = re.sub(r"\{[^}]+\}", "x", template)
        if is_public or method == "OPTIONS":
            continue
        answer = client.simulate_request(method, path)
        assert answer.status_code == 401, (method, path, answer.text)
        assert answer.headers["www-authenticate"] == "Bearer"
        if method != "HEAD":
            assert answer.json["code"] == "AUTH_REQUIRED"
        tried += 1
    assert tried > 80
