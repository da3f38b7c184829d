"""ZIP archives as a stream: every program opens them, whatever their size."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_files import zip_stream
from svc_files.zip_stream import ZipMember, stream_zip

from .path_strategies import PATH  # noqa: TID252


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

    def test_work_without_a_member_is_an_empty_piece(self) -> None:
        """Whoever sends the archive may notice there that the client has gone."""
        pieces = list(stream_zip([None, ZipMember("a", 1, 0, [b"x"]), None, None]))
        assert [bool(piece) for piece in pieces[:4]] == [False, True, False, False]
        assert zipfile.ZipFile(io.BytesIO(b"".join(pieces))).namelist() == ["a"]

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
