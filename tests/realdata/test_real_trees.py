"""Python's library and a git repository go in and come out, byte for byte, by every road."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from long_runs import Extent
from svc_blackbox.client import Client
from svc_blackbox.prepared import run_svc
from svc_blackbox.server import Server
from svc_blackbox.trees import assert_same_tree, files_below, git_repository, python_library, total_size

EXTENT = Extent("REALDATA")
FILES = EXTENT.scaled(2_000)
"""So many files of the library are stored one by one over HTTP, at most; its largest are among them."""
LARGEST = 20


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_library(tmp_path_factory.mktemp("library") / "python")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return git_repository(tmp_path_factory.mktemp("repository") / "git")


def version_of(database: Path) -> str:
    version: str = json.loads(run_svc("info", "-D", database, "--json").stdout)["version"]
    return version


def test_the_library_is_loaded_dumped_and_loaded_again(library: Path, tmp_path: Path) -> None:
    database = tmp_path / "library.svcdb"
    run_svc("load", "-D", database, library)
    run_svc("dump", "-D", database, tmp_path / "out")
    assert_same_tree(library, tmp_path / "out")
    run_svc("verify", "-D", database)
    before = database.stat().st_size
    assert before < total_size(library)
    run_svc("load", "-D", database, library)
    assert database.stat().st_size - before < 0.02 * total_size(library)
    shutil.rmtree(tmp_path / "out")


def test_a_git_repository_survives_and_is_still_one(repository: Path, tmp_path: Path) -> None:
    import subprocess

    database = tmp_path / "git.svcdb"
    run_svc("load", "-D", database, repository)
    run_svc("dump", "-D", database, tmp_path / "out.git")
    assert_same_tree(repository, tmp_path / "out.git")
    for name in ("refs/heads", "refs/tags", "objects/info"):
        assert (tmp_path / "out.git" / name).is_dir()
    check = ["git", f"--git-dir={tmp_path / 'out.git'}", "fsck", "--full"]
    assert subprocess.run(check, capture_output=True).returncode == 0


def upload(server: Server, root: Path, names: list[str]) -> None:
    """Stores files over HTTP with 16 clients at once."""

    def work(part: int) -> None:
        with Client(server.url, timeout=120) as client:
            for name in names[part::16]:
                client.store("/" + name, (root / name).read_bytes())

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))


def some_of(root: Path) -> list[str]:
    names = files_below(root)
    chosen = {*random.Random(EXTENT.seed).sample(names, min(len(names), FILES))}
    chosen |= {*sorted(names, key=lambda name: (root / name).stat().st_size)[-LARGEST:]}
    return [name for name in names if name in chosen]


@pytest.mark.timeout(300)
def test_16_clients_store_the_library_over_http(
    new_server: Callable[..., Server], library: Path, tmp_path: Path
) -> None:
    server = new_server("over-http")
    names = some_of(library)
    upload(server, library, names)
    client = server.client()
    for name in random.Random(1).sample(names, 100):
        assert client.read("/" + name) == (library / name).read_bytes()
    below = client.listing("/", limit=1000)["items"]
    assert sum(item.get("file_count", 1) for item in below if item["entry_type"] != 8) == len(names)
    run_svc("dump", "-D", server.url, tmp_path / "from-url")
    assert files_below(tmp_path / "from-url") == names
    assert server.stop() == 0
    run_svc("dump", "-D", server.database, tmp_path / "from-file")
    for out in ("from-url", "from-file"):
        expected = tmp_path / "expected"
        if not expected.exists():
            copy_regular_files(library, expected, names)
        assert_same_tree(expected, tmp_path / out)
    run_svc("verify", "-D", server.database)


def copy_regular_files(source: Path, destination: Path, names: list[str]) -> None:
    for name in names:
        (destination / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, destination / name)


def test_a_tree_is_loaded_over_http_too(
    new_server: Callable[..., Server], repository: Path, tmp_path: Path
) -> None:
    server = new_server()
    run_svc("load", "-D", server.url, repository)
    run_svc("dump", "-D", server.url, tmp_path / "out")
    assert_same_tree(repository, tmp_path / "out")


def test_the_order_of_loading_leaves_no_trace_in_the_root_hash(repository: Path, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole.svcdb", tmp_path / "parts.svcdb"
    run_svc("load", "-D", whole, "--keep-times", repository)
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    children = sorted(repository.iterdir(), reverse=True)
    random.Random(7).shuffle(children)
    for child in children:
        if child.is_dir():
            shutil.copytree(child, mirror / child.name, symlinks=True)
        else:
            shutil.copy2(child, mirror / child.name)
        run_svc("load", "-D", parts, "--keep-times", mirror)
    assert version_of(whole) == version_of(parts)
    (mirror / "HEAD").write_text("ref: refs/heads/another\n")
    run_svc("load", "-D", parts, "--keep-times", mirror)
    assert version_of(whole) != version_of(parts)
