"""Streams in the process of the test: who sees what, from where, and when it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest
from svc_events import pulses
from svc_events.api import EventBatch, Place
from svc_events_sse import shared_pieces, streams
from svc_events_sse.frames import frame
from svc_events_sse.heartbeat import Heartbeat

from svc.plugin import Database, Identity, ScopedRule, parse_path
from svc.plugins import Plugins, disable, enable
from svc_testing import PathRights, load_with_testing_auth, serve_in_process

PLUGINS = ("events", "events.sse")
ANN = "7f0a2b1c-0000-4000-8000-00000000000a"


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    return PLUGINS


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load_with_testing_auth(*PLUGINS)


class Stream:
    """An answer that is read when a test wants more of it."""

    def __init__(self, pieces: Iterator[bytes], status: str, headers: Mapping[str, str]) -> None:
        self.status = int(status[:3])
        self.headers = headers
        self._pieces = pieces

    def body(self) -> bytes:
        return b"".join(self._pieces)

    def more(self) -> list[dict[str, Any]]:
        """The events of the next piece; none at the end."""
        return events_of(next(self._pieces, b""))

    def rest(self) -> list[dict[str, Any]]:
        return events_of(self.body())

    def close(self) -> None:
        self._pieces.close()  # type: ignore[attr-defined]


def events_of(piece: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in piece.split(b"\n") if line.startswith(b"data: ")]


class Served:
    """The application, its database, and whoever calls it."""

    def __init__(self, app: Any, database: Database, become: Callable[[Identity | None], None]) -> None:
        self.app = app
        self.database = database
        self.become = become

    @contextmanager
    def stream(
        self, query: str = "", path: str = "/system/events", last: str | None = None
    ) -> Iterator[Stream]:
        environ: dict[str, Any] = {"PATH_INFO": path, "QUERY_STRING": query, "RAW_URI": path}
        if last is not None:
            environ["HTTP_LAST_EVENT_ID"] = last
        setup_testing_defaults(environ)
        begun: list[Any] = []
        pieces: Any = self.app(
            environ, lambda status, headers, exc_info=None: begun.extend((status, headers))
        )
        made = Stream(iter(pieces), begun[0], {name.lower(): value for name, value in begun[1]})
        try:
            yield made
        finally:
            if hasattr(pieces, "close"):
                pieces.close()

    def all(self, query: str = "") -> list[dict[str, Any]]:
        """Everything from the beginning, as the caller sees it now."""
        with self.stream(
            f"follow=false&last_event_id=0&events=entries_created,entries_deleted,gap&{query}"
        ) as one:
            return one.rest()

    def put(self, *paths: str) -> None:
        with self.database.transaction() as changes:
            for path in paths:
                changes.put(parse_path(path), b"x")


@pytest.fixture
def served(tmp_path: Path, plugins: Plugins) -> Iterator[Served]:
    with serve_in_process(tmp_path / "served.svcdb", plugins) as (app, database, mode):

        def become(other: Identity | None) -> None:
            mode.identity = other

        yield Served(app, database, become)


class Shared(PathRights):
    """Rights that say which others are the same."""

    def __init__(self, flags: Mapping[str, str], fingerprint: bytes) -> None:
        super().__init__(flags)
        self.fingerprint = fingerprint


def somebody(flags: Mapping[str, str], rules: Sequence[ScopedRule] = ()) -> Identity:
    return Identity(user_id=ANN, name="ann", rights=PathRights(flags), rules=tuple(rules))


def paths(events: list[dict[str, Any]]) -> list[str]:
    return [entry["path"] for event in events for entry in event["payload"]["entries"]]


# -- what is asked for ------------------------------------------------------------------------------


def test_a_stream_says_what_it_is_and_that_it_is_ready(served: Served) -> None:
    for path in ("/system/events", "/events/stream"):
        with served.stream(path=path) as stream:
            assert stream.status == 200
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert stream.headers["cache-control"] == "no-store"
            assert stream.headers["x-accel-buffering"] == "no"
            (ready,) = stream.more()
            assert ready["event_type"] == "server_ready"
            payload = ready["payload"]
            assert payload["status"] == "ready"
            assert isinstance(payload["version"], str)
            assert payload["uptime_ms"] >= 0
            assert payload["startup_time"] <= ready["timestamp"]


def test_a_filter_that_leaves_it_out_suppresses_it(served: Served) -> None:
    with served.stream("events=entries_created") as stream:
        assert stream.more() == []
        served.put("/a")
        assert [one["event_type"] for one in stream.more()] == ["entries_created"]
    with served.stream("events=server_ready,entries_deleted") as stream:
        assert [one["event_type"] for one in stream.more()] == ["server_ready"]


@pytest.mark.parametrize("query", ["events=nothing", "last_event_id=x", "follow=perhaps"])
def test_nonsense_is_refused(served: Served, query: str) -> None:
    with served.stream(query) as stream:
        assert stream.status == 400
        answer = json.loads(stream.body())
        assert answer["code"] == "INVALID_INPUT"
        assert ("known" in answer) == query.startswith("events")
    with served.stream(last="nonsense") as stream:
        assert stream.status == 400


def test_nobody_without_credentials_listens(served: Served) -> None:
    served.become(None)
    for path in ("/system/events", "/events/stream", "/events/me"):
        with served.stream(path=path) as stream:
            assert stream.status == 401


def test_where_the_driver_is_disabled_there_are_no_streams(served: Served, plugins: Plugins) -> None:
    with served.stream() as stream:
        stream.more()
        disable(served.database, plugins, "events.sse")
        assert stream.rest() == []
        with served.stream() as other:
            assert other.status == 404
        enable(served.database, plugins, "events.sse", {})


# -- coming back ------------------------------------------------------------------------------------


def test_a_client_that_comes_back_gets_what_it_missed(served: Served) -> None:
    served.put("/a")
    with served.stream() as stream:
        stream.more()
        served.put("/b")
        (seen,) = stream.more()
    served.put("/c")
    served.put("/d")
    with served.stream("follow=false", last=seen["event_id"]) as stream:
        ready, *missed = stream.rest()
        assert ready["event_id"] == seen["event_id"]
        assert paths(missed) == ["/c", "/d"]
    with served.stream(f"follow=false&last_event_id={seen['event_id']}") as stream:
        assert paths(stream.rest()[1:]) == ["/c", "/d"]


def test_the_field_wins_over_the_address(served: Served) -> None:
    served.put("/a")
    served.put("/b")
    behind = served.all()[0]["event_id"]
    with served.stream("follow=false&last_event_id=0&events=entries_created", last=behind) as stream:
        assert paths(stream.rest()) == ["/b"]


def test_who_is_too_far_behind_gets_a_gap(served: Served, plugins: Plugins) -> None:
    enable(served.database, plugins, "events.sse", {"replay_commits": 2})
    for name in "abcd":
        served.put(f"/{name}")
    gap, *rest = served.all()
    assert gap["event_type"] == "gap"
    assert gap["payload"]["reason"] == "behind"
    assert paths(rest) == ["/c", "/d"]
    assert gap["payload"]["to"] < rest[0]["event_id"]


def test_a_log_that_went_back_gives_a_gap_whatever_was_asked_for(served: Served) -> None:
    with served.stream("follow=false&events=entries_deleted", last="000000009999.000001") as stream:
        (gap,) = stream.rest()
    assert (gap["event_type"], gap["payload"]["reason"]) == ("gap", "ahead")
    assert gap["event_id"] == gap["payload"]["to"]


def test_what_is_the_same_for_several_is_made_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(streams, "frame", lambda found: made.append(found) or frame(found))
    query = "events=entries_created"
    with served.stream(query) as one, served.stream(query) as other, served.stream() as third:
        for stream in (one, other, third):
            stream.more()
        served.put("/a", "/b/1")
        for stream in (one, other, third):
            assert paths(stream.more()) == ["/a", "/b/1"]
        assert len(made) == 2, "once for each filter"
        served.become(Identity(user_id=ANN, name="ann", rights=Shared({"/b": "r"}, b"1")))
        served.put("/a", "/b/2")
        assert paths(one.more()) == ["/b/2"]
        assert paths(other.more()) == ["/b/2"]
        assert len(made) == 3
        served.become(Identity(user_id=ANN, name="ann", rights=Shared({"/a": "r"}, b"2")))
        assert paths(third.more()) == ["/a"], "other rights, another piece"


def test_pieces_for_others_are_bounded() -> None:
    shared = shared_pieces.SharedPieces()
    batches = [EventBatch([], Place(number)) for number in range(200)]
    for batch in batches:
        shared.keep(batch, "small", (b"x", 1))
    assert sum(shared.find(batch, "small") is not None for batch in batches) == 64
    for number in range(10):
        for batch in batches[-3:]:
            shared.keep(batch, number, (b"x" * 1_000_000, 1))
    pieces = [shared.find(batch, number) for batch in batches for number in range(10)]
    assert 0 < sum(piece is not None for piece in pieces) <= 8
    assert shared.find(EventBatch([], Place(199)), 9) is None, "one that is equal is another"


# -- who sees what ----------------------------------------------------------------------------------


def test_a_user_sees_what_was_granted_and_no_trace_of_the_rest(served: Served) -> None:
    served.put("/a/1", "/b/1")
    served.put("/b/2")
    served.put("/c/1")
    served.become(somebody({"/": "", "/a": "r", "/c": "l"}))
    events = served.all()
    assert paths(events) == ["/a/1", "/c/1"]
    assert len(events) == 2
    assert served.all("path_prefix=/b") == []
    served.become(somebody({}))
    assert served.all() == []


def test_a_scoped_key_sees_what_its_rules_name(served: Served) -> None:
    served.put("/a/1", "/b/1")
    everything = {"/": "crudlify"}
    served.become(somebody(everything, [ScopedRule("/b/**", "-r--l---")]))
    assert paths(served.all()) == ["/b/1"]
    root = Identity(user_id=ANN, name="root", is_root=True, rules=(ScopedRule("/a/**", "-r--l---"),))
    served.become(root)
    assert paths(served.all()) == ["/a/1"]


def test_rights_that_are_taken_away_end_the_events_of_a_stream_that_is_open(served: Served) -> None:
    served.become(somebody({"/": "rl"}))
    with served.stream("events=entries_created,server_ready") as stream:
        stream.more()
        served.put("/a/1")
        assert paths(stream.more()) == ["/a/1"]
        served.become(somebody({"/": "", "/b": "r"}))
        served.put("/a/2")
        served.put("/b/2")
        assert paths(stream.more()) == ["/b/2"]


def test_credentials_that_end_end_the_stream(served: Served) -> None:
    with served.stream() as stream:
        stream.more()
        served.become(None)
        served.put("/a")
        assert stream.rest() == []


def test_nothing_but_what_is_addressed_to_the_caller_is_in_the_stream_of_their_own(served: Served) -> None:
    served.put("/a")
    with served.stream("follow=false&last_event_id=0", path="/events/me") as stream:
        assert stream.status == 200
        assert stream.rest() == []


# -- what a stream says of itself --------------------------------------------------------------------


def test_a_quiet_stream_has_a_pulse_and_pings(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulses, "_LEAST_MS", 50)
    monkeypatch.setattr(Heartbeat, "interval_ms", lambda self, configuration: 50)
    monkeypatch.setattr(streams, "PING_SECONDS", 0.05)
    with served.stream() as stream:
        (ready,) = stream.more()
        beats: list[dict[str, Any]] = []
        pieces = b""
        while len(beats) < 3 or b": ping\n\n" not in pieces:
            piece = next(stream._pieces)
            pieces += piece
            beats += events_of(piece)
    for beat in beats:
        assert beat["event_type"] == "heartbeat"
        assert set(beat["payload"]) == {"intent_time", "construct_time", "node_id"}
        assert beat["payload"]["intent_time"] % 50 == 0
        assert beat["payload"]["intent_time"] <= beat["payload"]["construct_time"]
        assert beat["event_id"] == ready["event_id"]


def test_streams_are_bounded_and_a_client_that_leaves_frees_its_place(
    served: Served, plugins: Plugins
) -> None:
    enable(served.database, plugins, "events.sse", {"maximum_streams": 2})
    with served.stream() as one, served.stream() as two:
        one.more()
        two.more()
        with served.stream() as refused:
            assert refused.status == 503
            answer = json.loads(refused.body())
            assert (answer["code"], answer["limit"]) == ("SERVICE_UNAVAILABLE", 2)
            assert "retry-after" in refused.headers
        two.close()
        with served.stream() as three:
            assert three.status == 200
            assert [event["event_type"] for event in three.more()] == ["server_ready"]


def test_a_stream_ends_when_the_process_stops(served: Served) -> None:
    with served.stream() as stream:
        stream.more()
        served.app.lifetime.stop()
        assert stream.rest() == []
