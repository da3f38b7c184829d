"""``svc plugins``, as a person or a script runs it."""

from __future__ import annotations

import json

import pytest

from svc.database import Database
from svc.plugins import enabled_plugins, initialize, load_plugins
from svc_cli import main

SECRET = "correct horse battery staple"

DESCRIPTOR = """
import msgspec
from svc.plugins import PluginDescriptor, Secret

class Settings(msgspec.Struct):
    size: int = 3
    token: Secret = Secret()
    names: list[str] = []

PLUGIN = PluginDescriptor("test.shop", "1.0", "A plugin of a test", (1, 1), "svc_test_shop.plugin", Settings)
"""


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "shop.svcdb"
    Database(place).close()
    return str(place)


@pytest.fixture
def svc(install, capfd, monkeypatch, tmp_path):
    """Runs ``svc plugins ...`` in this process; returns exit code, standard output and standard error."""
    install("shop", descriptor=DESCRIPTOR)
    monkeypatch.setenv("SVC_PLUGINS", "test.shop")
    monkeypatch.delenv("SVC_DATABASE", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(["plugins", *words])
        out, err = capfd.readouterr()
        return ended.value.code, out, err

    return run


def settings_in(path):
    with Database(path, read_only=True) as database:
        return dict(enabled_plugins(database)["test.shop"].settings)


def test_list_shows_the_three_levels(svc, path):
    code, out, _ = svc("list", "--json", "-D", path)
    report = next(item for item in json.loads(out) if item["id"] == "test.shop")
    assert code == 0
    assert (report["installed"], report["allowed"], report["enabled"]) == (True, True, False)
    other = next(item for item in json.loads(out) if item["id"] == "auth.disabled")
    assert (other["installed"], other["allowed"], other["enabled"]) == (True, False, False)


def test_list_works_without_a_database_and_refuses_one_that_is_not_there(svc):
    code, out, _ = svc("list")
    row = next(line.split() for line in out.splitlines() if line.startswith("test.shop"))
    assert (code, row[:5]) == (0, ["test.shop", "1.0", "yes", "yes", "-"])
    assert svc("list", "-D", "nowhere.svcdb")[0] == 3


def test_enable_configure_and_disable(svc, path):
    assert svc("enable", "test.shop", "-D", path, "--set", "size=5", "--set", 'names=["a"]')[0] == 0
    assert settings_in(path) == {"size": 5, "names": ["a"]}
    assert svc("config", "test.shop", "-D", path, "--set", "size=6", "--unset", "names")[0] == 0
    assert settings_in(path) == {"size": 6}
    code, out, _ = svc("config", "test.shop", "-D", path, "--json")
    assert (code, json.loads(out)) == (0, {"size": 6, "token": "", "names": []})
    assert svc("disable", "test.shop", "-D", path)[0] == 0
    assert svc("config", "test.shop", "-D", path)[0] == 11
    assert svc("disable", "test.shop", "-D", path)[0] == 11


def test_a_secret_is_stored_and_never_printed(svc, path, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    everything = ""
    for words in (
        ("enable", "test.shop", "-D", path, "--set-from", f"token={secret}"),
        ("enable", "test.shop", "-D", path, "--set", f"token={SECRET}", "--json"),
        ("enable", "test.shop", "-D", path, "--set", f"tokne={SECRET}"),
        ("enable", "test.shop", "-D", path, "--set", f"size={SECRET}"),
        ("enable", "test.shop", "-D", path, "--set", SECRET),
        ("config", "test.shop", "-D", path),
        ("config", "test.shop", "-D", path, "--json", "--set", "size=5"),
        ("info", "test.shop", "-D", path),
        ("info", "test.shop", "-D", path, "--json"),
        ("list", "-D", path, "--json"),
        ("doctor", "-D", path),
    ):
        everything += "".join(map(str, svc(*words)))
    assert settings_in(path)["token"] == SECRET
    assert SECRET not in everything
    assert "********" in everything


@pytest.mark.parametrize(
    ("assignment", "code", "word"),
    [("size=many", 10, "size"), ("sise=1", 10, "sise"), ("size", 2, "KEY=VALUE"), ("=1", 2, "KEY=VALUE")],
)
def test_a_wrong_setting_is_named_and_nothing_changes(svc, path, assignment, code, word):
    exit_code, _, err = svc("enable", "test.shop", "-D", path, "--set", assignment)
    assert (exit_code, word in err) == (code, True)
    with Database(path, read_only=True) as database:
        assert not enabled_plugins(database)


def test_a_plugin_that_cannot_be_had_has_its_own_exit_code(svc, path):
    for plugin_id in ("test.nowhere", "auth.disabled"):
        code, _, err = svc("enable", plugin_id, "-D", path)
        assert (code, plugin_id in err) == (11, True)
    code, _, err = svc("enable", "test.nowhere", "-D", path, "--json")
    assert (code, json.loads(err)["code"]) == (11, "NOT_FOUND")


def test_info_shows_one_plugin(svc, path):
    code, out, _ = svc("info", "test.shop", "-D", path)
    assert code == 0
    assert "A plugin of a test" in out
    assert svc("info", "test.nowhere", "-D", path)[0] == 11


def test_the_doctor_is_content_when_all_is_well(svc, path):
    assert svc("enable", "test.shop", "-D", path)[0] == 0
    code, out, _ = svc("doctor", "-D", path)
    assert (code, "All is well" in out) == (0, True)


def test_the_doctor_tells_what_the_default_set_has_gained_since(svc, path, monkeypatch):
    monkeypatch.delenv("SVC_PLUGINS")
    monkeypatch.setattr("svc.plugins.loading.find_plugin_set", lambda: ((), ()))
    with Database(path) as database:
        initialize(database, load_plugins())
    monkeypatch.setattr("svc.plugins.loading.find_plugin_set", lambda: (("test.shop",), ()))
    code, out, _ = svc("doctor", "-D", path)
    assert (code, "the default set has gained: test.shop" in out) == (0, True)
    assert "test.shop" not in svc("doctor", "-D", path, "--json")[1]


def test_the_doctor_names_what_a_database_needs(svc, path, monkeypatch):
    svc("enable", "test.shop", "-D", path)
    monkeypatch.setenv("SVC_PLUGINS", "")
    code, out, _ = svc("doctor", "-D", path, "--json")
    assert code == 10
    assert [(item["source"], item["code"]) for item in json.loads(out)] == [
        ("test.shop", "plugin.not-allowed")
    ]


def test_the_doctor_names_a_broken_plugin(svc, path, install, monkeypatch):
    install("broken", "raise RuntimeError('ill')")
    monkeypatch.setenv("SVC_PLUGINS", "test.shop,test.broken")
    code, out, _ = svc("doctor", "-D", path)
    assert code == 10
    assert "test.broken: plugin.broken:" in out
    assert "ill" in out
