"""The page for programs runs as it stands, and names everything that there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from svc_client import Client
from svc_testing import start_server

PLUGINS = ("files", "history", "versions", "backup", "users")
PAGE = (Path(__file__).parents[3] / "docs" / "client.md").read_text(encoding="utf-8")


def test_the_samples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("large.bin").write_bytes(bytes(range(256)) * 10_000)
    samples = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(samples) >= 8
    with start_server(tmp_path / "x.svcdb", plugins=PLUGINS) as server:
        names: dict[str, Any] = {}
        for sample in samples:
            exec(compile(sample.replace("http://127.0.0.1:6830", server.url), "client.md", "exec"), names)


@pytest.mark.parametrize("part", ["files"])
def test_every_method_of_a_part_is_named(part: str) -> None:
    [row] = re.findall(rf"^\| `client\.{part}` \|(.*)$", PAGE, re.MULTILINE)
    with Client("http://127.0.0.1:1") as client:
        methods = {name for name in dir(getattr(client, part)) if not name.startswith("_")}
    assert set(re.findall(r"`(\w+)`", row)) == methods
