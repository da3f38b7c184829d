"""Differences of two versions as text: what they say, and that applying them gives the later version."""

from __future__ import annotations

import io
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.plugin import Database, Hash
from svc_backup.text_difference import LARGEST_TEXT, DifferenceCounts, write_text_differences

Files = dict[str, bytes | None]


@contextmanager
def opened() -> Iterator[Database]:
    with tempfile.TemporaryDirectory() as directory, Database(Path(directory) / "x.svcdb") as database:
        yield database


def put(database: Database, files: Files) -> Hash:
    with database.transaction() as transaction:
        for path, content in files.items():
            where = tuple(path.split("/"))
            if content is None:
                transaction.delete(where, recursive=True)
            else:
                transaction.put(where, content, content_type="text/plain")
    return database.head().root


def difference(
    database: Database, before: Hash, after: Hash, path: tuple[str, ...] = (), *, context: int = 3
) -> tuple[str, DifferenceCounts]:
    out = io.StringIO()
    counts = write_text_differences(
        database.at(before), database.at(after), path, out, color=False, context=context
    )
    return out.getvalue(), counts


def shown(before: Files, after: Files, path: tuple[str, ...] = ()) -> tuple[str, DifferenceCounts]:
    with opened() as database:
        return difference(database, put(database, before), put(database, after), path)


def test_a_change_is_shown_with_the_lines_around_it() -> None:
    old = b"".join(b"%d\n" % number for number in range(20))
    text, counts = shown({"docs/a.txt": old}, {"docs/a.txt": old.replace(b"10\n", b"ten\nand more\n")})
    assert text.splitlines() == [
        "diff a/docs/a.txt b/docs/a.txt",
        "--- a/docs/a.txt",
        "+++ b/docs/a.txt",
        "@@ -8,7 +8,8 @@",
        " 7",
        " 8",
        " 9",
        "-10",
        "+ten",
        "+and more",
        " 11",
        " 12",
        " 13",
    ]
    assert counts == DifferenceCounts(modified=1, lines_added=2, lines_removed=1)


def test_changes_far_apart_have_a_hunk_each_and_near_ones_share_one() -> None:
    old = [b"%d\n" % number for number in range(40)]
    new = list(old)
    new[5], new[11], new[30] = b"x\n", b"y\n", b"z\n"
    text, _ = shown({"a": b"".join(old)}, {"a": b"".join(new)})
    assert re.findall(r"^@@.*@@$", text, re.MULTILINE) == ["@@ -3,13 +3,13 @@", "@@ -28,7 +28,7 @@"]


def test_new_and_deleted_files_are_compared_with_nothing() -> None:
    text, counts = shown({"gone": b"a\n"}, {"gone": None, "new file": b"b", "empty": b""})
    assert text.splitlines() == [
        "diff a/empty b/empty",
        "new file",
        "diff a/gone b/gone",
        "deleted file",
        "--- a/gone",
        "+++ /dev/null",
        "@@ -1 +0,0 @@",
        "-a",
        "diff a/new file b/new file",
        "new file",
        "--- /dev/null",
        "+++ b/new file\t",
        "@@ -0,0 +1 @@",
        "+b",
        "\\ No newline at end of file",
    ]
    assert (counts.added, counts.modified, counts.deleted) == (2, 0, 1)


def test_a_binary_file_is_named_with_its_sizes() -> None:
    text, counts = shown({"a": b"\0" * 2048}, {"a": b"\0" * 100, "b": b"x\0"})
    assert "binary file differs: 2.0 KiB => 100 bytes\n" in text
    assert "binary file differs: none => 2 bytes\n" in text
    assert "\0" not in text
    assert (counts.lines_added, counts.lines_removed) == (0, 0)


