"""Settings: strict types, errors that name the field, and secrets that nobody sees."""

from __future__ import annotations

import enum
from typing import Literal

import msgspec
import pytest

from svc.errors import PluginError, UsageError
from svc.plugins import (
    PluginDescriptor,
    Secret,
    load_plugins,
    parse_assignments,
    parse_options,
    settings_as_shown,
)
from svc.plugins.configuration import merge_settings, settings_as_stored, validate_settings, without_settings

SECRET = "correct horse battery staple"


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Mail(msgspec.Struct):
    host: str = "localhost"
    port: int = 25
    password: Secret = Secret()


class Settings(msgspec.Struct, rename="kebab"):
    greeting: str = "Hello"
    max_names: int = 10
    loud: bool = False
    ratio: float = 0.5
    tags: list[str] = []
    token: Secret | None = None
    tokens: list[Secret] = []
    mail: Mail = msgspec.field(default_factory=Mail)
    mails: dict[str, Mail] = {}
    level: Level = Level.LOW
    mode: Literal["a", "b"] = "a"
    note: str | None = None


DESCRIPTOR = PluginDescriptor(
    id="test.settings",
    version="1",
    summary="Settings",
    api=(1, 1),
    implementation="m",
    configuration=Settings,
)


def test_defaults_are_filled_in():
    assert validate_settings(DESCRIPTOR, {}) == Settings()


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"max-names": "10"}, "max-names"),
        ({"max-names": True}, "max-names"),
        ({"max-names": 1.5}, "max-names"),
        ({"loud": "yes"}, "loud"),
        ({"greeting": None}, "greeting"),
        ({"tags": "a"}, "tags"),
        ({"mail": {"port": "25"}}, "mail.port"),
        ({"mail": {"pasword": SECRET}}, "mail.pasword"),
        ({"mail": {"password": 5}}, "mail.password"),
        ({"mails": {"x": {"prot": 1}}}, "mails.x.prot"),
        ({"max_names": 3}, "max_names"),
        ({"nothing": SECRET}, "nothing"),
        ({"level": SECRET}, "level"),
        ({"mode": SECRET}, "mode"),
    ],
)
def test_a_wrong_setting_is_named_and_its_value_is_not_shown(settings, field):
    with pytest.raises(PluginError) as caught:
        validate_settings(DESCRIPTOR, settings)
    assert caught.value.details["field"] == field
    assert repr(field) in caught.value.message
    assert SECRET not in str(caught.value.as_body())


def test_a_required_setting_that_is_missing_is_named():
    class Strict(msgspec.Struct):
        address: str

    descriptor = PluginDescriptor("test.strict", "1", "s", (1, 1), "m", Strict)
    with pytest.raises(PluginError) as caught:
        validate_settings(descriptor, {})
    assert caught.value.details["field"] == "address"


def test_a_plugin_without_settings_takes_none():
    descriptor = PluginDescriptor("test.plain", "1", "s", (1, 1), "m")
    assert validate_settings(descriptor, {}) is None
    with pytest.raises(PluginError):
        validate_settings(descriptor, {"x": 1})


def test_secrets_are_stored_and_never_shown():
    configuration = validate_settings(
        DESCRIPTOR, {"token": SECRET, "tokens": [SECRET], "mail": {"password": SECRET}}
    )
    assert configuration.token.reveal() == SECRET
    assert settings_as_stored(configuration)["mail"]["password"] == SECRET
    for shown in (str(settings_as_shown(configuration)), repr(configuration), f"{configuration.token}"):
        assert SECRET not in shown
    assert settings_as_shown(configuration)["tokens"] == ["********"]
    assert settings_as_shown(Settings())["mail"]["password"] == ""


def test_stored_settings_come_back_the_same():
    configuration = validate_settings(
        DESCRIPTOR, {"token": SECRET, "level": "high", "mails": {"a": {"port": 1}}}
    )
    assert validate_settings(DESCRIPTOR, settings_as_stored(configuration)) == configuration


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("greeting", "42", {"greeting": "42"}),
        ("greeting", "true", {"greeting": "true"}),
        ("max-names", "42", {"max-names": 42}),
        ("loud", "true", {"loud": True}),
        ("ratio", "0.25", {"ratio": 0.25}),
        ("tags", '["a", "b"]', {"tags": ["a", "b"]}),
        ("token", "123", {"token": "123"}),
        ("token", "null", {"token": None}),
        ("note", "null", {"note": None}),
        ("level", "high", {"level": "high"}),
        ("mode", "b", {"mode": "b"}),
        ("mail.port", "26", {"mail": {"port": 26}}),
        ("mail.password", "{", {"mail": {"password": "{"}}),
        ("mails.x.port", "1", {"mails": {"x": {"port": 1}}}),
        ("greeting", "a=b", {"greeting": "a=b"}),
    ],
)
def test_typed_text_is_read_by_the_type_of_its_field(name, text, expected):
    settings = parse_assignments(DESCRIPTOR, [(name, text)])
    assert settings == expected
    validate_settings(DESCRIPTOR, settings)


