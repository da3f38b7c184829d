"""Real histories: the commits of a git repository, and repositories made of the releases of a package.

A repository flows in; for each commit of its main line what it deletes and writes flows out, in a form that
any store can take. Releases come from the Python Package Index, checked against the hashes that stand here.
"""

from __future__ import annotations

import hashlib
import html
import os
import re
import shutil
import subprocess
import tarfile
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from svc_blackbox.trees import PROJECT, git_repository

FALCON = {
    "3.0.0": "8d7c3d52ae4590ddfa0b3d9c75d44ab573340a5e78d72ee687712e757ac53929",
    "3.0.1": "c41d84db325881a870e8b7129d5ecfd972fa4323cf77b7119a1d2a21966ee681",
    "3.1.0": "f2760bd18c16393a6fb5e55f371f67921edb72febe693a82b3c5e82195d087b7",
    "3.1.3": "23335dbccd44f29e85ec55f2f35d5a0bc12bd7a509f641ab81f5c64b65626263",
    "4.0.0": "2a63c7503aef1139cb4c9d3d0ab1a901870215c0ea9bc2740307df2b4a288854",
    "4.0.2": "58f4b9c9da4c9b1e2c9f396ad7ef897701b3c7c7c87227f0bd1aee40c7fbc525",
    "4.1.0": "dbc3fa642b43e7662f121d0a7b5d7ea42a1a31fb22ae63572c42ee3ecd1f79d0",
    "4.2.0": "c13e86e49696d6655411fe09473c34997e49ff45e8cdf7576297b0ca71ceac3d",
}
"""Releases of falcon, and the SHA-256 of their source distributions."""

SPHINX = {
    "6.0.0": "58c140ecd9aa0abbc8ff6da48a266648eac9e5bfc8e49576efd2979bf46f5961",
    "6.2.1": "6d56a34697bb749ffa0152feafc4b19836c755d90a7c59b72bc7dfd371b9cc6b",
    "7.0.1": "61e025f788c5977d9412587e733733a289e2b9fdc2fef8868ddfbfc4ccfe881d",
    "7.2.6": "9a5160e1ea90688d5963ba09a2dcd8bdd526620edbb65c328728f1b2228d5ab5",
    "7.4.7": "242f92a7ea7e6c5b406fdc2615413890ba9f699114a9c09192d7dfead2ee9cfe",
    "8.0.2": "0cce1ddcc4fd3532cf1dd283bc7d886758362c5c1de6598696579ce96d8ffa5b",
    "8.1.3": "43c1911eecb0d3e161ad78611bc905d1ad0e523e4ddc202a58a821773dc4c927",
    "8.2.3": "398ad29dee7f63a75888314e9424d40f52ce5a6a87ae88e7071e80af296ec348",
}
"""Releases of Sphinx, larger ones, and the SHA-256 of their source distributions."""

_TIMEOUT_S = 120
_LINK_MODE = "120000"
_SUBMODULE_MODE = "160000"


@dataclass(frozen=True, slots=True)
class Change:
    """What one commit of git does to the files.

    Attributes:
        commit: its hash.
        message: first line of its message.
        deleted: paths that are gone: of files, and of directories that the commit leaves empty, since git
            keeps none.
        written: content of each file that is new or changed, by path.
        links: what each link that is new or changed names, by path, as an absolute path of the tree.
    """

    commit: str
    message: str
    deleted: tuple[str, ...]
    written: Mapping[str, bytes]
    links: Mapping[str, str]

    @property
    def paths(self) -> set[str]:
        """Everything that the commit writes."""
        return {*self.written, *self.links}


def git(repository: Path, *arguments: str, stdin: bytes | None = None, **environment: str) -> bytes:
    """Runs git on a repository, undisturbed by the settings of whoever runs it; returns its output."""
    result = subprocess.run(
        ["git", f"--git-dir={repository}", *arguments],
        input=stdin,
        capture_output=True,
        check=True,
        env={**_undisturbed(), **environment},
    )
    return result.stdout


def _undisturbed() -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def main_line(repository: Path) -> list[str]:
    """The commits from the first that is there to HEAD, by first parents."""
    return git(repository, "rev-list", "--first-parent", "--reverse", "HEAD").decode().split()


