"""Who else could change the file: modes and owners of the file, of its directories and of links to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from svc.errors import InvalidInput
from svc_auth_file.commands import auth_file
from svc_auth_file.source import UsersSource, read_users

ANN = '[[users]]\nusername = "ann"\n'
STRANGER = 65_534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "etc" / "svc").mkdir(parents=True)
    file = tmp_path / "etc" / "svc" / "users.toml"
    file.write_text(ANN)
    yield file
    for directory in (tmp_path / "etc", tmp_path / "etc" / "svc"):
        directory.chmod(0o755)


def refusal(path: Path) -> str:
    with pytest.raises(InvalidInput) as caught:
        read_users(str(path))
    checked = CliRunner().invoke(auth_file, ["check", str(path)])
    assert str(checked.exception) == str(caught.value)
    return caught.value.message


def test_a_file_of_ones_own_in_directories_of_ones_own_is_taken(file: Path) -> None:
    assert len(read_users(str(file)).users) == 1


@pytest.mark.parametrize("above", [0, 1])
def test_a_directory_that_everybody_may_write_is_refused(file: Path, above: int) -> None:
    directory = file.parents[above]
    directory.chmod(0o777)
    assert f"Everybody on this machine may write the directory {directory}" in refusal(file)


def test_a_sticky_directory_is_taken(file: Path) -> None:
    file.parent.chmod(0o1777)
    assert len(read_users(str(file)).users) == 1


def test_a_group_may_write_as_it_may_write_the_file(file: Path) -> None:
    file.chmod(0o664)
    file.parent.chmod(0o775)
    assert len(read_users(str(file)).users) == 1


@needs_root
def test_a_file_of_somebody_else_is_refused(file: Path) -> None:
    os.chown(file, STRANGER, -1)
    assert f"Its owner is neither root nor the user of this process, but uid {STRANGER}" in refusal(file)


@needs_root
@pytest.mark.parametrize("above", [0, 1])
@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_directory_of_somebody_else_is_refused(file: Path, above: int, mode: int) -> None:
    directory = file.parents[above]
    os.chown(directory, STRANGER, -1)
    directory.chmod(mode)
    assert f"The owner of the directory {directory} is neither root" in refusal(file)


@needs_root
def test_what_the_user_of_the_process_owns_is_taken(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(file, STRANGER, -1)
    os.chown(file.parent, STRANGER, -1)
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    assert len(read_users(str(file)).users) == 1


def test_a_link_from_a_place_where_everybody_may_change_it_is_refused(tmp_path: Path, file: Path) -> None:
    (tmp_path / "open").mkdir()
    link = tmp_path / "open" / "users.toml"
    link.symlink_to("../etc/svc/users.toml")
    assert len(read_users(str(link)).users) == 1
    link.parent.chmod(0o777)
    assert f"may write the directory {link.parent}" in refusal(link)


def test_a_link_to_a_place_where_everybody_may_change_it_is_refused(tmp_path: Path, file: Path) -> None:
    (tmp_path / "first").symlink_to(tmp_path / "etc")
    link = tmp_path / "users.toml"
    link.symlink_to("first/svc/../svc/users.toml")
    assert len(read_users(str(link)).users) == 1
    file.parent.chmod(0o777)
    assert f"may write the directory {file.parent}" in refusal(link)


@needs_root
def test_a_link_of_somebody_else_is_refused(tmp_path: Path, file: Path) -> None:
    tmp_path.chmod(0o1777)
    link = tmp_path / "users.toml"
    link.symlink_to(file)
    os.lchown(link, STRANGER, -1)
    assert f"The owner of the link {link} is neither root" in refusal(link)


def test_a_directory_that_is_opened_and_closed_is_noticed_with_the_next_look(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    source = UsersSource(str(file), None, lambda: now[0])
    file.parent.chmod(0o777)
    for _ in range(3):
        now[0] += 2
        source.current()
    assert "may write the directory" in str(source.problem)
    assert caplog.text.count("may write the directory") == 1
    file.parent.chmod(0o755)
    now[0] += 2
    source.current()
    assert source.problem is None
