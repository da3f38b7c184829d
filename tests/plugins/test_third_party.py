"""Strangers' plugins in a new environment: a copy of the template, a driver, and extensions of its family."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from svc_default import PLUGINS
from svc_testing import Completed, run_svc, start_server
from svc_testing.hook_pages import files_of_page

from .installation import ROOT, Installation, Wheelhouse, members  # noqa: TID252

TEMPLATE = ROOT / "contrib" / "template"
PAGE = ROOT / "docs" / "plugins" / "driving-a-family.md"
PLUGIN = "acme.greeter"
# All distributions are built and installed, which takes minutes on a machine with other work.
pytestmark = pytest.mark.timeout(400)
DEFAULT_SET = ",".join(PLUGINS)


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds svc and the strangers' plugins."""

    python: str
    directory: Path

    def svc(self, *words: str) -> Completed:
        return run_svc(*words, cwd=self.directory, python=self.python)

    def serve(self, database: Path, *options: str):
        return start_server(database, "--auth", "disabled", *options, plugins=None, python=self.python)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, wheelhouse: Wheelhouse) -> Environment:
    base = tmp_path_factory.mktemp("stranger")
    installed = Installation(base / "venv")
    installed.add(*wheelhouse.wheels(*members()), "pytest")
    environment = Environment(installed.python, base)
    made = environment.svc("plugins", "new", PLUGIN, "their-own-place")
    assert made.exit_code == 0, made.stderr
    installed.add(*wheelhouse.build(base / "their-own-place", *write_family(base)))
    return environment


def write_family(base: Path) -> list[Path]:
    """Writes the driver and the extension of the documentation, and another extension, which is broken."""
    shown = files_of_page(PAGE)
    broken = {
        name.replace("acme_loud", "acme_broken"): text.replace("acme_loud", "acme_broken")
        .replace("acme.loud", "acme.broken")
        .replace("class Loud(GreetingStyle)", "class Loud")
        for name, text in shown.items()
        if name.startswith("acme_loud/")
    }
    assert len(broken) == 2
    assert "class Loud:" in broken["acme_broken/style.py"]
    return [
        write_distribution(base / "svc-greeter", "greeter", "svc_greeter", shown),
        write_distribution(base / "acme-loud", "acme.loud", "acme_loud", shown),
        write_distribution(base / "acme-broken", "acme.broken", "acme_broken", broken),
    ]


def write_distribution(target: Path, plugin_id: str, package: str, files: dict[str, str]) -> Path:
    names = {"svc-hello": target.name, "svc_hello": package, "contrib.hello": plugin_id}
    target.mkdir()
    for name in ("setup.cfg", "pyproject.toml"):
        text = (TEMPLATE / name).read_text(encoding="utf-8")
        for old, new in names.items():
            text = text.replace(old, new)
        (target / name).write_text(text, encoding="utf-8")
    for name, text in {f"{package}/__init__.py": '"""A sample."""\n', **files}.items():
        if name.startswith(f"{package}/"):
            place = target / "src" / name
        elif name.startswith("tests/"):
            place = target / name
        else:
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return target


def test_a_strangers_plugin_is_there_at_once_where_it_is_enabled_and_absent_elsewhere(environment, tmp_path):
    with environment.serve(tmp_path / "one.svcdb") as one, environment.serve(tmp_path / "two.svcdb") as two:
        assert one.get("/hello/World").status == 404
        report = environment.svc("plugins", "list", "--json", "-D", str(one.database_path)).json()
        plugin = next(item for item in report if item["id"] == PLUGIN)
        assert plugin["distribution"] == "acme-greeter"
        assert (plugin["installed"], plugin["allowed"], plugin["enabled"]) == (True, True, False)
        assert plugin["problem"] is None

        enabled = environment.svc(
            "plugins", "enable", PLUGIN, "-D", str(one.database_path), "--set", "greeting=Ahoy"
        )
        assert enabled.exit_code == 0, enabled.stderr

        answer = one.get("/hello/World")
        assert (answer.status, answer.json()["greeting"]) == (200, "Ahoy, World!")
        assert two.get("/hello/World").status == 404

        there = environment.svc("hello", "World", "-D", str(one.database_path))
        assert (there.exit_code, there.stdout) == (0, "Ahoy, World!\n")
        absent = environment.svc("hello", "World", "-D", str(two.database_path))
        assert absent.exit_code == 11
        assert PLUGIN in absent.stderr


