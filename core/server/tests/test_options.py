"""Options come from three places, in one order; nothing unknown is passed over."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from svc.errors import UsageError
from svc.plugins import load_plugins
from svc.plugins.claims import RESERVED_OPTIONS
from svc_server.assembly import boot_plugins
from svc_server.listening import choose_host, is_loopback
from svc_server.options import OPTIONS, PluginValue, options_of_plugins, resolve_settings
from svc_testing import DistributionFactory

ONE, OTHER = "test.cluster", "test.later"
LATER = """
import msgspec
from svc.plugins import PluginDescriptor, StartOption

class Settings(msgspec.Struct):
    peers: str = ""
    own: str = ""

PLUGIN = PluginDescriptor(
    "test.later", "1.0", "Claims what another has", (1, 1), "svc_test_later", Settings,
    options=(StartOption("own", "Its own."), StartOption("peers", "Another's.")),
)
"""

OPERATING = Path(__file__).parents[3] / "docs" / "operating.md"


def test_the_command_line_comes_before_the_environment_before_the_file(tmp_path: Path) -> None:
    config = tmp_path / "svc.toml"
    config.write_text('port = 1\nworkers = 1\nhost = "h"\n')
    settings = resolve_settings({"port": "3"}, {"SVC_PORT": "2", "SVC_WORKERS": "2"}, str(config))
    assert (settings["port"], settings["workers"], settings["host"]) == (3, 2, "h")
    assert settings["log_format"] == "pretty"
    assert settings.given["workers"] == "SVC_WORKERS"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("plugins", "a, b,", ("a", "b")),
        ("cors_origins", ["x", "y"], ("x", "y")),
        ("access_log", "off", False),
        ("plugin_option", "a.b=1,2\nc.d=3", ("a.b=1,2", "c.d=3")),
        ("max_body", "5", 5),
        ("trusted_proxies", "127.0.0.1, 10.0.0.0/8", ("127.0.0.1/32", "10.0.0.0/8")),
        ("trusted_proxies", ["::1"], ("::1/128",)),
    ],
)
def test_values_are_read_from_text_and_toml(key: str, text: object, value: object) -> None:
    assert resolve_settings({key: text}, {})[key] == value


def test_a_trusted_proxy_that_is_no_address_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"SVC_TRUSTED_PROXIES.*'proxy\.example' is no IP address"):
        resolve_settings({}, {"SVC_TRUSTED_PROXIES": "10.0.0.1,proxy.example"})


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(UsageError, match="nope"):
        resolve_settings({"nope": 1}, {})


def test_an_empty_variable_counts_as_absent_but_for_the_database() -> None:
    assert resolve_settings({}, {"SVC_PORT": ""})["port"] == resolve_settings({}, {})["port"]
    with pytest.raises(UsageError, match="SVC_DATABASE"):
        resolve_settings({}, {"SVC_DATABASE": ""})
    assert resolve_settings({"database": "x.svcdb"}, {"SVC_DATABASE": ""})["database"] == "x.svcdb"


def test_without_a_host_what_lets_everybody_in_listens_on_loopback_only() -> None:
    assert choose_host(None, loopback_only=True) == "127.0.0.1"
    assert choose_host(None, loopback_only=False) == "0.0.0.0"
    assert choose_host("192.0.2.1", loopback_only=True) == "192.0.2.1"
    assert all(is_loopback(host) for host in ("127.8.0.1", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("10.0.0.1", "x", "0.0.0.0"))


def test_the_documentation_has_every_option() -> None:
    rows = re.findall(r"^\| `(?:-\w`, `)?--([\w-]+)` \| `(SVC_\w+)` \|", OPERATING.read_text(), re.MULTILINE)
    assert rows == [(option.name, option.variable) for option in OPTIONS]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("graceful-timeout = 5\ngraceful_timeout = 6\n", "has the key 'graceful_timeout' twice"),
        ("#" * 2**20 + "\n", "has more than 1048576 bytes"),
        ("x = " + "[" * 100_000, "TOML|nested"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "c.toml").write_text(content)
    with pytest.raises(UsageError, match=reason):
        resolve_settings({}, {}, str(tmp_path / "c.toml"))


def test_a_file_that_would_never_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (str(tmp_path / "pipe"), "/dev/zero"):
        with pytest.raises(UsageError, match="is not a regular file"):
            resolve_settings({}, {}, name)
    with pytest.raises(UsageError, match="Is a directory"):
        resolve_settings({}, {}, str(tmp_path))


# -- options of plugins -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "given", "settings"),
    [
        ("join", "https://one", {"join": "https://one"}),
        ("join_token", "k", {"token": "k"}),
        ("peers", "a, b,", {"peers": ["a", "b"]}),
        ("peers", ["a", "b"], {"peers": ["a", "b"]}),
        ("peers", '["a,b"]', {"peers": ["a,b"]}),
        ("cluster_tls", "off", {"cluster_tls": False}),
        ("cluster_tls", True, {"cluster_tls": True}),
        ("expiry", "60", {"expiry": 60}),
        ("expiry", 60, {"expiry": 60}),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_an_option_of_a_plugin_sets_its_setting(key: str, given: object, settings: object) -> None:
    found = resolve_settings({"plugins": ONE, key: given}, {})
    assert found.of_plugins == (PluginValue(ONE, f"--{key.replace('_', '-')}", settings),)  # type: ignore[arg-type]
    assert boot_plugins(found).overrides == {ONE: settings}


@pytest.mark.usefixtures("cluster")
def test_environment_and_file_give_options_of_plugins_too(tmp_path: Path) -> None:
    config = tmp_path / "svc.toml"
    config.write_text(f'plugins = ["{ONE}"]\njoin = "f"\npeers = ["f"]\ncluster-tls = false\n')
    settings = resolve_settings({"join": "c"}, {"SVC_JOIN": "e", "SVC_PEERS": "e"}, str(config))
    assert settings.of_plugins == (
        PluginValue(ONE, "--join", {"join": "c"}),
        PluginValue(ONE, "SVC_PEERS", {"peers": ["e"]}),
        PluginValue(ONE, f"cluster_tls in {config}", {"cluster_tls": False}),
    )


@pytest.mark.usefixtures("cluster")
def test_without_the_plugin_its_options_are_nowhere(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="join"):
        resolve_settings({"plugins": "", "join": "c"}, {})
    config = tmp_path / "svc.toml"
    config.write_text('plugins = []\njoin = "f"\n')
    with pytest.raises(UsageError, match="unknown key 'join'"):
        resolve_settings({}, {}, str(config))
    assert resolve_settings({"plugins": ","}, {"SVC_JOIN": "e"}).of_plugins == ()


@pytest.mark.parametrize(("key", "value"), [("join_token", "a\0secret"), ("expiry", "a secret")])
@pytest.mark.usefixtures("cluster")
def test_a_secret_is_not_repeated_in_an_error(key: str, value: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_settings({"plugins": ONE, key: value}, {})
    place = f"--{key.replace('_', '-')}"
    assert caught.value.message.startswith(place)
    assert ("secret" in caught.value.message) == (key == "expiry")


@pytest.mark.parametrize(
    "content",
    [
        '[plugin-option]\n"test.cluster.token" = "a secret"\n',
        'plugin-option = [["test.cluster.token=a secret"]]\n',
        'plugin-option = [{"test.cluster.token" = "a secret"}]\n',
    ],
)
def test_options_of_plugins_in_another_form_are_not_repeated(tmp_path: Path, content: str) -> None:
    config = tmp_path / "svc.toml"
    config.write_text(content)
    with pytest.raises(UsageError) as caught:
        resolve_settings({}, {}, str(config))
    assert caught.value.message == (
        f"plugin_option in {config}: it must be a list of texts 'id.key=value', or a text with one a line."
    )


def test_of_two_plugins_with_the_same_option_the_later_is_out_of_use(cluster: DistributionFactory) -> None:
    cluster.install(
        "svc-test-later", modules={"svc_test_later": LATER}, entry_points={OTHER: "svc_test_later:PLUGIN"}
    )
    found = {option.name: option.plugin for option in options_of_plugins([OTHER, ONE])}
    assert found == dict.fromkeys(("join", "join-token", "peers", "cluster-tls", "expiry"), ONE)
    plugins = load_plugins([OTHER, ONE])
    assert list(plugins.descriptors) == [ONE]
    (problem,) = plugins.problems
    assert (problem.plugin_id, problem.kind.value) == (OTHER, "duplicate")
    assert (
        problem.message == "The plugin 'test.later' claims the option 'peers', which belongs to the plugin "
        "'test.cluster'."
    )
    assert [option.name for option in options_of_plugins([OTHER])] == ["own", "peers"]


def test_no_plugin_can_take_an_option_of_the_server() -> None:
    assert {option.name for option in OPTIONS} | {"config", "help"} <= RESERVED_OPTIONS
