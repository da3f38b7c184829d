"""Chunks as ``split`` cuts them: uploaded, committed, read back by hash, used again, over a real server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from blake3 import blake3

from svc_testing import DistributionFactory, Server, run_svc, start_server

USERS = """
from svc.plugins import Identity, PluginDescriptor, hookimpl
from svc_testing import PathRights, TestingAuthMode

def user(name, rights):
    return Identity(f"00000000-0000-0000-0000-{name:0>12}", name, rights=PathRights(rights))

USERS = {
    "root": Identity("00000000-0000-0000-0000-000000000000", "root", is_root=True),
    "ann": user("ann", {"/ann": "crudl"}),
    "bob": user("bob", {"/bob": "crudl"}),
    "reader": user("reader", {"/ann": "r"}),
}

PLUGIN = PluginDescriptor("auth.names", "1.0", "Users of a test", (1, 1), "svc_test_names")

@hookimpl
def svc_register_auth_modes(auth_modes):
    auth_modes.add(TestingAuthMode(None, USERS))
"""

Serve = Callable[[], AbstractContextManager[Server]]
SIZE = 3_000_000


class Curl:
    """A user with nothing but curl."""

    def __init__(self, url: str, token: str, directory: Path) -> None:
        self._url, self._token, self._directory = url, token, directory

    def __call__(self, *arguments: str) -> tuple[int, bytes]:
        """Runs curl and returns the status and the body."""
        command = ["curl", "-sS", "--max-time", "30", "-H", f"Authorization: Bearer {self._token}"]
        *options, target = arguments
        body = self._directory / "body"
        body.unlink(missing_ok=True)
        result = subprocess.run(
            [*command, "-o", str(body), "-w", "%{http_code}", *options, self._url + target],
            capture_output=True,
            check=True,
            timeout=60,
        )
        return int(result.stdout), body.read_bytes() if body.exists() else b""

    def upload(self, pieces: list[Path]) -> list[str]:
        hashes = []
        for piece in pieces:
            hash = blake3(piece.read_bytes()).hexdigest()
            status, _ = self("-T", str(piece), f"/blobs/chunks/{hash}")
            assert status in (200, 201)
            hashes.append(hash)
        return hashes

    def commit(self, path: str, hashes: list[str]) -> int:
        body = self._directory / "commit.json"
        body.write_text(json.dumps({"files": [{"path": path, "chunk_hashes": hashes}]}))
        return self("--json", f"@{body}", "/blobs/commit")[0]

    def needed(self, hashes: list[str]) -> list[str]:
        status, answer = self("--json", json.dumps({"hashes": hashes}), "/blobs/check")
        assert status == 200
        found: list[str] = json.loads(answer)["needed"]
        return found


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DistributionFactory]:
    factory = DistributionFactory(tmp_path_factory.mktemp("users"), in_process=False)
    factory.install(
        "svc-auth-names",
        modules={"svc_test_names": USERS},
        entry_points={"auth.names": "svc_test_names:PLUGIN"},
    )
    yield factory
    factory.close()


@pytest.fixture
def serve(tmp_path: Path, distributions: DistributionFactory) -> Serve:
    """Starts a server on the database of the test."""
    return lambda: start_server(
        tmp_path / "x.svcdb",
        "--auth",
        "testing",
        plugins=("files", "auth.names"),
        env=distributions.environment({}),
    )


def pieces_of(directory: Path, *options: str) -> list[Path]:
    source = directory / "source"
    if not source.exists():
        source.write_bytes(os.urandom(SIZE))
    subprocess.run(["split", *options, str(source), str(directory / "piece.")], check=True)
    return sorted(directory.glob("piece.*"))


def test_a_stranger_with_curl_and_split(serve: Serve, tmp_path: Path) -> None:
    pieces = pieces_of(tmp_path, "-b", "256K")
    with serve() as server:
        ann, bob, reader, root = (
            Curl(server.url, name, tmp_path) for name in ("ann", "bob", "reader", "root")
        )
        hashes = ann.upload(pieces)
        assert ann.commit("/ann/first", hashes) == 200
        assert ann("/files/ann/first") == (200, (tmp_path / "source").read_bytes())
        for user in (ann, reader, root):
            for hash, piece in zip(hashes, pieces, strict=True):
                assert user(f"/blobs/{hash}") == (200, piece.read_bytes())
        assert {bob(f"/blobs/{hash}")[0] for hash in hashes} == {404}
        assert ann.commit("/ann/second", hashes) == 200
        assert (bob.needed(hashes), bob.commit("/bob/stolen", hashes)) == (hashes, 400)
    # A day later, after a restart, and with nothing left but the log.
    shutil.rmtree(tmp_path / "x.svcdb.d")
    with serve() as server:
        ann, reader = (Curl(server.url, name, tmp_path) for name in ("ann", "reader"))
        assert {reader(f"/blobs/{hash}")[0] for hash in hashes} == {200}
        assert ann.needed(hashes) == []
        assert ann.commit("/ann/third", hashes) == 200
        assert ann("/files/ann/third")[1] == (tmp_path / "source").read_bytes()
        for path in ("first", "second", "third"):
            assert ann("-X", "DELETE", f"/files/ann/{path}")[0] == 200
        assert {ann(f"/blobs/{hash}")[0] for hash in hashes} == {404}
        assert ann.needed(hashes) == hashes
    assert run_svc("verify", "-D", tmp_path / "x.svcdb").exit_code == 0
