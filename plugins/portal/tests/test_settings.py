"""Settings of plugins as a form: each kind of field, what a form changes, and a refusal beside its field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
import pytest
from falcon.testing import TestClient
from svc_portal.requests import Form
from svc_portal.settings_form import change_of, fields_of
from svc_portal.testing import send_form

from svc.errors import InvalidInput
from svc.operations.system_models import DescribedSettings
from svc.plugin import PluginDescriptor, Secret
from svc.plugins.settings_schema import settings_schema
from svc_testing import load_with_testing_auth, serve_in_process, used_by


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of every kind.

    Attributes:
        count: how many of them
            there are.
        name, other: what it is called.
    """

    count: Annotated[int, msgspec.Meta(ge=1, le=9)] = 3
    share: Annotated[float, msgspec.Meta(ge=0)] | None = None
    is_on: bool = True
    how: Literal["fast", "slow"] = "fast"
    name: str = "x"
    letter: str = "Hello\nyou"
    other: str | None = None
    hosts: tuple[str, ...] = ("a", "b")
    limits: dict[str, int] = {}
    password: Secret = Secret("svc_default")


SCHEMA = settings_schema(
    PluginDescriptor("acme", "1", "One", (1, 1), implementation="acme", configuration=Settings)
)


def described(**stored: Any) -> DescribedSettings:
    return DescribedSettings(
        id="acme",
        enabled=True,
        schema=SCHEMA,
        stored=stored,
        given=["how"],
        needs_restart=False,
        needs=[],
        needed_by=[],
    )


def changed(stored: dict[str, Any], **fields: str) -> tuple[dict[str, Any], list[str]]:
    change = change_of(
        described(**stored), Form({name.replace("_", "-", 1): [text] for name, text in fields.items()})
    )
    return change.configuration, change.unset


def test_each_setting_is_a_field_of_its_kind() -> None:
    fields = {one.name: one for one in fields_of(described(count=5, password="********"))}
    assert {name: one.kind for name, one in fields.items()} == {
        "count": "number",
        "share": "number",
        "is_on": "switch",
        "how": "choice",
        "name": "text",
        "letter": "lines",
        "other": "text",
        "hosts": "list",
        "limits": "json",
        "password": "secret",
    }
    count = fields["count"]
    assert (count.value, count.default, count.least, count.most, count.is_whole) == ("5", "3", "1", "9", True)
    assert count.about == "how many of them there are."
    assert fields["other"].about == fields["name"].about == "what it is called."
    assert (fields["share"].least, fields["share"].default, fields["share"].is_whole) == ("0", "", False)
    assert (fields["how"].choices, fields["how"].is_given) == (["fast", "slow"], True)
    assert fields["hosts"].default == "a\nb"
    assert (fields["password"].value, fields["password"].default) == ("", "")
    assert fields["password"].forget == "forget-password"


def test_a_form_changes_what_differs_and_unsets_what_is_empty() -> None:
    assert changed({"count": 5, "name": "y"}, setting_count="5", setting_name="") == ({}, ["name"])
    assert changed({}, setting_is_on="false", setting_how="slow", setting_share="0.5") == (
        {"is_on": False, "how": "slow", "share": 0.5},
        [],
    )
    assert changed(
        {},
        setting_hosts=" c \r\n\r\nd",
        setting_limits='{"e": 1}',
        setting_other=" f ",
        setting_letter="a\r\nb",
    ) == (
        {"hosts": ["c", "d"], "limits": {"e": 1}, "other": " f ", "letter": "a\nb"},
        [],
    )
    with pytest.raises(InvalidInput) as refused:
        changed({}, setting_count="many")
    assert refused.value.details["field"] == "count"


def test_a_secret_stays_unless_it_is_said_anew_or_forgotten() -> None:
    stored = {"password": "********"}
    assert changed(stored, setting_password="") == ({}, [])
    assert changed(stored, setting_password="new") == ({"password": "new"}, [])
    assert changed(stored, setting_password="", forget_password="1") == ({}, ["password"])


def test_a_form_that_was_made_earlier_takes_nothing_back() -> None:
    stored = {"count": 5, "name": "second", "letter": "a\nb"}
    assert changed(
        stored,
        setting_count="7",
        was_count="5",
        setting_name="first",
        was_name="first",
        setting_letter="a\r\nc",
        was_letter="a\r\nc",
        setting_other="",
        was_other="",
    ) == ({"count": 7}, [])
    assert changed({"name": "second"}, setting_name="", was_name="first") == ({}, ["name"])
    assert {one.name for one in fields_of(described()) if one.was is None} == {"password"}


@pytest.fixture
def client(tmp_path: Any) -> Iterator[TestClient]:
    plugins = load_with_testing_auth(*used_by("portal", "metrics"))
    with serve_in_process(tmp_path / "portal.svcdb", plugins) as (app, _, _):
        yield TestClient(app)


def test_settings_are_saved_and_secrets_are_never_shown(client: TestClient) -> None:
    form = "action=save&setting-event_seconds=44&setting-scrape_token=shown-nowhere"
    assert send_form(client, "plugins/metrics", form).status_code == 303
    page = client.simulate_get("/portal/plugins/metrics").text
    assert 'value="44"' in page
    assert "It is set, and never shown" in page
    assert "shown-nowhere" not in page
    configuration = client.simulate_get("/system/plugins/metrics/configuration").json
    assert configuration["stored"] == {"event_seconds": 44, "scrape_token": "********"}
    assert send_form(client, "plugins/metrics", "action=save&setting-event_seconds=").status_code == 303
    configuration = client.simulate_get("/system/plugins/metrics/configuration").json
    assert configuration["stored"] == {"scrape_token": "********"}


def test_a_refusal_stands_beside_its_field_and_the_form_keeps_what_it_has(client: TestClient) -> None:
    answer = send_form(
        client, "plugins/metrics", "action=save&setting-event_seconds=0&setting-scrape_token=shh"
    )
    assert answer.status_code == 400
    assert 'aria-invalid="true"' in answer.text
    assert 'value="0"' in answer.text
    assert "cannot be used" in answer.text
    assert "shh" not in answer.text


def test_a_refused_form_still_knows_what_it_was_made_with(client: TestClient) -> None:
    form = "action=save&setting-event_seconds=0&was-event_seconds=7"
    answer = send_form(client, "plugins/metrics", form)
    assert answer.status_code == 400
    assert 'name="was-event_seconds" value="7"' in answer.text
    assert "was-scrape_token" not in answer.text


def test_a_plugin_is_disabled_and_enabled(client: TestClient) -> None:
    assert send_form(client, "plugins/metrics", "action=disable").status_code == 303
    assert client.simulate_get("/system/stats").status_code == 404
    assert send_form(client, "plugins/metrics", "action=enable&setting-event_seconds=9").status_code == 303
    assert client.simulate_get("/system/stats").status_code == 200
    stored = client.simulate_get("/system/plugins/metrics/configuration").json["stored"]
    assert stored == {"event_seconds": 9}
    assert client.simulate_get("/portal/plugins/nowhere").status_code == 404
