"""A stranger's plugin: copied, renamed, installed into a new environment, used, and absent elsewhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from svc.testing import Completed, Server, run_svc, start_server

ROOT = Path(__file__).parents[2]
RENAMED = {"svc-hello": "acme-greeter", "svc_hello": "acme_greeter", "contrib.hello": "acme.greeter"}
PLUGIN = "acme.greeter"


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds svc and the stranger's plugin."""

    python: str
    directory: Path

    def svc(self, *words: str) -> Completed:
        return run_svc(*words, cwd=self.directory, python=self.python)

    def serve(self, database: Path, *options: str):
        return start_server(database, "--auth", "disabled", *options, plugins=None, python=self.python)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    base = tmp_path_factory.mktemp("stranger")
    plugin = copy_and_rename(base / "their-own-place")
    plugins = sorted(f"plugins/{path.name}" for path in (ROOT / "plugins").iterdir() if path.is_dir())
    ours = [copy_source(name, base / name) for name in ("core", *plugins, "svc")]
    python = install(base / "venv", [*ours, plugin])
    return Environment(python, base)


def copy_and_rename(target: Path) -> Path:
    shutil.copytree(
        ROOT / "contrib" / "template",
        target,
        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build", ".pytest_cache"),
    )
    (target / "src" / "svc_hello").rename(target / "src" / "acme_greeter")
    for file in target.rglob("*"):
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            for old, new in RENAMED.items():
                text = text.replace(old, new)
            file.write_text(text, encoding="utf-8")
    return target


def copy_source(name: str, target: Path) -> Path:
    """Copies one of svc's distributions, so that building it writes nothing beside the original."""
    source = ROOT if name == "svc" else ROOT / name
    target.mkdir(parents=True)
    for part in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        if (source / part).exists():
            shutil.copy(source / part, target)
    shutil.copytree(
        source / "src", target / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    # The workspace that says where its other members are is not there any more.
    project = target / "pyproject.toml"
    project.write_text(project.read_text(encoding="utf-8").partition("[tool.uv")[0], encoding="utf-8")
    return target


def install(directory: Path, sources: list[Path]) -> str:
    """Makes a virtual environment, installs the sources and pytest into it; returns its interpreter."""
    python = str(directory / "bin" / "python")
    uv = shutil.which("uv")
    if uv is not None:
        run([uv, "venv", "--quiet", "--python", sys.executable, str(directory)])
        installer = [uv, "pip", "install", "--quiet", "--python", python]
    else:
        run([sys.executable, "-m", "venv", str(directory)])
        installer = [python, "-m", "pip", "install", "--quiet"]
    run([*installer, *map(str, sources), "pytest"])
    return python


def run(words: list[str]) -> None:
    completed = subprocess.run(words, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr


@pytest.fixture
def served(environment: Environment, tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """Servers of two databases: in the first the plugin is enabled, in the second it is not."""
    with environment.serve(tmp_path / "one.svcdb") as one, environment.serve(tmp_path / "two.svcdb") as two:
        yield one, two


def test_a_strangers_plugin_is_installed_and_not_enabled(environment, served):
    one, _ = served
    assert one.get("/hello/World").status == 404
    report = environment.svc("plugins", "list", "--json", "-D", str(one.database_path)).json()
    plugin = next(item for item in report if item["id"] == PLUGIN)
    assert plugin["distribution"] == "acme-greeter"
    assert (plugin["installed"], plugin["allowed"], plugin["enabled"]) == (True, True, False)
    assert plugin["problem"] is None


def test_enabled_for_one_database_it_is_there_at_once_and_absent_in_the_other(environment, served):
    one, two = served
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
    with environment.serve(database, "--plugins", "auth.disabled,backup,files,versions") as server:
        assert server.get("/hello/World").status == 404
        reports = server.get("/system/plugins").json()
        assert PLUGIN in str(reports)
        assert server.get("/files/").status == 200
    doctor = run_svc(
        "plugins", "doctor", "-D", str(database), "--json",
        env={"SVC_PLUGINS": "auth.disabled,backup,files,versions"}, python=environment.python,
    )  # fmt: skip
    assert doctor.exit_code == 10
    assert [item["id"] for item in doctor.json()] == [PLUGIN]


def test_its_own_tests_pass_where_it_is_installed(environment):
    completed = subprocess.run(
        [environment.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=environment.directory / "their-own-place",
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
