"""The kernel's commands on a database file and on the server of that file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from svc_testing import Server, start_server
from svc_testing.processes import Completed, run_svc


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("served") / "x.svcdb"
    with start_server(path, "--auth", "disabled", plugins=PLUGINS) as server:
        yield server


PLUGINS = ("files", "history", "versions", "auth.disabled")


def both(server: Server, *words: str) -> tuple[Completed, Completed]:
    of_file, of_server = (run_svc(*words, "-D", place) for place in (str(server.database_path), server.url))
    return of_file, of_server


@pytest.mark.parametrize(
    "words",
    [
        "info",
        "plugins list",
        "plugins list --json",
        "plugins info files",
        "plugins info files --json",
        "plugins config files",
        "plugins config versions --json",
        "plugins doctor",
        "plugins doctor --json",
        "api GET /system/plugins",
        "api GET /versions/snapshots",
        "api GET /versions/forks?abandoned=true",
    ],
)
def test_the_same_is_shown(served: Server, words: str) -> None:
    of_file, of_server = both(served, *words.split())
    assert of_file.exit_code == 0, of_file.stderr
    assert of_server == of_file


def test_an_operation_is_called_by_its_method_and_url(served: Server) -> None:
    for place, name in ((str(served.database_path), "of-file"), (served.url, "of-server")):
        words = ("POST", "/versions/snapshots", f"name={name}", 'metadata:={"a": 1}')
        made = run_svc("api", *words, "-D", place)
        assert (made.exit_code, made.json()["metadata"]) == (0, {"a": 1}), made.stderr
        body = served.database_path.with_suffix(".json")
        body.write_text(f'{{"name": "{name}-2"}}')
        renamed = run_svc("api", "PATCH", f"/versions/snapshots/{name}", "--input", body, "-D", place)
        assert renamed.json()["name"] == f"{name}-2", renamed.stderr
        assert run_svc("api", "DELETE", f"/versions/snapshots/{name}-2", "-D", place).json()["deleted"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("get /system/none", 3),
        ("PUT /system/plugins", 1),
        ("GET /versions/snapshots/none", 3),
        ("POST /versions/snapshots name:=1", 2),
        ("POST /versions/snapshots name:=", 2),
        ("POST /versions/snapshots name", 2),
        ("GET /versions/snapshots/%FF", 2),
        ("GET versions/snapshots", 2),
    ],
)
def test_a_call_is_refused_with_the_same_words(served: Server, words: str, code: int) -> None:
    of_file, of_server = both(served, "api", *words.split())
    assert (of_file.exit_code, of_file.stderr) == (code, of_server.stderr)
    assert of_server == of_file


def test_what_streams_needs_a_server(served: Server) -> None:
    words = ("api", "POST", "/versions/export", "-D")
    refused = run_svc(*words, str(served.database_path))
    assert (refused.exit_code, "needs a server's URL" in refused.stderr) == (2, True)


def test_a_server_tells_more_of_its_views(served: Server) -> None:
    of_file, of_server = (told.json() for told in both(served, "info", "--json"))
    assert "versions.history" in of_server.pop("views")
    assert of_file.pop("views") == {}
    assert of_server == of_file


@pytest.mark.parametrize(
    ("words", "code"), [("plugins info none", 11), ("plugins config none", 11), ("plugins disable none", 11)]
)
def test_what_is_not_there(served: Server, words: str, code: int) -> None:
    of_file, of_server = both(served, *words.split())
    assert of_file.exit_code == code, of_file.stderr
    # Over HTTP a plugin that is not there is 404, as anything else.
    assert of_server.exit_code in (3, code)
    assert "none" in of_server.stderr or "no plugin" in of_server.stderr


def test_a_plugin_is_disabled_and_enabled_through_a_server(served: Server) -> None:
    assert run_svc("plugins", "disable", "history", "-D", served.url).stdout == (
        f"Disabled history in {served.url}.\n"
    )
    assert run_svc("log", "-D", served.url).exit_code == 3
    enabled = run_svc("plugins", "enable", "history", "-D", served.url, "--json")
    assert enabled.json()["enabled"] is True
    assert run_svc("log", "-D", served.url).exit_code == 0


def test_settings_are_changed_through_a_server(served: Server) -> None:
    words = ("plugins", "config", "files", "-D", served.url)
    changed = run_svc(*words, "--set", "listing_default=7", "--set", "scan_entries=9")
    assert (changed.exit_code, "listing_default = 7" in changed.stdout) == (0, True)
    back = run_svc(*words, "--unset", "listing_default").stdout
    assert "listing_default = 1000" in back
    assert "scan_entries = 9" in back
    refused = run_svc(*words, "--set", "listing_default=0")
    assert (refused.exit_code, "'listing_default'" in refused.stderr) == (2, True)


def test_the_status_of_a_server_is_what_it_finds_wrong(served: Server) -> None:
    told = run_svc("status", "-D", served.url)
    assert told.exit_code == 0, told.stdout
    assert told.stdout.splitlines()[0].split() == ["status:", "healthy"]
    assert run_svc("status", "-D", served.url, "--json").json()["condition"] == "healthy"


@pytest.mark.parametrize(
    "words",
    [("verify",), ("start",), ("background",)],
)
def test_what_needs_a_file_says_so(served: Server, words: tuple[str, ...]) -> None:
    refused = run_svc(*words, "-D", served.url)
    assert refused.exit_code == 2
    assert "database file" in refused.stderr
