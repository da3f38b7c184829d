"""The histories of real projects are replayed, a commit for a commit, and every tag is what git has."""

from __future__ import annotations

import base64
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from long_runs import Extent
from svc_blackbox.backups import export, imported, patch
from svc_blackbox.client import Client
from svc_blackbox.git_history import (
    FALCON,
    Change,
    changes_of,
    check_out,
    git,
    main_line,
    own_repository,
    release_repository,
    tags_of,
)
from svc_blackbox.prepared import run_svc
from svc_blackbox.server import Server
from svc_blackbox.trees import assert_same_tree, total_size
from svc_blackbox.versions import compare, head_version, log_entries, make_snapshot, snapshot_names, tree

EXTENT = Extent("REALDATA")
DEPTH = EXTENT.scaled(300)
"""The newest commits of this project are replayed: those that can be reached in so many steps."""
SAMPLE = 40

pytestmark = pytest.mark.timeout(300)


@dataclass
class Replayed:
    """A history of git in svc.

    Attributes:
        repository: where git has it.
        server: where svc has it.
        versions: version after each commit of git, by its hash, in order; equal to the one before where a
            commit changed no file.
        written: the paths that each commit wrote or deleted.
        tags: commit of each tag.
    """

    repository: Path
    server: Server
    versions: dict[str, str]
    written: dict[str, Change]
    tags: dict[str, str]

    def commits_of(self, path: str) -> list[str]:
        """The versions in which git says that a file's content changed, newest first."""
        found = git(self.repository, "log", "--first-parent", "--no-renames", "--format=%H", "--", path)
        return [self.versions[commit] for commit in found.decode().split() if self.touches(commit, path)]

    def touches(self, commit: str, path: str) -> bool:
        """Whether a commit changed more than a file's mode."""
        change = self.written[commit]
        return path in change.paths or any(
            path == gone or path.startswith(gone + "/") for gone in change.deleted
        )


def operations(change: Change) -> list[dict[str, Any]]:
    """A commit as a batch."""
    return [
        *({"op": "delete", "path": f"/{path}", "recursive": True} for path in change.deleted),
        *(
            {"op": "put", "path": f"/{path}", "content_base64": base64.b64encode(content).decode()}
            for path, content in change.written.items()
        ),
        *({"op": "link", "path": f"/{path}", "target": target} for path, target in change.links.items()),
    ]


def replay(repository: Path, server: Server) -> Replayed:
    """Stores every commit of a repository as one commit of svc, and a snapshot for each tag."""
    tags = tags_of(repository)
    client = server.client(timeout=120)
    versions: dict[str, str] = {}
    written = {}
    for change in changes_of(repository):
        batch = operations(change)
        if batch:
            response = client.post("/files/batch", {"message": change.message, "operations": batch})
            assert response.status == 200, response.body[:1000]
            versions[change.commit] = response.json()["version"]
        else:
            versions[change.commit] = head_version(client)
        written[change.commit] = change
        for tag, commit in tags.items():
            if commit == change.commit and (
                client.post("/versions/snapshots", {"name": tag, "metadata": {"commit": commit}}).status
                == 200
            ):
                # Two tags of one state: the first has the snapshot, the second is read by its version.
                assert any(
                    tags[name] == commit or versions[tags[name]] == versions[commit]
                    for name in snapshot_names(client)
                )
    assert list(versions) == main_line(repository)
    return Replayed(repository, server, versions, written, tags)


@pytest.fixture(scope="module", params=["this project", "falcon"])
def replayed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("history")
    if request.param == "falcon":
        try:
            repository = release_repository(directory / "git", "falcon", FALCON)
        except OSError as error:
            pytest.skip(f"the Python Package Index cannot be reached: {error}")
    else:
        repository = own_repository(directory / "git", DEPTH)
    server = Server(directory / "history.svcdb").start()
    yield replay(repository, server)
    server.close()


@pytest.fixture
def client(replayed: Replayed) -> Any:
    with Client(replayed.server.url, timeout=120) as opened:
        yield opened


