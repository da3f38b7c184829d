"""Operations called for the sender of a request: the same rights, errors and answers as over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import TestClient

from svc.errors import AuthRequired, Forbidden, NotFound, PayloadTooLarge
from svc.operations.system import enable_plugin, list_findings, show_caller, show_health
from svc.pipeline import SvcRequest, call_operation, identify_caller, send_operation
from svc.pipeline.sessions import SESSION_COOKIE
from svc.plugin import Identity
from svc_testing import TESTING_ROOT_KEY, DistributionFactory, load_with_testing_auth, serve_in_process

MODULE = """
from svc.plugin import hookimpl, public

class Page:
    @public
    def on_get(self, req, resp):
        asked.append(req)
        resp.text = str(todo[0](req))

asked, todo = [], [None]

@hookimpl
def svc_register_routes(routes):
    routes.add("/acme/page", Page())
"""
DESCRIPTOR = """
from svc.plugin import PluginDescriptor
PLUGIN = PluginDescriptor(
    "acme.page", "1", "A page", (1, 1), "acme_page.plugin", front_page="/acme/page"
)
"""
Asker = Callable[..., Any]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Asker, Any, TestClient]]:
    """Asks for a page that does something, and returns what that returned or raised."""
    factory = DistributionFactory(tmp_path / "acme")
    factory.install(
        "acme-page",
        modules={"acme_page.plugin": MODULE, "acme_page.descriptor": DESCRIPTOR},
        entry_points={"acme.page": "acme_page.descriptor:PLUGIN"},
    )
    with serve_in_process(tmp_path / "x.svcdb", load_with_testing_auth("acme.page")) as (app, _, mode):
        client = TestClient(app)

        def ask(do: Callable[[SvcRequest], Any], **fields: str) -> Any:
            from acme_page import plugin  # type: ignore[import-not-found]

            found: list[Any] = []

            def run(req: SvcRequest) -> None:
                try:
                    found.append(do(req))
                except Exception as error:
                    found.append(error)

            plugin.todo[0] = run
            headers = {name.replace("_", "-"): value for name, value in fields.items()}
            assert client.simulate_get("/acme/page", headers=headers).status_code == 200
            return found[0]

        yield ask, mode, client
    factory.close()


def caller_of(req: SvcRequest) -> Any:
    return call_operation(req, show_caller)


def test_the_sender_of_the_request_is_the_caller(served: tuple[Asker, Any, TestClient]) -> None:
    ask, mode, _ = served
    assert ask(caller_of).is_root
    mode.identity = Identity(user_id="11111111-1111-4111-8111-111111111111", name="ann")
    assert ask(caller_of).name == "ann"
    assert isinstance(ask(lambda req: call_operation(req, list_findings)), Forbidden)
    mode.identity = None
    assert isinstance(ask(caller_of), AuthRequired)
    assert ask(lambda req: call_operation(req, show_health)).status == "healthy"


def test_errors_are_those_of_http(served: tuple[Asker, Any, TestClient]) -> None:
    ask, _, _ = served
    error = ask(lambda req: call_operation(req, enable_plugin, "acme.nothing"))
    assert isinstance(error, NotFound)
    assert error.message == "There is no plugin of this id."
    assert error.details == {"plugin": "acme.nothing"}
    refused = ask(lambda req: send_operation(req, show_caller, fields={"Origin": "x"}).read(10))
    assert isinstance(refused, PayloadTooLarge)


def test_fields_of_the_request_itself_stay_with_it(served: tuple[Asker, Any, TestClient]) -> None:
    ask, _, _ = served
    answer = ask(lambda req: send_operation(req, show_health), Range="bytes=0-1", If_None_Match="*")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    answer = ask(lambda req: send_operation(req, show_health, method="HEAD"))
    assert answer.read() == b""


def test_a_public_route_learns_who_asks_and_the_session_counts(served: tuple[Asker, Any, TestClient]) -> None:
    ask, mode, _ = served

    def identify(req: SvcRequest) -> Any:
        assert req.context.identity_or_none is None
        identify_caller(req)
        return req.context.identity.name

    assert ask(identify) == "root"
    mode.identity = None
    assert isinstance(ask(identify), AuthRequired)
    cookie = f"{SESSION_COOKIE}={TESTING_ROOT_KEY}"
    assert isinstance(ask(identify, Cookie=cookie, Sec_Fetch_Site="cross-site"), Forbidden)


def test_browsers_are_sent_to_the_front_page_of_a_plugin(served: tuple[Asker, Any, TestClient]) -> None:
    _, _, client = served
    answer = client.simulate_get("/", headers={"Accept": "text/html,*/*"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/acme/page")
    assert client.simulate_get("/").json["service"] == "svc"
