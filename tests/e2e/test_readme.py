"""The README's commands do what they say."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

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
    start, test = blocks()[0], blocks()[8]
    assert start.strip() == "pip install uv && uv run svc start"
    assert test.strip() == "pip install uv && uv run tox"
    script = (README.parent / ".ci" / "run").read_text()
    assert test.strip() in script


def test_the_tours_of_a_server(new_server: Callable[..., Server], tmp_path: Path) -> None:
    server = new_server("data", "--auth", "self-contained")
    found = re.search(r"svc_k_\w+", "\n".join(server.printed))
    assert found is not None, server.printed
    run_against(server, "".join(blocks()[2:4]).replace("svc_k_...", found[0]), tmp_path, CURL_TOUR)
    signing_in = f"export XDG_STATE_HOME={tmp_path} SVC_API_KEY={found[0]}\n{blocks()[1]}unset SVC_API_KEY\n"
    output = run_against(server, signing_in + blocks()[4], tmp_path, ("svc_k_", "/share#"))
    assert re.search(r"^read +yes|r +allowed|may", output, re.MULTILINE), output


CURL_TOUR = ("hello\n", "hell", '"/notes/hello.txt"', '"fast_forward":true', '"change_type":"modified"')


def run_against(server: Server, tour: str, directory: Path, told: tuple[str, ...]) -> str:
    assert "http://127.0.0.1:6830" in tour
    script = tour.replace("http://127.0.0.1:6830", server.url).replace("uv run svc", svc_program())
    output = run(re.sub(r"\bcurl (?=-|\")", "curl --silent --show-error --fail ", script), directory)
    for text in told:
        assert text in output, (text, output)
    assert "better\n" not in output
    return output


def test_the_commands_at_the_shell(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    (photos / "summer").mkdir(parents=True)
    (photos / "summer" / "sea.jpg").write_bytes(b"\xff\xd8\xff" + bytes(1000))
    output = run(blocks()[5].replace("uv run svc", svc_program()), tmp_path)
    assert "summer" in output
    assert_same_tree(photos, tmp_path / "copy")
    assert "Files:       1" in output
    assert (tmp_path / "full.svcdb").is_file()


def test_the_search(tmp_path: Path) -> None:
    output = run(blocks()[6].replace("uv run svc", svc_program()), tmp_path)
    assert "/books/warden.json" in output
    assert "Leo Tolstoy" in output
    assert '"year": 1869' in output


def test_what_keeps_a_database_in_order(tmp_path: Path) -> None:
    put = f"echo text | {svc_program()} put - /a -D books.svcdb\n"
    output = run(put + blocks()[7].replace("uv run svc", svc_program()), tmp_path)
    assert "looked at" in output
    assert "30 3 * * *" in output
    assert len(list((tmp_path / "backups").glob("*.svcdb"))) == 1