def tags_of(repository: Path, *, at_least: int = 6) -> dict[str, str]:
    """Commit of each tag on the main line; where there are few, some commits stand in for tags."""
    commits = main_line(repository)
    listing = git(
        repository, "for-each-ref", "--format=%(refname:short) %(objectname) %(*objectname)", "refs/tags"
    )
    found = {}
    for line in listing.decode().splitlines():
        name, *hashes = line.split(" ")
        commit = [digest for digest in hashes if digest][-1]
        if commit in commits:
            found[name] = commit
    if len(found) < at_least:
        step = max(1, len(commits) // at_least)
        for commit in {*commits[::step], commits[-1]}:
            found.setdefault(f"at-{commit[:12]}", commit)
    return dict(sorted(found.items(), key=lambda item: commits.index(item[1])))


def changes_of(repository: Path) -> Iterator[Change]:
    """What each commit of the main line does, oldest first.

    A change of nothing but the mode of a file does nothing: svc keeps no modes.
    """
    directories: Counter[str] = Counter()
    subjects = _subjects(repository)
    with _Blobs(repository) as blobs:
        for commit, differences in _differences(repository, list(subjects)):
            deleted: list[str] = []
            wanted: dict[str, tuple[str, str]] = {}
            for description, path in differences:
                old_mode, mode, old_blob, blob, status = description.lstrip(":").split(" ")
                if _SUBMODULE_MODE in (old_mode, mode):
                    continue
                if status == "D":
                    deleted.append(path)
                elif (old_blob, old_mode == _LINK_MODE) != (blob, mode == _LINK_MODE):
                    wanted[path] = (mode, blob)
                directories.update(_steps(path, {"A": 1, "D": -1}.get(status, 0)))
            contents = blobs.read([blob for _, blob in wanted.values()])
            yield Change(
                commit,
                subjects[commit],
                tuple(_topmost(deleted, directories)),
                {path: contents[blob] for path, (mode, blob) in wanted.items() if mode != _LINK_MODE},
                {
                    path: _absolute_target(path, os.fsdecode(contents[blob]))
                    for path, (mode, blob) in wanted.items()
                    if mode == _LINK_MODE
                },
            )


def _subjects(repository: Path) -> dict[str, str]:
    """The first line of each message of the main line, by commit, oldest first."""
    listing = git(repository, "log", "-z", "--first-parent", "--reverse", "--format=%H%s").decode(
        "utf-8", "replace"
    )
    return {one[:40]: one[40:].strip() for one in listing.split("\0") if one}


def _differences(repository: Path, commits: Sequence[str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """What git says of each change of each commit, against the one before; one process for all."""
    pairs = [f"{commit} {parent}".strip() for parent, commit in zip(["", *commits], commits, strict=False)]
    arguments = ["--stdin", "--root", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--always"]
    output = git(repository, "diff-tree", *arguments, stdin="\n".join(pairs).encode() + b"\n").decode()
    found: list[tuple[str, list[tuple[str, str]]]] = []
    fields = iter(output.split("\0")[:-1])
    for field in fields:
        if field.startswith(":"):
            found[-1][1].append((field, next(fields)))
        else:
            found.append((field, []))
    assert [commit for commit, _ in found] == list(commits)
    return iter(found)


def _steps(path: str, step: int) -> dict[str, int]:
    """The directories above a path, each with the step that its number of files takes."""
    parts = path.split("/")
    return {"/".join(parts[:length]): step for length in range(1, len(parts))}


def _topmost(deleted: Sequence[str], directories: Counter[str]) -> list[str]:
    """The paths to delete: for a file the outermost directory that it leaves without files."""
    found = {}
    for path in deleted:
        parts = path.split("/")
        above = ["/".join(parts[:length]) for length in range(1, len(parts))]
        found[next((one for one in above if directories[one] <= 0), path)] = None
    return list(found)


class _Blobs:
    """Contents of git's blobs, from one process."""

    def __init__(self, repository: Path) -> None:
        self._process = subprocess.Popen(
            ["git", f"--git-dir={repository}", "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_undisturbed(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        assert self._process.returncode == 0

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        found = {}
        for name in names:
            self._process.stdin.write(name.encode() + b"\n")
            self._process.stdin.flush()
            size = int(self._process.stdout.readline().split()[2])
            found[name] = self._process.stdout.read(size)
            self._process.stdout.read(1)
        return found


def _absolute_target(path: str, target: str) -> str:
    return "/" + os.path.normpath(os.path.join(os.path.dirname(path), target))


def check_out(repository: Path, commit: str, destination: Path) -> Path:
    """Writes the tree of a commit as git does."""
    destination.mkdir()
    index = destination.with_name(destination.name + ".index")
    git(repository, "read-tree", commit, GIT_INDEX_FILE=str(index))
    git(
        repository,
        f"--work-tree={destination}",
        "checkout-index",
        "--all",
        f"--prefix={destination}/",
        GIT_INDEX_FILE=str(index),
    )
    index.unlink()
    return destination


def own_repository(destination: Path, depth: int | None = None) -> Path:
    """A packed copy of this project's repository, with as much of its history as there is.

    Where the project is no repository, one is made from its sources.

    Args:
        destination: where it is made, a bare one.
        depth: it has what can be reached from the newest commit in so many steps; everything by default.
    """
    own = PROJECT / ".git"
    if not own.is_dir():
        return git_repository(destination)
    if depth is not None:
        command = ["git", "clone", "--quiet", "--bare", f"--depth={depth}", own.as_uri(), str(destination)]
        subprocess.run(command, check=True, capture_output=True, env=_undisturbed())
        return destination
    shutil.copytree(
        own, destination, ignore=shutil.ignore_patterns("*.lock", "tmp_*", "hooks"), symlinks=True
    )
    git(destination, "gc", "--quiet")
    return destination


def release_repository(destination: Path, package: str, releases: Mapping[str, str]) -> Path:
    """Makes a git repository with a commit and a tag for each release of a package.

    Args:
        destination: where the repository is made, a bare one.
        package: name of the package.
        releases: versions in order, and the SHA-256 of their source distributions.

    Raises:
        OSError: the index cannot be reached, and the releases are not in the cache.
    """
    archives = {
        version: source_distribution(package, version, digest) for version, digest in releases.items()
    }
    work = destination.with_name(destination.name + "-work")
    git(destination, "init", "--quiet", "--bare")
    for number, (version, archive) in enumerate(archives.items()):
        work.mkdir()
        with tarfile.open(archive) as opened:
            opened.extractall(work, filter="data")
        (top,) = work.iterdir()
        tree = f"--work-tree={top}"
        when = f"{1_600_000_000 + number * 86_400} +0000"
        who = {
            f"GIT_{role}_{kind}": value
            for role in ("AUTHOR", "COMMITTER")
            for kind, value in (("NAME", "tester"), ("EMAIL", "tester@example.org"), ("DATE", when))
        }
        git(destination, tree, "add", "--all", "--force", ".")
        git(destination, tree, "commit", "--quiet", "--allow-empty", "-m", f"{package} {version}", **who)
        git(destination, "tag", version)
        shutil.rmtree(work)
    git(destination, "gc", "--quiet")
    return destination


def source_distribution(package: str, version: str, digest: str) -> Path:
    """A source distribution of the Python Package Index, from the cache of earlier runs where it is there.

    Raises:
        OSError: it is not there, and the index cannot be reached.
        ValueError: what came is not what the digest says.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "svc-tests"
    place = cache / f"{package}-{version}-{digest[:16]}.tar.gz"
    if place.exists() and hashlib.sha256(place.read_bytes()).hexdigest() == digest:
        return place
    index = (os.environ.get("PIP_INDEX_URL") or "https://pypi.org/simple").rstrip("/") + f"/{package}/"
    with urllib.request.urlopen(index, timeout=_TIMEOUT_S) as answer:
        page = answer.read().decode()
    link = re.search(rf'href="([^"#]+)#sha256={digest}"', page)
    if link is None:
        raise FileNotFoundError(f"{index} has no {package} {version}")
    url = urllib.parse.urljoin(index, html.unescape(link[1]))
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
        data = answer.read()
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError(f"{url} is not the release that was expected")
    cache.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(place)
    return place
