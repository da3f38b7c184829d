"""Files and rows of the index that are damaged or gone: it is said, and the index is made anew by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from svc_query.commands.statuses import status_lines
from svc_query.indexing import index_status, read_status
from svc_query.testing.indexed_database import Indexed

from svc.errors import DamagedView, ServiceUnavailable

TITLE = {"name": "title", "type": ["exact", "names"]}
FILES = 300


@pytest.fixture
def made(open_index: Callable[..., Indexed]) -> Path:
    """The directory of the files of a closed database."""
    indexed = open_index()
    indexed.configure("/", TITLE)
    indexed.put({f"/a/{number}.json": {"title": f"t{number}"} for number in range(FILES)})
    indexed.finish()
    directory: Path = indexed.reader.read(lambda storage: storage.directory)
    indexed.close()
    return directory


def ask(indexed: Indexed) -> object:
    """Everything that needs an index, and the status."""
    status = indexed.read(index_status, minimum=0)
    below = indexed.read(lambda snapshot: len(snapshot.below(("a",))))
    backward = indexed.read(lambda snapshot: len(list(snapshot.in_path_order((), reverse=True))))
    names = indexed.read(
        lambda snapshot: [one.reader.size for one in snapshot.indexes("title") if one.type.name == "names"]
    )
    found = indexed.found("title", b"st7")
    return status["documents"], below, backward, names, found


WHOLE = (FILES, FILES, FILES, [FILES], {"/a/7.json"})


def heal(indexed: Indexed) -> int:
    """Asks until nothing is refused; returns how often something was."""
    for refused in range(20):
        try:
            ask(indexed)
        except ServiceUnavailable as error:
            if not error.details["retry_after"]:
                raise
            continue
        return refused
    pytest.fail("It is refused again and again.")


def index_directories(directory: Path) -> list[Path]:
    return sorted(directory.glob("index-*"))


def test_missing_files_of_any_index_are_told_and_made_anew(
    made: Path, open_index: Callable[..., Indexed]
) -> None:
    for place in range(len(index_directories(made))):
        directory = index_directories(made)[place]
        removed = [path for path in directory.iterdir() if path.is_file()]
        for path in removed:
            path.unlink()
        indexed = open_index()
        if removed:
            heal(indexed)
        indexed.finish()
        assert ask(indexed) == WHOLE
        indexed.close()
    indexed = open_index()
    damage = indexed.reader.damage()
    assert damage is not None
    assert "damaged or gone" in damage.reason


def test_missing_files_that_a_flush_needs_do_not_stop_it(
    made: Path, open_index: Callable[..., Indexed]
) -> None:
    for path in made.glob("index-*/*"):
        if path.suffix != ".seg" and path.is_file():
            path.unlink()
    indexed = open_index()
    indexed.put({f"/b/{number}.json": {"title": f"b{number}"} for number in range(FILES)})
    indexed.finish()
    assert indexed.reader.damage() is not None
    assert indexed.found("title", b"sb7") == {"/b/7.json"}
    indexed.read(index_status)


def test_damage_behind_the_header_of_a_segment_is_told_and_made_anew(
    made: Path, open_index: Callable[..., Indexed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc_query.segments.segment.READ_WHOLE", 0)
    for path in made.glob("index-*/*.seg"):
        content = bytearray(path.read_bytes())
        content[80:120] = bytes(byte ^ 0xFF for byte in content[80:120])
        path.write_bytes(content)
    indexed = open_index()
    assert heal(indexed)
    indexed.finish()
    assert ask(indexed) == WHOLE


def test_flipped_bytes_of_rows_are_told_and_everything_is_made_anew(
    made: Path, open_index: Callable[..., Indexed]
) -> None:
    data = made.parent.parent / "data.mdb"
    content = data.read_bytes()
    assert b"\x01299.json" in content
    data.write_bytes(content.replace(b"\xa4t299", b"\xa4t298"))
    assert data.read_bytes() != content
    indexed = open_index()
    with pytest.raises(DamagedView, match=r"made anew") as raised:
        indexed.contents()
    assert raised.value.details["retry_after"]
    indexed.finish()
    assert ask(indexed) == WHOLE
    assert indexed.reader.damage() is not None
    assert indexed.contents()["/a/299.json"]["title"] == ["t299"]


def test_the_status_is_told_whatever_is_damaged(made: Path, open_index: Callable[..., Indexed]) -> None:
    for path in made.glob("index-*/*"):
        if path.is_file():
            path.unlink()
    indexed = open_index()
    status = read_status(indexed.database, (), None, 100, wait_until=0.0)
    assert {job["reason"] for job in status["jobs"]} == {"repair"}
    assert "damaged or gone" in status["damage"]["reason"]
    assert any(line.startswith("damaged data were found") for line in status_lines(status))
    indexed.finish()
    assert ask(indexed) == WHOLE
