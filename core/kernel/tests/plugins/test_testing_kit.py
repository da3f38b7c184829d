"""The test kit itself: its auth mode, which is nowhere but in tests, and the fixtures that bring it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from falcon.testing import TestClient

from svc.database import Database
from svc.errors import PluginMissing
from svc.pipeline import PipelineSettings, create_app
from svc.plugins import (
    ROOT_IDENTITY,
    AuthContext,
    AuthMode,
    Credentials,
    Identity,
    Plugins,
    enabled_plugins,
    load_plugins,
    select_auth_mode,
)
from svc_cli.processes.state_file import read_report
from svc_testing import (
    AuthModeContract,
    DistributionFactory,
    Server,
    TestingAuthMode,
    load_with_testing_auth,
    run_svc,
    start_server,
)

ANN = Identity("00000000-0000-0000-0000-000000000001", "ann")


class TestWithTokens(AuthModeContract):
    @pytest.fixture
    def mode(self) -> AuthMode:
        return TestingAuthMode(None, {"anns-token": ANN})

    @pytest.fixture
    def accepted(self) -> Sequence[Credentials]:
        return [Credentials(scheme="bearer", value="anns-token"), Credentials(query_token="anns-token")]

    @pytest.fixture
    def refused(self) -> Sequence[Credentials]:
        return [Credentials(scheme="bearer", value="another"), Credentials(query_token="another")]


class TestWithoutTokens(AuthModeContract):
    @pytest.fixture
    def mode(self) -> AuthMode:
        return TestingAuthMode()

    @pytest.fixture
    def accepted(self) -> Sequence[Credentials]:
        return [Credentials(), Credentials(scheme="bearer", value="whatever")]

    @pytest.fixture
    def refused(self) -> Sequence[Credentials]:
        return []


def test_each_application_has_a_mode_of_its_own(database: Database) -> None:
    registered = TestingAuthMode()
    one, two = (registered.bind(AuthContext(database, "", None)) for _ in range(2))
    one.identity = ANN
    judged = [mode.authenticate(Credentials()) for mode in (registered, one, two)]
    assert [identity and identity.name for identity in judged] == ["root", "ann", "root"]


def test_the_mode_is_installed_only_where_a_test_installs_it(database_path: Path) -> None:
    loaded = load_with_testing_auth()
    assert select_auth_mode(loaded, "testing").plugin_id == "auth.testing"
    plugins = load_plugins()
    assert "auth.testing" not in plugins.installed
    with pytest.raises(PluginMissing):
        select_auth_mode(plugins, "testing")
    words = ("start", "-D", database_path, "--port", "0", "--auth", "testing")
    refused = run_svc(*words, env={"SVC_PLUGINS": ""})
    assert refused.exit_code == 11
    assert not database_path.exists()


def test_a_plugin_with_a_problem_fails_the_test_that_loads_it() -> None:
    with pytest.raises(AssertionError, match=r"test\.absent"):
        load_with_testing_auth("test.absent")


class TestFixtures:
    @pytest.fixture
    def svc_plugins(self) -> Sequence[str]:
        return ()

    def test_the_database_has_the_plugins_and_the_mode(self, database: Database) -> None:
        assert set(enabled_plugins(database)) == {"auth.testing"}

    def test_a_server_takes_everyone_for_root(self, server, run_svc) -> None:
        assert server.get("/system/plugins").status == 200
        server.stop()
        assert run_svc("plugins", "doctor", "-D", server.database_path).exit_code == 0

    def test_a_database_that_is_open_and_a_server_share_a_file(self, database: Database, server) -> None:
        assert server.get("/system/plugins").status == 200

    def test_an_application_of_this_process_is_asked_by_whom_the_test_says(
        self, database: Database, loaded_plugins: Plugins
    ) -> None:
        app = create_app(database, loaded_plugins, settings=PipelineSettings(auth="testing"))
        mode = app.service.auth_mode
        assert isinstance(mode, TestingAuthMode)
        statuses = []
        for mode.identity in (ROOT_IDENTITY, ANN, None):
            statuses.append(TestClient(app).simulate_get("/system/plugins").status_code)
        assert statuses == [200, 403, 401]

    def test_another_mode_is_chosen_by_name(self, database_path: Path) -> None:
        server = start_server(database_path, "--auth", "disabled")
        with pytest.raises(RuntimeError, match=r"not allowed here: .*auth\.disabled"), server:
            pass

    def test_variables_of_a_test_come_first(self, database_path, run_svc) -> None:
        known = run_svc("plugins", "list", "--json").json()
        others = run_svc("plugins", "list", "--json", env={"SVC_PLUGINS": ""}).json()
        allowed = [
            [item["allowed"] for item in items if item["id"] == "auth.testing"] for items in (known, others)
        ]
        assert allowed == [[True], [False]]


def test_what_other_processes_see_is_not_installed_in_this_one(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/inherited")
    distributions = DistributionFactory(tmp_path, in_process=False)
    place = distributions.install(
        "svc-test-elsewhere", modules={"svc_test_elsewhere": ""}, entry_points={"test.elsewhere": "x:y"}
    )
    assert "test.elsewhere" not in load_plugins(()).installed
    assert distributions.environment() == {"PYTHONPATH": f"{place}:/inherited"}
    assert distributions.environment({"PYTHONPATH": "/given", "A": "b"}) == {
        "PYTHONPATH": f"{place}:/given",
        "A": "b",
    }
    distributions.close()


def test_root_is_who_asks_without_credentials() -> None:
    identity = TestingAuthMode().authenticate(Credentials())
    assert identity is not None
    assert (identity.user_id, identity.is_root) == (ROOT_IDENTITY.user_id, True)


class TestInTheBackground:
    """``server`` has a background process where it is asked for."""

    @pytest.fixture
    def svc_background(self) -> bool:
        return True

    def test_there_is_one(self, server: Server) -> None:
        deadline = time.monotonic() + 30
        while not read_report(Path(f"{server.database_path}.d")):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_there_is_none_without(server: Server) -> None:
    assert server.get("/system/health").status == 200
    assert read_report(Path(f"{server.database_path}.d")) is None