def test_it_survives_a_restart_and_goes_when_it_is_disabled(environment, tmp_path):
    database = tmp_path / "restart.svcdb"
    with environment.serve(database) as server:
        assert server.request("POST", f"/system/plugins/{PLUGIN}/enable").status == 200
        assert server.get("/hello/World").json()["greeting"] == "Hello, World!"
    with environment.serve(database) as server:
        assert server.get("/hello/World").status == 200
        assert environment.svc("plugins", "disable", PLUGIN, "-D", str(database)).exit_code == 0
        assert server.get("/hello/World").status == 404


def test_a_server_without_external_plugins_says_what_the_database_needs(environment, tmp_path):
    database = tmp_path / "needs.svcdb"
    with environment.serve(database) as server:
        assert server.request("POST", f"/system/plugins/{PLUGIN}/enable").status == 200
    with environment.serve(database, "--plugins", DEFAULT_SET) as server:
        assert server.get("/hello/World").status == 404
        reports = server.get("/system/plugins").json()
        assert PLUGIN in str(reports)
        assert server.get("/files/").status == 200
        health = server.get("/system/health").json()
        assert [(item["code"], item["source"]) for item in health["findings"]] == [
            ("plugin.not-allowed", PLUGIN)
        ]
    doctor = run_svc(
        "plugins", "doctor", "-D", str(database), "--json",
        env={"SVC_PLUGINS": DEFAULT_SET}, python=environment.python,
    )  # fmt: skip
    assert doctor.exit_code == 10
    assert [(item["code"], item["source"]) for item in doctor.json()] == [("plugin.not-allowed", PLUGIN)]


def test_a_driver_serves_what_strangers_add_and_a_broken_extension_is_out_alone(environment, tmp_path):
    database = tmp_path / "styles.svcdb"
    with environment.serve(database) as server:
        assert server.get("/greet/loud/Ann").status == 404
        for plugin in ("greeter", "acme.loud"):
            assert server.request("POST", f"/system/plugins/{plugin}/enable").status == 200
        assert server.get("/greet/loud/Ann").json() == {"greeting": "HELLO, ANN!"}
        words = ("plugins", "config", "acme.loud", "--set", "marks=3", "-D", str(database))
        assert environment.svc(*words).exit_code == 0
        assert server.get("/greet/loud/Ann").json() == {"greeting": "HELLO, ANN!!!"}

        assert server.request("POST", "/system/plugins/acme.broken/enable").status >= 400
        health = server.get("/system/health").json()
        assert [(item["code"], item["source"]) for item in health["findings"]] == [
            ("plugin.broken", "acme.broken")
        ]
        reports = {item["id"]: item for item in server.get("/system/plugins").json()["plugins"]}
        assert "not a greeting style" in reports["acme.broken"]["problem"]
        assert reports["acme.loud"]["adds"] == {"greeting_styles": ["loud"]}
        assert reports["greeter"]["drives"] == ["greeting_styles"]

        assert server.request("POST", "/system/plugins/acme.loud/disable").status == 200
        refused = server.get("/greet/loud/Ann")
        assert (refused.status, refused.json()["styles"]) == (400, [])
        assert server.request("POST", "/system/plugins/greeter/disable").status == 200
        assert server.get("/greet/loud/Ann").status == 404
        assert server.get("/files/").status == 200


def test_an_extension_rests_where_its_driver_is_not_allowed(environment):
    told = {
        allowed: run_svc(
            "plugins", "info", "acme.loud", "--json",
            cwd=environment.directory, env={"SVC_PLUGINS": allowed}, python=environment.python,
        ).json()
        for allowed in ("acme.loud", "acme.loud,greeter")
    }  # fmt: skip
    rests = [(report["problem"], report["rests"], report["adds"]) for report in told.values()]
    assert rests == [
        (None, ["greeter:greeting_styles"], {}),
        (None, [], {"greeting_styles": ["loud"]}),
    ]


def test_their_own_tests_pass_where_they_are_installed(environment):
    completed = subprocess.run(
        [environment.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib",
         "their-own-place/tests", "acme-loud/tests"],
        cwd=environment.directory,
        capture_output=True,
        text=True,
        timeout=180,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stdout + completed.stderr
