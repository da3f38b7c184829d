"""The pure parts: globs, cursors, media types, JSON documents, lines, archives."""

from __future__ import annotations

import fnmatch
import io
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import InvalidInput, NotFound, PayloadTooLarge
from svc_files import zip_stream
from svc_files.content_types import choose_content_type, is_compressed
from svc_files.cursors import decode_cursor, encode_cursor
from svc_files.deleted_view import path_key
from svc_files.globs import Glob
from svc_files.json_documents import apply_merge_patch, decode_json, encode_json, resolve_pointer
from svc_files.parts import Budget, select_characters, select_lines
from svc_files.zip_stream import ZipMember, stream_zip

SEGMENT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=8
)
PATH = st.lists(SEGMENT, min_size=1, max_size=5).map(tuple)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3)
    ),
    max_leaves=10,
)


class TestGlobs:
    @given(st.text("ab*?[]!-", min_size=1, max_size=10), st.text("ab-]", min_size=1, max_size=8))
    def test_one_segment_matches_as_the_shell_does(self, pattern: str, name: str) -> None:
        if pattern == "**":
            return
        assert Glob(pattern).matches((name,), 0) == fnmatch.fnmatchcase(name, pattern)

    @given(st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=6), PATH)
    def test_two_stars_match_as_a_search_over_all_ways_does(
        self, parts: list[str], path: tuple[str, ...]
    ) -> None:
        path = tuple("ab"[len(segment) % 2] for segment in path)
        assert Glob("/" + "/".join(parts)).matches(path, 0) == _fits(parts, path)

    @given(st.text(min_size=1, max_size=20), PATH)
    def test_any_text_is_a_pattern(self, pattern: str, path: tuple[str, ...]) -> None:
        Glob(pattern).matches(path, 0)

    def test_a_hostile_pattern_ends(self) -> None:
        """A matcher that tries every way would not come back."""
        assert not Glob("*a" * 500 + "b").matches(("a" * 255,), 0)
        assert not Glob("/".join(["**", "*a*"] * 100) + "/b").matches(("a" * 20,) * 400, 0)


def _fits(pattern: list[str], path: tuple[str, ...]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_fits(pattern[1:], path[skip:]) for skip in range(len(path) + 1))
    return bool(path) and pattern[0] in ("*", path[0]) and _fits(pattern[1:], path[1:])


class TestCursors:
    @given(PATH)
    def test_a_cursor_gives_its_place_back(self, path: tuple[str, ...]) -> None:
        assert decode_cursor(encode_cursor(path)) == path

    @given(st.text(max_size=20))
    def test_any_other_text_is_refused_or_a_place(self, text: str) -> None:
        with suppress(InvalidInput):
            assert isinstance(decode_cursor(text), tuple)

    @given(PATH, PATH)
    def test_keys_of_the_view_order_as_paths_do(self, left: tuple[str, ...], right: tuple[str, ...]) -> None:
        assert (path_key(left) < path_key(right)) == (left < right)


class TestContentTypes:
    @pytest.mark.parametrize(
        ("name", "head", "expected"),
        [
            ("a.odt", b"PK\x03\x04" + bytes(60), "application/vnd.oasis.opendocument.text"),
            ("a.zip", b"PK\x03\x04" + bytes(60), "application/zip"),
            ("a.jpg", b"%PDF-1.4\n", "application/pdf"),
            ("a.json", b"{}", "application/json"),
            ("a.md", b"# x", "text/markdown"),
            ("a.js", b"x", "text/javascript"),
            ("http:a.b", b"x", "text/plain"),
            ("data:text/html", b"\x00", "application/octet-stream"),
            ("x.tar.xz", b"", "application/x-xz"),
        ],
    )
    def test_bytes_then_name(self, name: str, head: bytes, expected: str) -> None:
        assert choose_content_type(None, head, name) == expected

    @given(st.binary(max_size=300), SEGMENT)
    def test_every_content_has_a_type(self, head: bytes, name: str) -> None:
        content_type = choose_content_type(None, head, name)
        assert choose_content_type(content_type, b"", "") == content_type

    @given(st.text(max_size=40))
    def test_any_header_is_taken_or_refused(self, header: str) -> None:
        try:
            chosen = choose_content_type(header, b"", "a.txt")
        except InvalidInput:
            return
        assert chosen.isascii()
        assert chosen.isprintable()

    def test_a_hostile_header_ends(self) -> None:
        """A matcher that tries every way would not come back."""
        with pytest.raises(InvalidInput):
            choose_content_type("a/b" + ";  " * 80 + "=", b"", "")

    def test_what_is_packed_already(self) -> None:
        assert is_compressed("image/png")
        assert is_compressed("application/zip; x=1")
        assert not is_compressed("image/svg+xml")
        assert not is_compressed("text/plain")
        assert not is_compressed(None)


class TestJson:
    @given(JSON)
    def test_a_document_survives(self, value: Any) -> None:
        assert decode_json(encode_json(value), "It") == value

    @given(st.binary(max_size=40))
    def test_any_bytes_are_a_document_or_refused(self, content: bytes) -> None:
        with suppress(InvalidInput):
            decode_json(content, "It")

    @given(JSON, JSON)
    def test_a_merge_changes_neither_side_and_twice_is_once(self, target: Any, patch: Any) -> None:
        before = encode_json(target), encode_json(patch)
        merged = apply_merge_patch(target, patch)
        assert (encode_json(target), encode_json(patch)) == before
        assert apply_merge_patch(merged, patch) == merged

    @given(JSON)
    def test_every_value_has_a_pointer(self, document: Any) -> None:
        for pointer, value in _pointers(document, ""):
            assert resolve_pointer(document, pointer) == value

    @given(JSON, st.text("/~01a", max_size=6))
    def test_any_pointer_finds_or_refuses(self, document: Any, pointer: str) -> None:
        with suppress(InvalidInput, NotFound):
            resolve_pointer(document, pointer)


