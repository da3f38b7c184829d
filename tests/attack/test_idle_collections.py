"""Collections where there is nothing to collect: they leave nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

from svc_blackbox.server import run_svc


def test_collections_of_an_unchanged_state_name_it_once(tmp_path: Path) -> None:
    database, content = tmp_path / "x.svcdb", tmp_path / "content"
    content.write_bytes(b"x" * 5000)
    run_svc("put", content, "/f", "-D", database)
    names = [json.loads(run_svc("gc", "-D", database, "--json").stdout)["snapshot"] for _ in range(3)]
    assert len(set(names)) == 1