@pytest.mark.parametrize("name", ["nothing", "mail.nothing", "greeting.deeper", "", "."])
def test_typed_text_for_an_unknown_field_is_refused(name):
    with pytest.raises(PluginError):
        parse_assignments(DESCRIPTOR, [(name, "1")])


def test_several_texts_are_merged_and_the_last_one_counts():
    pairs = [("mail.port", "1"), ("mail.host", "h"), ("loud", "true"), ("loud", "false")]
    assert parse_assignments(DESCRIPTOR, pairs) == {"mail": {"port": 1, "host": "h"}, "loud": False}


def test_merging_and_taking_away_leave_the_rest():
    base = {"a": 1, "b": {"c": 2, "d": 3}}
    assert merge_settings(base, {"b": {"c": 9}}) == {"a": 1, "b": {"c": 9, "d": 3}}
    assert without_settings(base, ["b.c", "nothing", "a"]) == {"b": {"d": 3}}
    assert base == {"a": 1, "b": {"c": 2, "d": 3}}


def test_options_of_a_deployment_find_the_plugin_with_the_longest_id(install):
    descriptor = """
import msgspec
from svc.plugins import PluginDescriptor
class Settings(msgspec.Struct):
    port: int = 1
PLUGIN = PluginDescriptor({id!r}, "1", "s", (1, 1), "{package}.plugin", Settings)
"""
    short = install("mail", descriptor=descriptor.format(id="test.mail", package="svc_test_mail"))
    long = install(
        "mailin",
        descriptor=descriptor.format(id="test.mail.in", package="svc_test_mailin"),
        plugin_id="test.mail.in",
    )
    plugins = load_plugins([short, long])
    assert plugins.problems == ()
    changed = parse_options(plugins, ["test.mail.in.port=7", "test.mail.port=8"])
    assert changed.overrides == {"test.mail.in": {"port": 7}, "test.mail": {"port": 8}}
    assert plugins.overrides == {}
    for text in ("test.mail.port", "test.nowhere.port=1", "=", "test.mail=1"):
        with pytest.raises(UsageError):
            parse_options(plugins, [text])
    for text in ("test.mail.prot=1", "test.mail.port=high", "test.mail.port=1.5", "test.mail.port.x=1"):
        with pytest.raises(PluginError, match=r"^--plugin-option: The setting 'p\w+t"):
            parse_options(plugins, [text])


ROOMY = """
from typing import Annotated
import msgspec
from svc.plugins import PluginDescriptor, Secret

class Mail(msgspec.Struct):
    host: str
    port: Annotated[int, msgspec.Meta(ge=1)] = 1

class Settings(msgspec.Struct):
    mail: Mail
    mails: Annotated[dict[str, Mail], msgspec.Meta(max_length=3)] = {}
    token: Secret = Secret()
    parts: dict = {}

PLUGIN = PluginDescriptor("test.roomy", "1", "s", (1, 1), "svc_test_roomy.plugin", Settings)
"""


def test_an_option_is_checked_by_the_type_of_its_own_field_and_no_other(install):
    plugins = load_plugins([install("roomy", descriptor=ROOMY)])
    good = ["mail.port=2", "mails.my host.port=3", 'mails={"a": {"host": "b"}}', "parts.any=4"]
    changed = parse_options(plugins, [f"test.roomy.{text}" for text in good])
    assert changed.overrides["test.roomy"] == {
        "mail": {"port": 2},
        "mails": {"my host": {"port": 3}, "a": {"host": "b"}},
        "parts": {"any": 4},
    }
    for text in (
        "mail.port=0",
        "mails.x.port=0",
        "mail={}",
        'mails={"a": {"host": "b", "prot": 1}}',
        "mail=x",
    ):
        with pytest.raises(PluginError, match=f"'{text.partition('=')[0]}"):
            parse_options(plugins, [f"test.roomy.{text}"])


@pytest.mark.parametrize(
    "text",
    [
        "test.roomy.token:s3cret",
        "test.roomy.token s3cret",
        "test.roomy.token:s3cret==",
        '{"test.roomy.token": "s3cret"}',
        '{"test.roomy.token": "s3cret="}',
        "s3cret",
        "s3cret=x",
    ],
)
def test_an_option_that_is_none_is_not_repeated(install, text):
    plugins = load_plugins([install("roomy", descriptor=ROOMY)])
    with pytest.raises((UsageError, PluginError), match=r"^SVC_PLUGIN_OPTION: .*'id\.key=value'") as caught:
        parse_options(plugins, [text], place="SVC_PLUGIN_OPTION")
    assert "s3cret" not in str(caught.value)