def _pointers(value: Any, base: str) -> Iterator[tuple[str, Any]]:
    yield base, value
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, item in members:
        yield from _pointers(item, f"{base}/{str(key).replace('~', '~0').replace('/', '~1')}")


class TestParts:
    @given(st.text("a\nü", max_size=30), st.integers(1, 10), st.integers(0, 10), st.integers(1, 4))
    def test_lines_of_any_pieces(self, text: str, first: int, more: int, width: int) -> None:
        rows = text.split("\n")
        lines = [row + "\n" for row in rows[:-1]] + ([rows[-1]] if rows[-1] else [])
        content = text.encode()
        pieces = [content[at : at + width] for at in range(0, len(content), width)]
        selected, last = select_lines(pieces, first, first + more, Budget(1000, 1000))
        expected = lines[first - 1 : first + more]
        assert selected.decode() == "".join(expected)
        assert last == first - 1 + len(expected)

    @given(st.text("aü\U0001f600", max_size=30), st.integers(0, 20), st.integers(0, 20), st.integers(1, 4))
    def test_characters_of_any_pieces(self, text: str, start: int, more: int, width: int) -> None:
        content = text.encode()
        pieces = [content[at : at + width] for at in range(0, len(content), width)]
        budget = Budget(1000, 1000)
        assert select_characters(pieces, start, start + more, budget) == text[start : start + more]
        assert select_characters(pieces, start, None, budget) == text[start:]

    def test_a_budget_ends(self) -> None:
        with pytest.raises(PayloadTooLarge):
            select_lines([b"x" * 50] * 3, 1, None, Budget(100, 1000))
        with pytest.raises(PayloadTooLarge):
            select_lines([b"x" * 50] * 3, 2, None, Budget(1000, 100))


class TestArchives:
    @given(
        st.dictionaries(PATH.map("/".join), st.binary(max_size=300), max_size=5),
        st.booleans(),
        st.integers(-(10**12), 10**13),
    )
    def test_what_goes_in_comes_out(self, files: dict[str, bytes], compress: bool, time_ms: int) -> None:
        members = [ZipMember(name, len(data), time_ms, [data], compress) for name, data in files.items()]
        archive = zipfile.ZipFile(io.BytesIO(b"".join(stream_zip(members))))
        assert archive.testzip() is None
        assert {info.filename: archive.read(info) for info in archive.infolist()} == files

    @pytest.mark.parametrize("compress", [True, False])
    def test_a_large_member_is_streamed(self, compress: bool) -> None:
        pieces = [bytes([number]) * 300_000 for number in range(12)]
        seen = 0

        def content() -> Iterator[bytes]:
            nonlocal seen
            for piece in pieces:
                seen += 1
                yield piece

        stream = stream_zip([ZipMember("big", 3_600_000, 0, content(), compress)])
        head = next(stream)
        assert seen == 0
        archive = zipfile.ZipFile(io.BytesIO(head + b"".join(stream)))
        assert archive.read("big") == b"".join(pieces)

    def test_more_than_65535_members_need_zip64(self) -> None:
        members = (ZipMember(f"{number}", 0, 0) for number in range(70_000))
        archive = zipfile.ZipFile(io.BytesIO(b"".join(stream_zip(members))))
        assert len(archive.namelist()) == 70_000

    @pytest.mark.parametrize("compress", [True, False])
    def test_large_sizes_are_stated_in_64_bits(self, monkeypatch: pytest.MonkeyPatch, compress: bool) -> None:
        monkeypatch.setattr(zip_stream, "_NEAR_4_GIB", 2 << 20)
        pieces = [bytes([number]) * (1 << 20) for number in range(3)]
        members = [ZipMember("huge", 3 << 20, 0, pieces, compress), ZipMember("behind", 6, 0, [b"behind"])]
        content = b"".join(stream_zip(members))
        assert content[4:6] == (45).to_bytes(2, "little")
        archive = zipfile.ZipFile(io.BytesIO(content))
        assert archive.testzip() is None
        assert archive.read("huge") == b"".join(pieces)
        assert archive.read("behind") == b"behind"

    def test_offsets_beyond_4_gib(self) -> None:
        member = ZipMember("behind", 6, 0, [b"behind"])
        written = zip_stream._Written(length=100, compressed=6)
        header = zip_stream._central_header(member, written, 5 << 30)
        assert (5 << 30).to_bytes(8, "little") in header
        assert header[42:46] == b"\xff" * 4

    def test_a_content_of_another_size_breaks_the_stream(self) -> None:
        for size in (1, 2 << 20):
            with pytest.raises(ValueError, match="states"):
                list(stream_zip([ZipMember("a", size, 0, [b"xx"])]))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"BMW and MZ are letters, not a bitmap and a program.", "text/plain"),
        (b"%PDF-1.7\n% all text so far\n", "application/pdf"),
        (b"{\\rtf1 text}", "application/rtf"),
        (b"BM\x36\x00\x0c\x00\x00\x00\x00\x00\x36\x00\x00\x00", "image/bmp"),
    ],
)
def test_prose_is_not_taken_for_a_format_whose_first_letters_it_shares(head: bytes, expected: str) -> None:
    assert choose_content_type(None, head, "name") == expected
