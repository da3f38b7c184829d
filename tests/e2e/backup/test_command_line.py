"""export, diff, import and promote at the shell: options, reports and refusals as specified."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from svc_blackbox.backups import Source, content_of, version_of
from svc_blackbox.client import Client
from svc_blackbox.prepared import run_svc
from svc_blackbox.server import Server
from svc_blackbox.server import run_svc as start_svc
from svc_blackbox.terminal import run_on_terminal
from svc_blackbox.versions import contents, head_version, list_snapshots


@pytest.fixture(scope="module")
def copy(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source's file, without a server."""
    with Client(source.server.url) as client:
        assert head_version(client) == source.roots["HEAD"]
    place = tmp_path_factory.mktemp("copy") / "copy.svcdb"
    shutil.copyfile(source.server.database, place)
    return place


def says(output: bytes, *names: str) -> None:
    """Checks that a report has a line for each of the names."""
    text = output.decode()
    for name in names:
        assert any(line.strip().startswith(name) for line in text.splitlines()), (name, text)


def fails(code: int, *arguments: object) -> bytes:
    """Runs a command that must fail; returns its errors."""
    result = run_svc(*arguments, check=False)
    assert result.returncode == code, (arguments, result)
    assert result.stderr.startswith(b"svc: ") or b"Usage" in result.stderr
    assert b"Traceback" not in result.stderr
    return result.stderr


def test_export_diff_import_in_another_directory(source: Source, copy: Path, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("base.svcdb", "first.patch.svcdb", "second.patch.svcdb")]
    report = run_svc("export", "-D", copy, "--output", files[0], "--snapshot", "one").stdout
    says(report, "Files", "Chunks", "Directories", "Version")
    assert source.roots["one"].encode() in report
    report = run_svc("diff", "-D", copy, "--output", files[1], "--from", "one", "--to", "two").stdout
    says(report, "Files added", "Files modified", "Files deleted", "Chunks", "Directories", "From", "To")
    assert source.roots["one"].encode() in report
    assert source.roots["two"].encode() in report
    run_svc("diff", "--database", copy, "--output", files[2], "--from", source.roots["two"])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in files:
        shutil.move(file, elsewhere / file.name)
    target = elsewhere / "target.svcdb"
    run_svc("put", "-D", target, "-", "/x", stdin=b"x")
    run_svc("rm", "-D", target, "/x")
    for file, name in zip(files, ("one", "two", "HEAD"), strict=True):
        report = run_svc("import", "-D", target, "--file", elsewhere / file.name, "--promote").stdout
        says(report, "Entries", "Chunks", "Files", "Directories", "Deletions", "Version")
        assert source.roots[name].encode() in report
        assert b"HEAD" in report
        assert version_of(target) == source.roots[name]
        assert content_of(target, tmp_path / f"out-{name}") == source.contents[name]
    run_svc("verify", "-D", target)


def test_a_chain_in_one_command(source: Source, copy: Path, tmp_path: Path) -> None:
    """A full backup and its patches are restored by naming them all."""
    base, first, second = (tmp_path / f"{name}.svcdb" for name in ("base", "first", "second"))
    run_svc("export", "-D", copy, "--output", base, "--snapshot", "one")
    run_svc("diff", "-D", copy, "--output", first, "--from", "one", "--to", "two")
    run_svc("diff", "-D", copy, "--output", second, "--from", "two")
    target = tmp_path / "target.svcdb"
    run_svc("put", "-D", target, "-", "/x", stdin=b"x")
    run_svc("import", "-D", target, "--file", base, "--file", first, "--file", second, "--promote")
    assert version_of(target) == source.roots["HEAD"]
    assert content_of(target, tmp_path / "out") == source.contents["HEAD"]


