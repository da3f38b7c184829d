"""What a directory on the disk becomes before it is loaded."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from svc_files.commands.source_tree import SourceDirectory, SourceTree, count_files


class _Owns:
    def __init__(self, location: Path | None = None) -> None:
        self._status = location.stat() if location is not None else None

    def is_own_file(self, device: int, inode: int) -> bool:
        return self._status is not None and (device, inode) == (self._status.st_dev, self._status.st_ino)


def _read(root: Path, base: tuple[str, ...] = (), own: _Owns | None = None) -> SourceDirectory:
    tree = SourceTree(str(root), base, own or _Owns())
    return tree.read(base, tree.root)


def _reasons(found: SourceDirectory) -> dict[str, str]:
    return {os.path.basename(problem.location): problem.reason for problem in found.problems}


def test_files_come_in_order_of_names_with_their_database_paths(tmp_path: Path) -> None:
    for name in ("b", "a", "Z"):
        (tmp_path / name).write_text(name)
    (tmp_path / "sub").mkdir()
    found = _read(tmp_path, ("in", "here"))
    assert [file.path for file in found.files] == [("in", "here", name) for name in ("Z", "a", "b")]
    assert found.directories == [(("in", "here", "sub"), str(tmp_path / "sub"))]
    assert not found.is_empty


@pytest.mark.parametrize(
    ("target", "becomes"),
    [
        ("file", "/top/deep/file"),
        ("../file", "/top/file"),
        ("./x/../file", "/top/deep/file"),
        ("..", "/top"),
        ("missing/thing", "/top/deep/missing/thing"),
        ("../../outside", None),
        ("/etc/passwd", None),
    ],
)
def test_links_become_absolute_paths_or_are_reported(
    tmp_path: Path, target: str, becomes: str | None
) -> None:
    root = tmp_path / "root"
    (root / "deep" / "x").mkdir(parents=True)
    (root / "deep" / "link").symlink_to(target)
    tree = SourceTree(str(root), ("top",), _Owns())
    found = tree.read(("top", "deep"), str(root / "deep"))
    assert [link.target for link in found.links] == ([becomes] if becomes is not None else [])
    assert bool(found.problems) is (becomes is None)


def test_an_absolute_link_into_the_tree_stays_in_it_even_through_a_link_above(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "alias").symlink_to(root)
    (root / "direct").symlink_to(root / "file")
    (root / "indirect").symlink_to(tmp_path / "alias" / "file")
    assert [link.target for link in _read(root).links] == ["/file", "/file"]


def test_a_link_in_a_circle_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name, target in (("a", "b"), ("b", "a"), ("self", "self"), ("fine", "file"), ("dangling", "none")):
        (tmp_path / name).symlink_to(target)
    found = _read(tmp_path)
    assert sorted(link.target for link in found.links) == ["/file", "/none"]
    assert _reasons(found) == dict.fromkeys(("a", "b", "self"), "the link leads in a circle")


def test_dots_behind_a_link_lead_where_the_system_leads(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "real" / "inner").mkdir(parents=True)
    (root / "shortcut").symlink_to("real/inner")
    (root / "link").symlink_to("shortcut/../file")
    targets = {link.path[-1]: link.target for link in _read(root).links}
    assert targets["link"] == "/real/file"


def test_names_that_no_path_can_have_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("x")
    with open(os.fsencode(tmp_path) + b"/bad-\xff\xfe", "wb"):
        pass
    (tmp_path / "line\nbreak").write_text("x")
    found = _read(tmp_path)
    assert [file.path for file in found.files] == [("good",)]
    reasons = _reasons(found)
    assert "UTF-8" in reasons["bad-\udcff\udcfe"]
    assert "control" in reasons["line\nbreak"]
    assert not any(problem.harmless for problem in found.problems)


def test_two_names_that_are_one_in_form_c_are_not_mixed_up(tmp_path: Path) -> None:
    (tmp_path / "\u00e9").write_text("composed")
    (tmp_path / "e\u0301").write_text("decomposed")
    found = _read(tmp_path)
    assert [file.path for file in found.files] == [("\u00e9",)]
    assert len(found.problems) == 1


def test_system_names_are_refused_at_the_root_only(tmp_path: Path) -> None:
    (tmp_path / ".system").mkdir()
    assert _read(tmp_path).directories == []
    assert [path for path, _ in _read(tmp_path, ("below",)).directories] == [("below", ".system")]


def test_sockets_and_fifos_are_left_out_without_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        found = _read(tmp_path)
    assert found.is_empty
    assert [problem.harmless for problem in found.problems] == [True, True]


def test_the_database_does_not_load_itself(tmp_path: Path) -> None:
    (tmp_path / "x.svcdb").write_bytes(b"")
    (tmp_path / "other").write_bytes(b"")
    found = _read(tmp_path, own=_Owns(tmp_path / "x.svcdb"))
    assert [file.path for file in found.files] == [("other",)]


def test_a_directory_that_vanishes_is_incomplete_not_empty(tmp_path: Path) -> None:
    tree = SourceTree(str(tmp_path), (), _Owns())
    found = tree.read(("gone",), str(tmp_path / "gone"))
    assert not found.complete
    assert "vanished" in found.problems[0].reason


def test_files_are_counted_at_every_depth(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("one", "a/two", "a/b/three"):
        (tmp_path / name).write_text("")
    assert count_files(str(tmp_path)) == 3
