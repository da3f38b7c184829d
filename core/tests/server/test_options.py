"""Options come from three places, in one order; nothing unknown is passed over."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from svc.errors import UsageError
from svc.server.listening import choose_host, is_loopback
from svc.server.options import OPTIONS, resolve_settings

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
        ("cluster_tls", True, True),
        ("plugin_option", "a.b=1,2\nc.d=3", ("a.b=1,2", "c.d=3")),
        ("max_body", "5", 5),
    ],
)
def test_values_are_read_from_text_and_toml(key: str, text: object, value: object) -> None:
    assert resolve_settings({key: text}, {})[key] == value


def test_a_secret_is_not_repeated_in_an_error() -> None:
    with pytest.raises(UsageError) as caught:
        resolve_settings({"join_token": "a\0secret"}, {})
    assert "secret" not in caught.value.message


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(UsageError, match="nope"):
        resolve_settings({"nope": 1}, {})


def test_without_a_host_what_lets_everybody_in_listens_on_loopback_only() -> None:
    assert choose_host(None, loopback_only=True) == "127.0.0.1"
    assert choose_host(None, loopback_only=False) == "0.0.0.0"
    assert choose_host("192.0.2.1", loopback_only=True) == "192.0.2.1"
    assert all(is_loopback(host) for host in ("127.8.0.1", "::1", "localhost"))
    assert not any(is_loopback(host) for host in ("10.0.0.1", "x", "0.0.0.0"))


def test_the_documentation_has_every_option() -> None:
    rows = re.findall(r"^\| `(?:-\w`, `)?--([\w-]+)` \| `(SVC_\w+)` \|", OPERATING.read_text(), re.MULTILINE)
    assert rows == [(option.name, option.variable) for option in OPTIONS]