def test_a_broken_chain_leaves_the_target_as_it_was(source: Source, copy: Path, tmp_path: Path) -> None:
    base, second = tmp_path / "base.svcdb", tmp_path / "second.svcdb"
    run_svc("export", "-D", copy, "--output", base, "--snapshot", "one")
    run_svc("diff", "-D", copy, "--output", second, "--from", "two")
    target = tmp_path / "target.svcdb"
    run_svc("put", "-D", target, "-", "/x", stdin=b"x")
    before = version_of(target)
    result = run_svc("import", "-D", target, "--file", base, "--file", second, "--promote", check=False)
    assert result.returncode in (2, 4), result
    errors = result.stderr
    assert source.roots["two"].encode() in errors
    assert source.roots["one"].encode() in errors
    assert version_of(target) == before


def test_an_existing_output_is_refused(copy: Path, tmp_path: Path) -> None:
    output = tmp_path / "there.svcdb"
    output.write_bytes(b"precious")
    fails(4, "export", "-D", copy, "--output", output)
    fails(4, "diff", "-D", copy, "--output", output, "--from", "one")
    assert output.read_bytes() == b"precious"
    (tmp_path / "link.svcdb").symlink_to(tmp_path / "nowhere.svcdb")
    fails(4, "export", "-D", copy, "--output", tmp_path / "link.svcdb")
    assert not (tmp_path / "nowhere.svcdb").exists()


