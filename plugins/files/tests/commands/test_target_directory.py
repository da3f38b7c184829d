"""Nothing is written outside of the directory, and no file appears before it is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.errors import Conflict
from svc.plugin import content_hasher
from svc_files.commands.target_directory import Existing, TargetDirectory, TargetRefused


def _hash(content: bytes) -> str:
    return content_hasher().update(content).hexdigest()


def _write(target: TargetDirectory, below: tuple[str, ...], name: str, content: bytes) -> None:
    with target.directory(below) as parent:
        target.write_file(parent, name, iter([content]), _hash(content), None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def test_what_a_dump_that_was_killed_has_left_is_removed(root: Path) -> None:
    root.mkdir()
    left, other = root / ".svc-0123456789abcdef.part", root / ".svc-notes.part"
    for place in (left, other):
        place.write_bytes(b"half")
    (root / ".svc-00000000000000ff.part").symlink_to(other)
    target, later = TargetDirectory(str(root), Existing.KEEP), TargetDirectory(str(root), Existing.KEEP)

    def pieces() -> Iterator[bytes]:
        yield b"x"
        with later.directory(()) as parent:
            later.remove_left_parts(parent)
        yield b"y"

    with target.directory(()) as parent:
        target.write_file(parent, "file", pieces(), _hash(b"xy"), None)
    assert sorted(place.name for place in root.iterdir()) == [".svc-notes.part", "file"]
    assert (root / "file").read_bytes() == b"xy"


@pytest.mark.parametrize("existing", list(Existing))
def test_a_link_in_the_place_of_a_directory_is_never_followed(
    root: Path, tmp_path: Path, existing: Existing
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    root.mkdir()
    (root / "sub").symlink_to(outside)
    target = TargetDirectory(str(root), existing)
    if existing is Existing.KEEP:
        with pytest.raises(TargetRefused):
            _write(target, ("sub",), "file", b"x")
    else:
        _write(target, ("sub",), "file", b"x")
        assert (root / "sub" / "file").read_bytes() == b"x"
        assert not (root / "sub").is_symlink()
    assert list(outside.iterdir()) == []


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_written_through(
    root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "secret"
    outside.write_bytes(b"keep")
    root.mkdir()
    (root / "file").symlink_to(outside)
    target = TargetDirectory(str(root), Existing.REPLACE)
    _write(target, (), "file", b"new")
    assert outside.read_bytes() == b"keep"
    assert (root / "file").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "nul\0"])
def test_names_that_lead_elsewhere_are_refused(root: Path, name: str) -> None:
    target = TargetDirectory(str(root), Existing.REPLACE)
    with pytest.raises(TargetRefused):
        _write(target, (), name, b"x")
    with pytest.raises(TargetRefused):
        _write(target, (name,), "file", b"x")


def test_content_of_another_hash_never_gets_the_name(root: Path) -> None:
    target = TargetDirectory(str(root), Existing.REPLACE)
    with target.directory(()) as parent, pytest.raises(TargetRefused, match="hash"):
        target.write_file(parent, "file", iter([b"flipped"]), _hash(b"original"), None)
    assert list(root.iterdir()) == []


def test_a_failure_in_the_middle_leaves_nothing_behind(root: Path) -> None:
    target = TargetDirectory(str(root), Existing.REPLACE)

    def torn() -> object:
        yield b"half"
        raise ConnectionError("lost")

    with target.directory(()) as parent, pytest.raises(TargetRefused):
        target.write_file(parent, "file", torn(), _hash(b"halfhalf"), None)  # type: ignore[arg-type]
    assert list(root.iterdir()) == []


def test_equal_files_are_recognised_and_different_ones_kept_or_replaced(root: Path) -> None:
    root.mkdir()
    (root / "same").write_bytes(b"same")
    (root / "other").write_bytes(b"diff")
    keeping = TargetDirectory(str(root), Existing.KEEP)
    replacing = TargetDirectory(str(root), Existing.REPLACE)
    with keeping.directory(()) as parent:
        assert keeping.holds_file(parent, "same", 4, _hash(b"same"))
        assert not keeping.holds_file(parent, "absent", 4, _hash(b"same"))
        with pytest.raises(TargetRefused, match="--force"):
            keeping.holds_file(parent, "other", 4, _hash(b"same"))
        assert not replacing.holds_file(parent, "other", 4, _hash(b"same"))


def test_links_are_made_with_their_own_time_and_not_made_twice(root: Path) -> None:
    target = TargetDirectory(str(root), Existing.KEEP)
    with target.directory(("sub",)) as parent:
        assert target.write_link(parent, "link", "../file", 1_000)
        assert not target.write_link(parent, "link", "../file", 1_000)
    assert os.readlink(root / "sub" / "link") == "../file"
    assert (root / "sub" / "link").lstat().st_mtime_ns == 1_000_000_000


def test_a_file_is_no_directory_to_write_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Conflict):
        TargetDirectory(str(tmp_path / "file"), Existing.KEEP)
