"""A parameter, field or member that comes twice, or from elsewhere, is never two things to two readers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from falcon.testing import Result, TestClient

from svc.pipeline import PipelineSettings, check_route, create_app
from svc.plugin import AuthContext, Database
from svc.plugins import initialize, load_plugins
from svc_auth_self.mode import SelfContainedAuthMode

JSON = {"Content-Type": "application/json"}


class Http:
    """An application in mode self-contained, and the root key of its database."""

    def __init__(self, client: TestClient, key: str) -> None:
        self.client = client
        self.key = key
        self.token = str(self.sign_in(f'{{"api_key": "{key}"}}').json["token"])

    def sign_in(self, body: str, query: str = "") -> Result:
        return self.client.simulate_post("/auth/token", body=body, headers=JSON, query_string=query)

    def names(self, query: str) -> list[str]:
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = self.client.simulate_get("/files/", query_string=query, headers=headers)
        assert answer.status_code == 200, answer.text
        return [item["path"] for item in answer.json["items"]]


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    plugins = load_plugins(["files", "users", "auth.self"], check_route=check_route)
    database = Database(tmp_path_factory.mktemp("twice") / "twice.svcdb")
    assert initialize(database, plugins) == ()
    line, _ = SelfContainedAuthMode().prepare(AuthContext(database, "", None))
    key = line.rpartition(" ")[2]
    with database.transaction() as transaction:
        for name in ("a", "b", "c"):
            transaction.put((name,), b"")
    app = create_app(database, plugins, settings=PipelineSettings(auth="self-contained"))
    yield Http(TestClient(app), key)
    app.service.close()


def test_of_a_parameter_that_is_repeated_the_last_one_counts(http: Http) -> None:
    assert len(http.names("limit=1&limit=2")) == 2
    assert len(http.names("limit=2&limit=1")) == 1


def test_of_a_member_that_is_repeated_the_last_one_counts(http: Http) -> None:
    assert http.sign_in(f'{{"api_key": "nothing", "api_key": "{http.key}"}}').status_code == 200
    assert http.sign_in(f'{{"api_key": "{http.key}", "api_key": "nothing"}}').status_code == 401


def test_the_query_gives_no_member_of_a_body(http: Http) -> None:
    assert http.sign_in("{}", query=f"api_key={http.key}").status_code == 400


@pytest.mark.parametrize("query", ["token={0}", "access_token={0}", "token=x&token={0}", "api_key={0}"])
def test_the_query_gives_no_credentials_to_an_ordinary_route(http: Http, query: str) -> None:
    answer = http.client.simulate_get("/system/whoami", query_string=query.format(http.token))
    assert answer.status_code == 401
    assert http.token not in answer.text


@pytest.mark.parametrize(
    "value", ["Bearer {0}, Bearer {0}", "Bearer {0},", "Bearer {0} {0}", "Bearer", "Basic {0}", "{0}"]
)
def test_more_or_less_than_one_credential_is_none(http: Http, value: str) -> None:
    headers = {"Authorization": value.format(http.token)}
    assert http.client.simulate_get("/system/whoami", headers=headers).status_code == 401


def test_a_key_is_no_token(http: Http) -> None:
    headers = {"Authorization": f"Bearer {http.key}"}
    answer = http.client.simulate_get("/system/whoami", headers=headers)
    assert answer.status_code == 401
    assert http.key not in answer.text
