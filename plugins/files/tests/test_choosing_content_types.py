"""Which media type a stored file gets: what was stated, then the bytes, then the name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import InvalidInput
from svc_files.content_types import choose_content_type, is_compressed

from .path_strategies import SEGMENT  # noqa: TID252


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