def test_a_text_that_is_too_large_is_named_with_its_sizes() -> None:
    text, _ = shown({"a": b"x\n"}, {"a": b"x\n" * (LARGEST_TEXT // 2 + 1)})
    assert text.splitlines()[1:] == ["large file differs: 2 bytes => 16.0 MiB"]


def test_a_large_text_without_any_order_takes_bounded_work() -> None:
    import random

    chance = random.Random(3)
    old, new = ([chance.choice(b"abc") for _ in range(20_000)] for _ in range(2))
    before, after = (b"".join(b"%c\n" % line for line in lines) for lines in (old, new))
    _, counts = shown({"a": before}, {"a": after})
    assert counts.lines_added == counts.lines_removed > 0


def test_only_the_path_that_was_asked_for_is_shown() -> None:
    before: Files = {"docs/a": b"1\n", "docs/b/c": b"1\n", "other": b"1\n"}
    after: Files = dict.fromkeys(before, b"2\n")
    with opened() as database:
        left, right = put(database, before), put(database, after)
        assert difference(database, left, right, ("docs", "a"))[1].modified == 1
        assert difference(database, left, right, ("docs",))[1].modified == 2
        assert difference(database, left, right, ("none",)) == ("", DifferenceCounts())


def test_times_and_types_are_no_content() -> None:
    with opened() as database:
        first = put(database, {"a": b"1\n", "b": b"1\n"})
        with database.transaction() as transaction:
            transaction.put(("a",), b"1\n", content_type="text/plain", updated_ms=1)
            transaction.put(("b",), b"1\n", content_type="text/html")
        text, counts = difference(database, first, database.head().root)
    assert text.splitlines() == ["diff a/b b/b", "content type text/plain => text/html"]
    assert counts == DifferenceCounts(modified=1, touched=1)


def test_links_are_shown_by_what_they_name_and_kinds_do_not_mix() -> None:
    with opened() as database:
        first = put(database, {"a": b"text\n"})
        with database.transaction() as transaction:
            transaction.delete(("a",))
            transaction.link(("a",), "/elsewhere")
            transaction.mkdir(("empty",))
        text, counts = difference(database, first, database.head().root)
    assert "deleted file\n" in text
    assert "new link\n" in text
    assert "+/elsewhere\n" in text
    assert "diff a/empty/ b/empty/\nnew empty directory\n" in text
    assert counts.modified == 1


def test_nothing_differs_nothing_is_shown() -> None:
    with opened() as database:
        root = put(database, {"a": b"1"})
        assert difference(database, root, root) == ("", DifferenceCounts())


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("color", [True, False])
def test_a_content_cannot_command_the_terminal(color: bool) -> None:
    evil = b"\x1b]0;owned\x07\x1b[31mred\r\n"
    out = Terminal()
    with opened() as database:
        before, after = put(database, {}), put(database, {"a": evil})
        write_text_differences(database.at(before), database.at(after), (), out, color=color)
    text = out.getvalue()
    assert "\\x1b]0;owned\\x07" in text
    assert "\x07" not in text
    assert "\x1b]" not in text
    assert ("\x1b[32m" in text) is color


def test_a_file_gets_the_contents_as_they_are() -> None:
    text, _ = shown({}, {"a": b"\x1b[1mbold\r\n"})
    assert "+\x1b[1mbold\r\n" in text


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"c\r\n", b"+x\n"]), max_size=15)
CONTENTS = st.builds(lambda lines, end: b"".join(lines) + end, LINES, st.sampled_from([b"", b"end", b"e"]))


@given(CONTENTS, CONTENTS, st.integers(0, 4))
def test_applying_a_difference_gives_the_later_version(before: bytes, after: bytes, context: int) -> None:
    with opened() as database:
        left, right = put(database, {"f": before}), put(database, {"f": after})
        text, counts = difference(database, left, right, context=context)
    assert apply(before, text) == after
    if before == after:
        assert text == ""
    assert counts.lines_added - counts.lines_removed == len(split(after)) - len(split(before))


def split(content: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+\Z", content)


def apply(content: bytes, text: str) -> bytes:
    """A small ``patch`` for one file; checks every line that a hunk says is there."""
    lines = split(content)
    result: list[bytes] = []
    place = 0
    for hunk in re.split(r"^(?=@@ )", text, flags=re.MULTILINE)[1:]:
        head, *body = hunk.encode().split(b"\n")[:-1]
        match = re.fullmatch(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", head)
        assert match is not None
        start = int(match[1]) - (match[2] != b"0")
        result += lines[place:start]
        place = start
        taken = made = 0
        for number, line in enumerate(body):
            if line.startswith(b"\\"):
                continue
            ends = number + 1 < len(body) and body[number + 1].startswith(b"\\")
            whole = line[1:] + (b"" if ends else b"\n")
            if line[:1] in (b" ", b"-"):
                assert lines[place] == whole
                place += 1
                taken += 1
            if line[:1] in (b" ", b"+"):
                result.append(whole)
                made += 1
        assert (taken, made) == (int(match[2] or 1), int(match[4] or 1))
    return b"".join(result + lines[place:])


def test_git_applies_it(tmp_path: Path) -> None:
    before: Files = {"a b": b"1\n2\n3\n", "dir/gone": b"x\n", "end": b"no end"}
    after: Files = {"a b": b"1\nzwei\n3\n", "dir/gone": None, "end": b"no end\n", "new": b"n\n"}
    text, _ = shown(before, after)
    for path, content in before.items():
        assert content is not None
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    subprocess.run(["git", "apply", "-"], input=text.encode(), cwd=tmp_path, check=True)
    for path, later in after.items():
        if later is None:
            assert not (tmp_path / path).exists()
        else:
            assert (tmp_path / path).read_bytes() == later
