"""Runs commands as the shell would, in this process, and a real server for those that need one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from svc_cli import main
from svc_testing import start_server


@dataclass(frozen=True)
class Result:
    """What a command left: exit code, standard output, standard error."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Result]


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs ``svc`` with words; ``check`` is the exit code that is expected."""
    for name in ("SVC_DATABASE", "SVC_TOKEN", "SVC_TLS_CA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SVC_PLUGINS", "files")

    def run_command(*words: object, check: int = 0, stdin: bytes | None = None) -> Result:
        reading, writing = os.pipe()
        os.write(writing, stdin or b"")
        os.close(writing)
        capfdbinary.readouterr()
        with os.fdopen(reading) as given, monkeypatch.context() as patched:
            patched.setattr(sys, "stdin", given)
            with pytest.raises(SystemExit) as ended:
                main([str(word) for word in words])
        out, err = capfdbinary.readouterr()
        code = ended.value.code
        assert code == check, f"svc {words} exited with {code}: {err.decode()}"
        return Result(int(code or 0), out, err.decode())

    return run_command


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server of its own, on a database of its own."""
    with start_server(tmp_path_factory.mktemp("server") / "served.svcdb", plugins=("files",)) as running:
        assert running.get("/system/health").json()["service"] == "svc"
        yield running.url


@pytest.fixture(params=["file", "server"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A ``--database`` value: a new file, and a server; paths below /<test's name> are the test's own."""
    if request.param == "file":
        return str(tmp_path / "data.svcdb")
    url: str = request.getfixturevalue("server")
    return url


@pytest.fixture
def top(request: pytest.FixtureRequest) -> str:
    """A directory of the database that no other test uses."""
    name = "".join(character if character.isalnum() else "-" for character in request.node.name)
    return f"/{name}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A directory with one of everything."""
    root = tmp_path / "tree"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "small.txt").write_text("hello\n")
    (root / "nothing").write_bytes(b"")
    (root / "large.bin").write_bytes(os.urandom(300_000))
    (root / "deep" / "caf\u00e9 & 50%?#.json").write_text("{}")
    (root / "deep" / "er" / "data").write_bytes(bytes(range(256)) * 40)
    (root / "deep" / "up").symlink_to("../small.txt")
    (root / "deep" / "dir").symlink_to("er")
    (root / "dangling").symlink_to("nowhere")
    for index, path in enumerate(sorted(root.rglob("*"))):
        os.utime(path, ns=(0, (1_600_000_000 + index) * 10**9), follow_symlinks=False)
    return root
