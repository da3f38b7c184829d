"""Real directory trees to store: Python's own library, a git repository; and how two trees are compared."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def python_library(destination: Path) -> Path:
    """Copies Python's standard library: thousands of small files and some of many megabytes."""
    source = Path(sysconfig.get_path("stdlib"))
    skipped = shutil.ignore_patterns("site-packages", "dist-packages", "__pycache__")
    shutil.copytree(source, destination, ignore=skipped, symlinks=True)
    return destination


def git_repository(destination: Path) -> Path:
    """Gives the ``.git`` of this project, or of a repository made from its sources when it has none.

    The copy is taken file by file; lock files of a git that runs meanwhile are left out.
    """
    own = PROJECT / ".git"
    if own.is_dir() and any((own / "objects").rglob("pack-*.pack")):
        shutil.copytree(own, destination, ignore=shutil.ignore_patterns("*.lock", "tmp_*"), symlinks=True)
        return destination
    work = destination.with_name(destination.name + "-work")
    for name in ("core", "plugins", "tests"):
        shutil.copytree(PROJECT / name, work / name, ignore=shutil.ignore_patterns("__pycache__", "*.svcdb*"))
    identity = ["-c", "user.name=tester", "-c", "user.email=tester@example.org"]
    for arguments in (
        ["init", "--quiet"],
        ["add", "--all"],
        [*identity, "commit", "--quiet", "-m", "everything"],
        ["gc", "--quiet"],
        [*identity, "commit", "--quiet", "--allow-empty", "-m", "a loose object"],
    ):
        subprocess.run(["git", "-C", str(work), *arguments], check=True, capture_output=True)
    (work / ".git").rename(destination)
    return destination


def files_below(root: Path) -> list[str]:
    """Relative POSIX paths of all regular files below a directory, sorted."""
    found = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink()
    ]
    return sorted(found)


def total_size(root: Path) -> int:
    """Bytes of all regular files below a directory."""
    return sum((root / name).stat().st_size for name in files_below(root))


def assert_same_tree(expected: Path, found: Path) -> None:
    """Compares two trees with ``diff -r``; links are compared as links."""
    result = subprocess.run(
        ["diff", "-r", "--no-dereference", "--brief", str(expected), str(found)],
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    assert (result.returncode, result.stdout[:3000], result.stderr[:3000]) == (0, "", "")
