"""The kernel, the worker and the server name no plugin: not its id, package, headers, options or paths."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

import pytest

from svc.plugins import BackupRule, PluginDescriptor, SyncRule, SystemPath, load_plugins
from svc.plugins.claims import Claims

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for package in (
        "kernel/src/svc",
        "cli/src/svc_cli",
        "maintenance/src/svc_maintenance",
        "worker/src/svc_worker",
        "server/src/svc_server",
    )
    for path in sorted((ROOT / "core" / package).rglob("*.py"))
    # What 'svc plugins new' copies is the kernel's, and so are the names that it replaces.
    if path.name != "plugin_template.py" and "template" not in path.parts
]
DISTRIBUTIONS = sorted([*ROOT.glob("plugins/*/setup.cfg"), *ROOT.glob("contrib/*/setup.cfg")])
CLUSTER_PAGE = ROOT / "docs" / "plugins" / "sync.md"
BACKUP_PAGE = ROOT / "docs" / "plugins" / "backup.md"

WORDS = {
    ("information.py", "files"): "a number in a report",
    ("info_command.py", "files"): "a number in a report",
    ("verify_command.py", "files"): "a number in a report",
    ("access.py", "query"): "the query of a URL",
    ("declaration.py", "query"): "the query of a URL",
    ("openapi.py", "query"): "the query of a URL",
    ("values.py", "query"): "the query of a URL",
    ("any_operation.py", "query"): "the query of a URL",
    ("operations.py", "query"): "the query of a URL",
    ("plugins_command.py", "files"): "files that hold settings",
    ("view_environment.py", "files"): "the directory of a view that keeps files",
    ("verification.py", "versions"): "what a progress bar counts",
    ("repair.py", "versions"): "what a progress bar counts",
    ("naming.py", "snapshots"): "how a version is named",
    ("naming.py", "forks"): "how a version is named",
    ("version_access.py", "snapshots"): "how a version is named",
    ("version_access.py", "forks"): "how a version is named",
}
"""Words that are an id or a path of a plugin, and mean something else in a module of the kernel."""


def configuration(setup: Path) -> ConfigParser:
    config = ConfigParser()
    config.read(setup)
    return config


def descriptors() -> Iterator[PluginDescriptor]:
    for setup in DISTRIBUTIONS:
        # What stands in contrib need not be installed.
        sys.path.append(str(setup.parent / "src"))
        for line in configuration(setup)["options.entry_points"]["svc.plugins"].strip().splitlines():
            module, _, attribute = line.partition("=")[2].strip().partition(":")
            yield getattr(import_module(module), attribute)


DESCRIPTORS = list(descriptors())
IDS = {descriptor.id for descriptor in DESCRIPTORS}
PACKAGES = {descriptor.package for descriptor in DESCRIPTORS}
NAMES = {configuration(setup)["metadata"]["name"] for setup in DISTRIBUTIONS}
HEADERS = {header.lower() for one in DESCRIPTORS for header in one.response_headers}
OPTIONS = {option.name for one in DESCRIPTORS for option in one.options}
PATHS = {owned for one in DESCRIPTORS for owned in one.system_paths}


@functools.cache
def literals(path: Path) -> list[tuple[str, int]]:
    """The texts in a module that are no docstrings, also those within f-strings."""
    tree = ast.parse(path.read_text())
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        (node.value, node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]


def test_there_is_something_to_look_for() -> None:
    assert {"files", "versions", "backup", "auth.disabled", "contrib.hello"} <= IDS
    assert len(SOURCES) > 100
    assert {owned.path for owned in PATHS} >= {"versions", "refs/snapshots", "files"}


def test_no_source_names_a_package_or_distribution_of_a_plugin() -> None:
    form = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, sorted(PACKAGES | NAMES)))})(?![\w-])")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in SOURCES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (match := form.search(line))
    ]
    assert found == []


def test_no_source_names_the_id_of_a_plugin_or_a_path_that_it_owns() -> None:
    dotted = re.compile(
        rf"(?<![\w.])({'|'.join(re.escape(one) for one in sorted(IDS) if '.' in one)})(?![\w.])"
    )
    words = {one for one in IDS if "." not in one}
    # Of a kind of refs, its name; of another path, each of its names but for "*".
    words |= {name for owned in PATHS for name in owned.parts if name not in ("refs", "*")}
    texts = words | {owned.path for owned in PATHS} | OPTIONS
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text!r}"
        for path in SOURCES
        for text, line in literals(path)
        if (text in texts or dotted.search(text)) and (path.name, text) not in WORDS
    ]
    assert found == []


def test_no_source_names_a_header_of_a_plugin() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text!r}"
        for path in SOURCES
        for text, line in literals(path)
        if HEADERS.intersection(re.split(r"[\s,]+", text.lower()))
    ]
    assert found == []


def test_every_word_that_is_let_pass_is_still_there() -> None:
    present = {(path.name, text) for path in SOURCES for text, _ in literals(path)}
    assert set(WORDS) <= present


def test_the_plugins_of_this_repository_claim_nothing_twice() -> None:
    claims = Claims()
    for descriptor in DESCRIPTORS:
        claims.add(descriptor)


@pytest.mark.parametrize("descriptor", DESCRIPTORS, ids=lambda one: one.id)
def test_a_plugin_declares_the_codes_of_its_errors_and_the_documentation_has_them(
    descriptor: PluginDescriptor,
) -> None:
    package = descriptor.package
    (folder,) = [
        setup.parent / "src" / package for setup in DISTRIBUTIONS if (setup.parent / "src" / package).exists()
    ]
    form = re.compile(r'^    code(?:: ClassVar\[str\])? = "(\w+)"$', re.MULTILINE)
    used = {code for path in folder.rglob("*.py") for code in form.findall(path.read_text())}
    assert used == set(descriptor.error_codes)
    page = (ROOT / "docs" / "http" / "index.md").read_text()
    assert all(re.search(rf"^\| \d+ \| `{code}`.*\|$", page, re.MULTILINE) for code in used)


RULES = {
    BackupRule.INCLUDE: "in a privileged backup",
    BackupRule.SECRET: "never",
    BackupRule.SKIP: "not in a backup",
}


def test_the_documentation_says_what_a_backup_does_with_every_path() -> None:
    kernel = [
        SystemPath("plugin-set", BackupRule.INCLUDE),
        SystemPath("plugins", BackupRule.INCLUDE),
        SystemPath("collection", BackupRule.SKIP),
        SystemPath("collection-plan", BackupRule.SKIP),
        SystemPath("packed-commits", BackupRule.SKIP),
    ]
    rows = [(f"/{owned.path}", "svc", RULES[owned.backup]) for owned in kernel]
    for descriptor in sorted(DESCRIPTORS, key=lambda one: one.id):
        rows += [(f"/{owned.path}", descriptor.id, RULES[owned.backup]) for owned in descriptor.system_paths]
    stated = re.findall(
        r"^\| `(/[^`]*)` \| `?([\w.-]+)`? \| ([^|]*) \|", BACKUP_PAGE.read_text(), re.MULTILINE
    )
    assert stated == rows


CLUSTER_RULES = {SyncRule.LAST_WRITER: "the later counts", SyncRule.REMOVAL_WINS: "a removal counts"}


def test_the_documentation_says_what_a_cluster_exchanges() -> None:
    rows = [("/plugins", "svc", CLUSTER_RULES[SyncRule.LAST_WRITER])]
    for descriptor in sorted(DESCRIPTORS, key=lambda one: one.id):
        rows += [
            (f"/{owned.path}", descriptor.id, CLUSTER_RULES[owned.sync])
            for owned in descriptor.system_paths
            if owned.sync in CLUSTER_RULES
        ]
    stated = re.findall(
        r"^\| `(/[^`]*)` \| `?([\w.-]+)`? \| ([^|]*) \|", CLUSTER_PAGE.read_text(), re.MULTILINE
    )
    assert stated == rows


INSTALLED = [one for one in DESCRIPTORS if one.id in load_plugins(()).installed]


@pytest.mark.parametrize("descriptor", INSTALLED, ids=lambda one: one.id)
def test_a_plugin_declares_the_names_of_its_auth_modes(descriptor: PluginDescriptor) -> None:
    plugins = load_plugins((*descriptor.needs, descriptor.id))
    registered = {item.name for item in plugins.registries.auth_modes if item.plugin_id == descriptor.id}
    assert registered == set(descriptor.auth_modes)
