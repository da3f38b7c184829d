"""svc verify beside git fsck, restic check and borg check, on the same files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from measurement import Bench, small_files, write_random
from report import interleave, seconds_of
from servers import program

__all__ = ["verifying"]

_SMALL_FILES = 20_000
_LARGE = 1 << 27


def verifying(bench: Bench) -> None:
    """svc verify of 20,000 small and 6 large files, 900 MB, beside git fsck, restic check, borg check."""
    tree = bench.directory / "tree"
    small_files(tree, bench.choose(_SMALL_FILES, 2_000))
    for number in range(bench.choose(6, 1)):
        write_random(tree / f"large{number}", _LARGE + number)
    size = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file())
    database = bench.directory / "x.svcdb"
    _call(program("svc"), "load", "-q", "-D", database, tree)
    repository = _git(bench.directory / "git", tree)
    secrets = {**os.environ, "RESTIC_PASSWORD": "x", "BORG_BASE_DIR": str(bench.directory / "borg-home")}
    restic, borg = bench.directory / "restic", bench.directory / "borg"
    _call("restic", "-q", "-r", restic, "init", env=secrets)
    _call("restic", "-q", "-r", restic, "backup", tree, env=secrets)
    _call("borg", "init", "-e", "none", borg, env=secrets)
    _call("borg", "create", f"{borg}::one", tree, env=secrets)
    works: dict[str, Callable[[], None]] = {
        "svc verify": partial(_call, program("svc"), "verify", "-D", database),
        "git fsck": partial(_call, "git", "-C", repository, "fsck", "--full", "--no-progress"),
        "restic check --read-data": partial(
            _call, "restic", "-q", "--no-cache", "-r", restic, "check", "--read-data", env=secrets
        ),
        "borg check --verify-data": partial(_call, "borg", "check", "--verify-data", borg, env=secrets),
    }
    mine, *others = interleave(
        bench.rounds(3), *(lambda work=work: size / 1e9 / seconds_of(work) for work in works.values())
    )
    what = f"svc verify of {size / 1e6:,.0f} MB"
    for peer, theirs in zip(list(works)[1:], others, strict=True):
        bench.report.compare(what, mine, "GB/s", peer, theirs)


def _git(path: Path, tree: Path) -> Path:
    """A packed repository with one commit of the tree."""
    _call("git", "init", "-q", "--bare", "-b", "main", path)
    _call("git", "-C", path, "config", "gc.auto", "0")
    _call("git", "-C", path, "config", "core.bigFileThreshold", "1m")
    git = ("git", f"--git-dir={path}", f"--work-tree={tree}", "-c", "user.name=a", "-c", "user.email=a@b")
    _call(*git, "add", "-A")
    _call(*git, "commit", "-q", "-m", "all")
    _call("git", "-C", path, "repack", "-q", "-a", "-d")
    return path


def _call(*command: object, env: dict[str, str] | None = None) -> None:
    words = [str(word) for word in command]
    subprocess.run(
        words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=900, env=env
    )
