"""A server that answers what it should not: nothing outside of the directory is touched, and it is said."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import cbor2
import pytest
from svc_mirror.client.server import Server
from svc_mirror.client.state import State
from svc_mirror.client.values import Base, Kind, Remote
from svc_mirror.models import Changes, DiffPage, FileState, GonePath

from svc.errors import Conflict, CorruptRecord, ServiceUnavailable, UsageError


class Answer:
    def __init__(self, payload: bytes) -> None:
        self._payload = payload

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def content(self) -> bytes:
        return self._payload


class Liar:
    """Answers what a test says."""

    class address:  # noqa: N801 - as a client has it
        url = "http://liar"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def call(self, *_: Any) -> Any:
        return self.answer

    def stream(self, *_: Any, **__: Any) -> Answer:
        return Answer(self.answer if isinstance(self.answer, bytes) else cbor2.dumps(self.answer))


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    opened = State(str(tmp_path / "state.sqlite"), {"server": "http://liar", "path": "/m"})
    yield opened
    opened.close()


def page(path: str) -> DiffPage:
    file = FileState(
        path=path,
        hash="0" * 64,
        size=1,
        content_type="",
        created_at=0,
        updated_at=0,
        is_readable=True,
        chunk_hashes=None,
        chunk_sizes=None,
    )
    changes = Changes(files_added=[file], directories_added=[GonePath("/m/d")])
    return DiffPage(
        root_hash=None,
        since="token",
        has_more=False,
        is_first=True,
        is_whole=True,
        changes=changes,
        chunk_hashes_needed=[],
    )


@pytest.mark.parametrize("path", ["/m/../../etc/passwd", "/m/a\0b", "/m/" + "x" * 300, "/m/\ud800"])
def test_a_path_that_cannot_be_ends_the_run(state: State, path: str) -> None:
    with pytest.raises(ServiceUnavailable):
        Server(Liar(page(path)), "/m").fetch_changes(state)  # type: ignore[arg-type]
    assert state.fact("token") is None
    assert state.remote_children("") == {}


def test_what_lies_elsewhere_is_not_taken_in(state: State) -> None:
    Server(Liar(page("/other/file")), "/m").fetch_changes(state)  # type: ignore[arg-type]
    assert list(state.remote_children("")) == ["d"]


def test_a_file_in_the_place_of_the_directory_is_said(state: State) -> None:
    with pytest.raises(UsageError, match="no directory"):
        Server(Liar(page("/m")), "/m").fetch_changes(state)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "answer",
    [
        b"\xff",
        [],
        {},
        {"chunks": [], "missing": []},
        {"chunks": [{"hash": "0" * 64, "data": b"other"}], "missing": []},
        {"chunks": [{"hash": "0" * 64, "data": "text"}], "missing": []},
        {"chunks": 1, "missing": []},
    ],
)
def test_chunks_that_are_not_those_asked_for_end_the_run(answer: Any) -> None:
    with pytest.raises(ServiceUnavailable):
        Server(Liar(answer), "/m").read_chunks([bytes(32)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "answer",
    [
        {"chunk_hashes": ["0" * 64], "chunk_sizes": []},
        {"chunk_hashes": ["0"], "chunk_sizes": [1]},
        {"chunk_hashes": ["0" * 64], "chunk_sizes": [1 << 40]},
        {"chunk_hashes": [1], "chunk_sizes": [1]},
    ],
)
def test_names_of_chunks_that_cannot_be_end_the_run(answer: Any) -> None:
    with pytest.raises(ServiceUnavailable):
        list(Server(Liar(answer), "/m").name_chunks("a", "0" * 64))  # type: ignore[arg-type]


def test_a_state_is_of_one_directory_and_says_when_it_is_damaged(tmp_path: Path) -> None:
    place = str(tmp_path / "state.sqlite")
    State(place, {"server": "a", "path": "/m"}).close()
    with pytest.raises(Conflict, match="mirrors another server: a"):
        State(place, {"server": "b", "path": "/m"})
    Path(place).write_bytes(b"no database at all" * 100)
    with pytest.raises(CorruptRecord, match="Move the directory"):
        State(place, {"server": "a", "path": "/m"})


def test_what_was_stored_is_unseen_until_the_server_tells_and_over_restarts(tmp_path: Path) -> None:
    place, identity = str(tmp_path / "state.sqlite"), {"server": "a", "path": "/m"}
    opened = State(place, identity)
    with opened.transaction():
        for path in ("same", "other", "gone"):
            opened.set_base(path, Base(Kind.FILE, "mine"))
            opened.note_unseen(path)
    opened.close()
    opened = State(place, identity)
    with opened.transaction():
        opened.set_remote("same", Remote(Kind.FILE, "mine"))
        opened.set_remote("other", Remote(Kind.FILE, "theirs"))
        opened.set_remote("gone", None)
    assert [opened.is_unseen(path) for path in ("same", "other", "gone")] == [False, False, True]
    assert (opened.base("same"), opened.base("other")) == (Base(Kind.FILE, "mine"), None)
    opened.close()
    database = sqlite3.connect(place)
    database.execute("DROP TABLE unseen")
    database.close()
    opened = State(place, identity)
    assert not opened.has_unseen()
    assert opened.base("gone") == Base(Kind.FILE, "mine")
    opened.close()
