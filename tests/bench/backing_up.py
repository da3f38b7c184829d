"""Export and import of a version beside tar and git bundle."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from measurement import Bench, small_files, write_random
from report import interleave, seconds_of
from servers import program

from svc.database import Database

_SMALL_FILES = 10_000
_LARGE = 1 << 25
_numbers = itertools.count()


def backups(bench: Bench) -> None:
    """svc export and svc import of 10,000 small and 8 large files, 280 MB, beside tar and git bundle."""
    tree = _tree(bench.directory / "tree", bench.choose(8, 2))
    sizes = [path.stat().st_size for path in tree.rglob("*") if path.is_file()]
    work = f"of {sum(sizes) / 1e6:,.0f} MB in {len(sizes):,} files"
    database, exported = bench.directory / "source.svcdb", bench.directory / "export.svcdb"
    archive, bundle = bench.directory / "all.tar", bench.directory / "all.bundle"
    _call(program("svc"), "load", "-q", "-D", database, tree)
    repository = _repository(bench.directory / "git", tree)

    exports, *others = _rates(
        bench,
        sum(sizes),
        partial(_export, database, exported),
        partial(_call, "tar", "-cf", archive, "-C", tree, "."),
        partial(_call, "git", "-C", repository, "bundle", "create", "-q", bundle, "main"),
    )
    for peer, theirs in zip(("tar -c", "git bundle create"), others, strict=True):
        bench.report.compare(f"svc export {work}", exports, "MB/s", peer, theirs)
    imports, *others = _rates(
        bench,
        sum(sizes),
        partial(_import, exported, bench.directory),
        partial(_extract, archive, bench.directory),
        lambda: _call("git", "clone", "-q", "--bare", bundle, bench.directory / f"{next(_numbers)}.git"),
    )
    for peer, theirs in zip(("tar -x", "git clone of the bundle"), others, strict=True):
        bench.report.compare(f"svc import {work}, verified", imports, "MB/s", peer, theirs)
    _check(database, next(bench.directory.glob("imported-*.svcdb")))


def _rates(bench: Bench, size: int, *works: Callable[[], None]) -> list[list[float]]:
    """Megabytes a second of each work, in turn."""
    return interleave(bench.rounds(3), *(lambda work=work: size / 1e6 / seconds_of(work) for work in works))


def _export(database: Path, exported: Path) -> None:
    exported.unlink(missing_ok=True)
    _call(program("svc"), "export", "-q", "-D", database, "-o", exported)


def _import(exported: Path, directory: Path) -> None:
    target = directory / f"imported-{next(_numbers)}.svcdb"
    _call(program("svc"), "import", "-q", "-D", target, "--promote", exported)


def _extract(archive: Path, directory: Path) -> None:
    target = directory / f"extracted-{next(_numbers)}"
    target.mkdir()
    _call("tar", "-xf", archive, "-C", target)


def _check(source: Path, imported: Path) -> None:
    """Makes sure that what came in is what went out."""
    with Database(source) as left, Database(imported) as right:
        assert left.head().root == right.head().root, "the import is another version than the export"


def _tree(path: Path, large: int) -> Path:
    small_files(path, _SMALL_FILES)
    for number in range(large):
        write_random(path / f"large{number}", _LARGE + number)
    return path


def _repository(path: Path, tree: Path) -> Path:
    """A git repository with one commit that holds the tree."""
    _call("git", "init", "-q", "--bare", "-b", "main", path)
    # Else a collection goes on in the background, and deltas are sought in random bytes for minutes.
    _call("git", "-C", path, "config", "gc.auto", "0")
    _call("git", "-C", path, "config", "core.bigFileThreshold", "1m")
    git = ("git", f"--git-dir={path}", f"--work-tree={tree}", "-c", "user.name=a", "-c", "user.email=a@b")
    _call(*git, "add", "-A")
    _call(*git, "commit", "-q", "-m", "all")
    return path


def _call(*command: object) -> None:
    words = [str(word) for word in command]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=300)