def test_mistakes_have_their_exit_codes(copy: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.svcdb"
    fails(2, "export", "-D", copy)
    fails(3, "export", "-D", copy, "--output", output, "--snapshot", "none")
    fails(3, "export", "-D", copy, "--output", output, "--hash", "0" * 64)
    fails(2, "export", "-D", copy, "--output", output, "--hash", "xyz")
    fails(2, "export", "-D", copy, "--output", output, "--hash", "0" * 63)
    fails(3, "export", "-D", tmp_path / "none.svcdb", "--output", output)
    fails(2, "diff", "-D", copy, "--output", output)
    fails(3, "diff", "-D", copy, "--output", output, "--from", "none")
    fails(3, "diff", "-D", copy, "--output", output, "--from", "one", "--to", "none")
    fails(2, "import", "-D", copy)
    fails(2, "promote", "-D", copy)
    fails(3, "promote", "-D", copy, "--hash", "0" * 64)
    fails(2, "promote", "-D", copy, "--hash", "xyz")
    assert not list(tmp_path.iterdir())


def test_a_patch_on_another_base_needs_force(source: Source, copy: Path, tmp_path: Path) -> None:
    base, small = tmp_path / "base.svcdb", tmp_path / "patch.svcdb"
    run_svc("export", "-D", copy, "--output", base, "--snapshot", "one")
    run_svc("diff", "-D", copy, "--output", small, "--from", "one", "--to", "two")
    run_svc("put", "-D", base, "-", "/own", stdin=b"own")
    head = version_of(base)
    errors = fails(4, "import", "-D", base, "--file", small, "--promote")
    assert source.roots["one"].encode() in errors
    assert head.encode() in errors
    assert b"--force" in errors
    assert version_of(base) == head
    run_svc("import", "-D", base, "--file", small, "--force")
    assert version_of(base) == head
    run_svc("promote", "-D", base, "--hash", source.roots["two"])
    assert version_of(base) == source.roots["two"]
    assert content_of(base, tmp_path / "out") == source.contents["two"]


def test_import_says_whether_head_was_promoted(source: Source, copy: Path, tmp_path: Path) -> None:
    base, target = tmp_path / "base.svcdb", tmp_path / "target.svcdb"
    run_svc("export", "-D", copy, "--output", base)
    run_svc("put", "-D", target, "-", "/own", stdin=b"own")
    before = version_of(target)
    without = run_svc("import", "-D", target, "--file", base).stdout
    assert version_of(target) == before
    promoted = run_svc("import", "-D", target, "--file", base, "--promote").stdout
    assert version_of(target) == source.roots["HEAD"]
    lines = [[line for line in text.decode().splitlines() if "HEAD" in line] for text in (without, promoted)]
    assert lines[0] != lines[1]


def test_an_export_is_opened_by_svc_start(source: Source, copy: Path, tmp_path: Path) -> None:
    output = tmp_path / "started.svcdb"
    run_svc("export", "-D", copy, "--output", output, "--snapshot", "two")
    server = Server(output).start()
    try:
        client = server.client()
        assert contents(client) == source.contents["two"]
        assert list_snapshots(client) == []
    finally:
        server.close()


def test_text_differences_are_shown(copy: Path) -> None:
    text = run_svc("diff", "-D", copy, "--from", "one").stdout.decode()
    assert "-second line" in text
    assert "+changed line" in text
    assert "text.txt" in text
    assert "/new" in text
    assert "d/gone" in text
    assert "\x00" not in text
    nothing = run_svc("diff", "-D", copy, "--from", "HEAD", "--to", "HEAD").stdout
    assert b"@@" not in nothing


def test_a_pipe_gets_no_colours_and_no_progress(copy: Path, tmp_path: Path) -> None:
    shown = run_svc("diff", "-D", copy, "--from", "one")
    made = run_svc("export", "-D", copy, "--output", tmp_path / "x.svcdb")
    for output in (shown.stdout, made.stdout, made.stderr):
        assert b"\x1b[" not in output


def test_stored_text_cannot_drive_the_terminal(tmp_path: Path) -> None:
    """Into a pipe goes what is stored, so that it is a patch; on a terminal nothing but colours may act."""
    database = tmp_path / "x.svcdb"
    hostile = b"\x1b]0;title\x07\x1b[2Jevil\x9b2J\n"
    run_svc("put", "-D", database, "-", "/f.txt", stdin=b"plain\n")
    run_svc("snapshot", "create", "one", "-D", database)
    run_svc("put", "-D", database, "-", "/f.txt", stdin=hostile)
    run_svc("put", "-D", database, "-", "/\x85name\u202e.txt", stdin=b"x\n", check=False)
    shown = run_on_terminal("diff", "-D", database, "--from", "one")
    assert "evil" in shown
    assert "\x1b]" not in shown
    assert "\x1b[2J" not in shown
    assert "\x07" not in shown
    assert "\x9b" not in shown
    assert set(re.findall("\x1b(.)", shown)) <= {"["}
    assert set(re.findall("\x1b\\[[0-9;]*([A-Za-z])", shown)) <= {"m"}


def test_commands_work_beside_a_running_server(
    new_server: Callable[..., Server], source: Source, tmp_path: Path
) -> None:
    output = tmp_path / "live.svcdb"
    run_svc("export", "-D", source.server.database, "--output", output)
    server = new_server("live-target")
    client = server.client()
    client.store("/own", b"own")
    run_svc("import", "-D", server.database, "--file", output, "--promote")
    assert contents(client) == source.contents["HEAD"]
    client.store("/after", b"goes on")
    run_svc("promote", "-D", server.database, "--hash", source.roots["HEAD"])
    assert head_version(client) == source.roots["HEAD"]


def test_the_exported_file_is_private_and_has_nothing_beside_it(copy: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.svcdb"
    run_svc("export", "-D", copy, "--output", output)
    assert os.stat(output).st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir()] == ["x.svcdb"]


@pytest.mark.parametrize("command", ["export", "diff", "import", "promote"])
def test_every_command_explains_itself(command: str) -> None:
    text = start_svc(command, "--help").stdout.decode()
    assert f"Usage: svc {command}" in text
    specified = {
        "export": ["--database", "-D", "--output", "--snapshot", "--hash", "--root-key", "SVC_ROOT_KEY"],
        "diff": ["--database", "-D", "--output", "--from", "--to"],
        "import": ["--database", "-D", "--file", "--promote", "--force", "--root-key", "SVC_ROOT_KEY"],
        "promote": ["--database", "-D", "--hash"],
    }
    for option in specified[command]:
        assert option in text, option


def test_without_the_plugin_the_commands_say_which_is_missing(copy: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.svcdb"
    run_svc("put", "-D", database, "-", "/f", stdin=b"x")
    for plugin in ("task.backup", "backup"):
        run_svc("plugins", "disable", "-D", database, plugin)
    errors = fails(11, "export", "-D", database, "--output", tmp_path / "y.svcdb")
    assert b"backup" in errors
