"""SKILL.md is enough to use a server: every command of it does what it says, in the order of the text."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import svc_docs

from svc_blackbox.server import Server, svc_environment

SKILL = Path(svc_docs.__file__).parent / "static" / "SKILL.md"
MOST_LINES = 200

TOLD = (
    '"status":"healthy"',
    '"is_root":true',
    '"/notes/hello.txt"',
    "\nhell",
    '"next_cursor"',
    '"/copies/renamed.txt"',
    '"lines":[2,3]',
    '"value":1869',
    "\none\ntwo\nthree\n",
    '"change_type":"modified"',
    '"fast_forward":true',
    '{"path":"/books/war.json","title":"War and Peace","year":1869}',
    '"matched_by":["@extension"]',
    "event: entries_created",
    '"key_id"',
    "/share#svc_k_",
    '"task_type":"verify"',
    "## This server",
    '"openapi":"3.1.0"',
)


def test_it_is_short() -> None:
    assert len(SKILL.read_text().splitlines()) <= MOST_LINES


def test_every_command_does_what_it_says(new_server: Callable[..., Server], tmp_path: Path) -> None:
    server = new_server("data", "--auth", "self-contained")
    found = re.search(r"svc_k_\w+", "\n".join(server.printed))
    assert found is not None, server.printed
    text = SKILL.read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == text.count("```") / 2
    script = "".join(blocks).replace("http://127.0.0.1:6830", server.url).replace("svc_k_...", found[0])
    script, commands = re.subn(r"\bcurl (?=[-\"$])", "curl --silent --show-error --fail-with-body ", script)
    assert commands > 40
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script.replace("\n\n", "\necho\n")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        env={**svc_environment(), "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr)
    missing = [words for words in TOLD if words not in done.stdout]
    assert missing == [], done.stdout
    assert (tmp_path / "backup.svcdb").stat().st_size > 1000