def test_every_tag_is_what_git_has(
    replayed: Replayed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = 0
    for number, (tag, commit) in enumerate(replayed.tags.items()):
        ours, theirs = tmp_path / f"svc{number}", tmp_path / f"git{number}"
        with Client(replayed.server.url) as client:
            name = tag if tag in snapshot_names(client) else replayed.versions[commit]
        run_svc("dump", "-q", "-D", replayed.server.database, ours, "--at", name)
        check_out(replayed.repository, commit, theirs)
        assert_same_tree(theirs, ours)
        plain += total_size(theirs)
    packed = sum(
        file.stat().st_size for file in (replayed.repository / "objects").rglob("*") if file.is_file()
    )
    own = replayed.server.database.stat().st_size
    with capsys.disabled():
        print(
            f"\n{len(replayed.versions)} commits, {len(replayed.tags)} tags: svc {own / 1e6:.2f} MB, "
            f"git {packed / 1e6:.2f} MB, plain copies of the tags {plain / 1e6:.2f} MB"
        )


def test_the_log_has_a_commit_for_each_commit(replayed: Replayed, client: Client) -> None:
    moves = [entry for entry in log_entries(client) if entry["version"] != entry["parent"]]
    expected = [commit for commit, change in replayed.written.items() if operations(change)]
    assert [entry["version"] for entry in moves] == [replayed.versions[commit] for commit in expected][::-1]
    assert [entry["message"] for entry in moves] == [replayed.written[commit].message for commit in expected][
        ::-1
    ]


def sample(replayed: Replayed) -> list[str]:
    """Some of the files that ever were, and those that changed most often."""
    ever: dict[str, int] = {}
    for change in replayed.written.values():
        for path in change.written:
            ever[path] = ever.get(path, 0) + 1
    busiest = sorted(ever, key=lambda path: (-ever[path], path))[: SAMPLE // 4]
    return [*busiest, *random.Random(6).sample(sorted(ever), min(len(ever), SAMPLE - len(busiest)))]


def test_the_history_of_a_file_is_that_of_git_log(replayed: Replayed, client: Client) -> None:
    for path in sample(replayed):
        response = client.get(f"/versions/history/{path}", commits="true", limit=1000)
        assert response.status == 200, path
        entries = response.json()["history"]
        assert [entry["version"] for entry in entries] == replayed.commits_of(path), path
        assert entries[-1]["change_type"] == "added"
        assert [e["version"] for e in log_entries(client, path=f"/{path}")] == [e["version"] for e in entries]


def test_the_comparison_of_two_tags_is_that_of_git_diff(replayed: Replayed, client: Client) -> None:
    kinds = {"A": "added", "D": "deleted", "M": "modified", "T": "modified"}
    tags = list(replayed.tags.values())
    for source, to in [*itertools.pairwise(tags), (tags[-1], tags[0])]:
        fields = git(
            replayed.repository, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", source, to
        ).decode().split("\0")[:-1]  # fmt: skip
        expected = set()
        for description, path in zip(fields[::2], fields[1::2], strict=True):
            _, _, before, after, status = description.split(" ")
            if before != after:
                expected.add((kinds[status], f"/{path}"))
        value = compare(client, replayed.versions[source], replayed.versions[to])
        found = {
            (change["change_type"], change["path"])
            for change in value["changes"]
            if change["entry_type"] != 3
            and (change["before"] and change["before"]["hash"])
            != (change["after"] and change["after"]["hash"])
        }
        assert found == expected


def test_every_line_is_blamed_on_a_commit_that_has_it(replayed: Replayed, client: Client) -> None:
    texts = [path for path in sample(replayed) if path.endswith((".py", ".md", ".rst", ".toml"))]
    checked = 0
    head = set(tree(client))
    for path in [path for path in texts if f"/{path}" in head][:12]:
        response = client.get(f"/versions/blame/{path}")
        assert response.status == 200, path
        lines = client.read(f"/{path}").split(b"\n")
        touching = replayed.commits_of(path)
        contents = {}
        for version in touching:
            read = client.get(f"/files/{path}", version=version)
            if read.status == 200:
                contents[version] = set(read.body.split(b"\n"))
        blamed = response.json()["lines"]
        assert len(blamed) == len(lines) - (lines[-1] == b"")
        for line, content in zip(blamed, lines, strict=False):
            assert content in contents[line["version"]], (path, line)
            checked += 1
    assert checked > 50


def test_a_chain_of_patches_over_all_tags_gives_the_same_root(
    replayed: Replayed, client: Client, new_server: Callable[..., Server]
) -> None:
    commits = list(dict.fromkeys(replayed.tags.values()))
    commits.sort(key=list(replayed.versions).index)
    roots = list(dict.fromkeys(replayed.versions[commit] for commit in commits))
    other = new_server("elsewhere").client(timeout=120)
    first = make_snapshot_of(client, roots[0])
    imported(other, export(client, snapshot=first), promote="true")
    for before, after in itertools.pairwise(roots):
        imported(other, patch(client, **{"from": before, "to": after}), promote="true")
        assert head_version(other) == after
    assert tree(other) == tree(client, version=roots[-1])
    for root in roots:
        assert head_version(other, version=root) == root


def make_snapshot_of(client: Client, root: str) -> str:
    """The name of a snapshot of a version, made by way of HEAD when there is none."""
    for snapshot in client.get("/version/snapshots").json():
        if snapshot["root_hash"] == root:
            name: str = snapshot["name"]
            return name
    head = head_version(client)
    assert client.post("/versions/promote", {"hash": root}).status == 200
    made = make_snapshot(client, "made-for-the-chain")
    assert client.post("/versions/promote", {"hash": head}).status == 200
    found: str = made["name"]
    return found


def test_the_database_is_sound_in_the_end(replayed: Replayed) -> None:
    run_svc("verify", "-D", replayed.server.database)
