"""Fixtures: servers with the worker class, and the modules beside this one."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from gunicorn_process import Gunicorn


@pytest.fixture(scope="session")
def content_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of a megabyte and a bit."""
    path = tmp_path_factory.mktemp("content") / "content"
    path.write_bytes(random.Random(5).randbytes(1_200_000))
    return path


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, content_file: Path) -> Iterator[Gunicorn]:
    """One server for the tests that leave it as it was."""
    running = Gunicorn(tmp_path_factory.mktemp("http1"), ECHO_FILE=str(content_file))
    yield running
    running.end()


@pytest.fixture
def launch(tmp_path: Path, content_file: Path) -> Iterator[Callable[..., Gunicorn]]:
    """Starts servers that end with the test."""
    running: list[Gunicorn] = []

    def start(*words: str, **options) -> Gunicorn:
        running.append(Gunicorn(tmp_path, *words, ECHO_FILE=str(content_file), **options))
        return running[-1]

    yield start
    for one in running:
        one.end()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory) -> tuple[str, str]:
    directory = tmp_path_factory.mktemp("tls")
    certificate, key = str(directory / "cert.pem"), str(directory / "key.pem")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-days", "2", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key
