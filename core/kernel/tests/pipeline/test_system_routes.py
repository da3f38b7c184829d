"""Health at every moment, and the plugins of the database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from falcon.testing import TestClient

from svc.database import Database
from svc.findings import Finding
from svc.pipeline import Application, PipelineSettings, Service, create_service_app
from svc.plugins import HealthReport, HealthStatus, Plugins, initialize, select_auth_mode


def health_check_of(plugins: Plugins) -> Any:
    return next(iter(plugins.registries.health_checks)).value


def failing() -> HealthReport:
    raise RuntimeError("a secret of the check")


def test_health_is_public_and_says_what_this_is(anonymous: TestClient) -> None:
    answer = anonymous.simulate_get("/system/health")
    assert answer.status_code == 200
    assert answer.json["status"] == "healthy"
    assert answer.json["service"] == "svc"
    assert answer.json["version"]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: HealthReport(HealthStatus.DEGRADED, "The index is behind."), "The index is behind."),
        (failing, "The check failed."),
    ],
)
def test_one_check_makes_it_degraded(
    anonymous: TestClient, plugins: Plugins, check: Any, message: str
) -> None:
    type(health_check_of(plugins)).answer = staticmethod(check)
    answer = anonymous.simulate_get("/system/health")
    assert answer.status_code == 200
    assert answer.json["status"] == "degraded"
    assert answer.json["checks"] == {"changing": {"status": "degraded", "message": message}}
    (finding,) = answer.json["findings"]
    assert finding["source"] == "test.routes"
    assert "a secret of the check" not in answer.text


def test_the_details_of_a_check_are_for_root_alone(
    anonymous: TestClient, client: TestClient, plugins: Plugins
) -> None:
    report = HealthReport(HealthStatus.DEGRADED, "The index is behind.", {"file": "/x/y", "lines": 3})
    type(health_check_of(plugins)).answer = staticmethod(lambda: report)
    (finding,) = client.simulate_get("/system/findings").json["findings"]
    assert finding["message"] == "The index is behind."
    assert finding["detail"] == "file: /x/y; lines: 3"
    assert "/x/y" not in anonymous.simulate_get("/system/health").text


def test_root_alone_reads_why(anonymous: TestClient, client: TestClient, plugins: Plugins) -> None:
    type(health_check_of(plugins)).answer = staticmethod(failing)
    (finding,) = client.simulate_get("/system/findings").json["findings"]
    assert (finding["code"], finding["subject"]) == ("check.failed", "changing")
    assert finding["detail"] == "changing: RuntimeError: a secret of the check"
    assert anonymous.simulate_get("/system/findings").status_code == 401
    reader = {"Authorization": "Bearer reader"}
    assert anonymous.simulate_get("/system/findings", headers=reader).status_code == 403
    listed = client.simulate_get("/system/plugins").json["plugins"]
    (shown,) = [item for item in listed if item["id"] == "test.routes"]
    assert (shown["problem_kind"], "a secret of the check" in shown["problem"]) == ("check.failed", True)


def test_what_the_database_says_of_itself_is_shown(
    anonymous: TestClient, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Finding("database.ahead", "database", "The last commit is dated ahead.", detail="In /somewhere.")
    monkeypatch.setattr(Database, "findings", lambda _self: (said,))
    health = anonymous.simulate_get("/system/health").json
    assert health["status"] == "degraded"
    assert [item["code"] for item in health["findings"]] == ["database.ahead"]
    assert "somewhere" not in str(health)
    assert "somewhere" in client.simulate_get("/system/findings").text


def test_while_the_database_opens_health_tells_and_others_wait(tmp_path: Path, plugins: Plugins) -> None:
    service = Service(plugins, select_auth_mode(plugins, "testing"), startup_wait_s=0.01)
    client = TestClient(
        create_service_app(service, PipelineSettings(auth="testing")),
        headers={"Authorization": "Bearer root"},
    )
    seen = []

    def open_database(progress: Any) -> Database:
        seen.append(client.simulate_get("/system/health"))
        progress(0, 100)
        progress(25, 100)
        seen.append(client.simulate_get("/system/health"))
        seen.append(client.simulate_get("/things/a"))
        database = Database(tmp_path / "slow.svcdb")
        initialize(database, plugins)
        return database

    service.open(open_database)
    opening, indexing, refused = seen
    assert (opening.status_code, opening.json["status"], opening.json["phase"]) == (
        503,
        "starting",
        "opening",
    )
    assert (indexing.json["phase"], indexing.json["progress"]) == ("indexing", 0.25)
    assert isinstance(indexing.json["eta_ms"], int)
    assert (refused.status_code, refused.json["code"]) == (503, "SERVICE_UNAVAILABLE")
    assert int(refused.headers["retry-after"]) >= 1
    assert client.simulate_get("/things/a").status_code == 200
    assert client.simulate_get("/system/health").json["status"] == "healthy"
    service.close()
    assert client.simulate_get("/things/a").status_code == 503


def test_a_database_that_cannot_be_opened_is_told(tmp_path: Path, plugins: Plugins) -> None:
    service = Service(plugins, select_auth_mode(plugins, "testing"), startup_wait_s=0.01)
    client = TestClient(create_service_app(service, PipelineSettings(auth="testing")))
    with pytest.raises(Exception, match="no database"):
        service.open(lambda _progress: Database(tmp_path / "missing.svcdb", create=False))
    answer = client.simulate_get("/system/health")
    assert (answer.status_code, answer.json["status"], answer.json["phase"]) == (503, "degraded", "failed")
    assert client.simulate_get("/kinds").status_code == 503


def test_plugins_are_listed_enabled_and_disabled(client: TestClient, app: Application) -> None:
    listed = client.simulate_get("/system/plugins").json["plugins"]
    assert {item["id"]: item["enabled"] for item in listed} == {"test.auth": True, "test.routes": True}
    assert client.simulate_post("/system/plugins/test.routes/disable").json["enabled"] is False
    assert client.simulate_get("/kinds").status_code == 404
    assert client.simulate_post("/system/plugins/test.routes/enable").json["enabled"] is True
    assert client.simulate_get("/kinds").status_code == 200
    unknown = client.simulate_post("/system/plugins/no.such/enable")
    assert (unknown.status_code, unknown.json["code"]) == (404, "NOT_FOUND")
    wrong = client.simulate_post("/system/plugins/test.routes/enable", json={"configuration": {"x": 1}})
    assert wrong.status_code == 400
    replaced = client.simulate_put("/system/plugins/test.routes/configuration", json={})
    assert replaced.status_code == 200


def test_everyone_reads_as_whom_they_are_known(anonymous: TestClient, client: TestClient) -> None:
    answer = client.simulate_get("/system/whoami")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json == {
        "user_id": "00000000-0000-0000-0000-000000000000",
        "name": "root",
        "is_root": True,
        "auth_mode": "testing",
        "key_id": None,
        "groups": [],
        "rules": [],
        "expires_at": None,
    }
    share = anonymous.simulate_get("/system/whoami", headers={"Authorization": "Bearer share"}).json
    assert (share["user_id"], share["rules"]) == (None, [{"/shared/*": "-r------"}])
    named = anonymous.simulate_get("/system/whoami", headers={"Authorization": "Bearer member"}).json
    assert (named["key_id"], named["groups"], named["expires_at"]) == ("key", ["a", "b"], 5)
    assert anonymous.simulate_get("/system/whoami").status_code == 401
