"""The README's commands do what they say."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from svc_blackbox.client import Client
from svc_blackbox.server import Server, svc_environment, svc_program
from svc_blackbox.trees import assert_same_tree

README = Path(__file__).parents[2] / "README.md"


def blocks() -> list[str]:
    """The shell blocks of the README, in their order."""
    return re.findall(r"```sh\n(.*?)```", README.read_text(), re.DOTALL)


def run(script: str, directory: Path) -> str:
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
        env={**svc_environment(), "TMPDIR": str(directory)},
    )
    assert result.returncode == 0, (script, result.stdout, result.stderr)
    return result.stdout


def test_the_two_commands_stand_there() -> None:
    start, test = blocks()[0], blocks()[4]
    assert start.strip() == "pip install uv && uv run svc start --auth disabled"
    assert test.strip() == "pip install uv && uv run tox"
    script = (README.parent / ".ci" / "run").read_text()
    assert test.strip() in script


def test_the_tour_with_curl(shared_server: Server, http: Client, tmp_path: Path) -> None:
    tour = "".join(blocks()[1:3])
    assert "http://127.0.0.1:6830" in tour
    script = tour.replace("http://127.0.0.1:6830", shared_server.url)
    output = run(re.sub(r"\bcurl ", "curl --silent --show-error --fail ", script), tmp_path)
    assert "hello\n" in output
    assert "hell" in output
    assert '"/notes/hello.txt"' in output
    assert "better\n" not in output
    assert '"fast_forward":true' in output
    assert '"change_type":"modified"' in output
    assert http.read("/notes/hello.txt") == b"hello again\n"
    assert http.read("/b.txt") == b"hello again\n"
    assert http.read("/a.txt") == b"one"


def test_the_commands_at_the_shell(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    (photos / "summer").mkdir(parents=True)
    (photos / "summer" / "sea.jpg").write_bytes(b"\xff\xd8\xff" + bytes(1000))
    output = run(blocks()[3].replace("uv run svc", svc_program()), tmp_path)
    assert "summer" in output
    assert_same_tree(photos, tmp_path / "copy")
    assert "Files:       1" in output
    assert (tmp_path / "full.svcdb").is_file()
