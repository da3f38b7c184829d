"""svc dump --sparse: zeros become holes, and contents stay what they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]

ZEROS = bytes(8 << 20)
FILES = {
    "hole": b"begin" + ZEROS + b"end",
    "at-the-end": b"begin" + ZEROS,
    "zeros": ZEROS,
    "small": b"no zeros",
    "empty": b"",
}


def test_zeros_become_holes_and_contents_stay(run: Run, tmp_path: Path) -> None:
    tree, database = tmp_path / "tree", tmp_path / "data.svcdb"
    tree.mkdir()
    for name, content in FILES.items():
        (tree / name).write_bytes(content)
    run("load", tree, "/", "-D", database)
    dumped = {"plain": (), "sparse": ("--sparse",)}
    for name, options in dumped.items():
        run("dump", tmp_path / name, "/", "-D", database, *options)
        assert {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} == FILES
    for name in ("hole", "at-the-end", "zeros"):
        taken = [(tmp_path / where / name).stat().st_blocks * 512 for where in dumped]
        assert taken[1] < taken[0] / 8
