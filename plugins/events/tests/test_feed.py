"""Events of commits: what an event names, its place, and what whoever reads them gets."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from svc_events import feed as feeds
from svc_events.api import (
    BEGINNING,
    EVENT_TYPES,
    EventData,
    EventFeed,
    EventFilter,
    EventType,
    Onlooker,
    Place,
    feed_of,
    parse_event_names,
    parse_place,
)
from svc_events.entries import MOST_ENTRIES, EntryEvents

from svc.errors import InvalidInput, NotFound, ServiceUnavailable
from svc.plugin import Database, Extension, PathChange, parse_path
from svc_cli import extensions_of
from svc_testing import simulate_collection

ALL = Onlooker(None)


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    return ("events",)


def read(
    feed: EventFeed, place: Place = BEGINNING, wanted: EventFilter | None = None, by: Onlooker = ALL
) -> list[Any]:
    """All events behind a place, as an onlooker gets them."""
    wanted = wanted or EventFilter()
    found = []
    while (batch := feed.after(place)) is not None:
        assert batch.place > place or batch.events
        place = batch.place
        found += [one.event for event in batch.events if (one := wanted.select(event, by)) is not None]
    return found


def told(events: list[Any]) -> list[tuple[str, list[str]]]:
    return [(one.event_type, [entry["path"] for entry in one.payload["entries"]]) for one in events]


def put(database: Database, *paths: str) -> None:
    with database.transaction() as changes:
        for path in paths:
            changes.put(parse_path(path), b"x")


# -- entries ---------------------------------------------------------------------------------------


def test_a_commit_is_an_event_of_each_kind(database: Database) -> None:
    put(database, "/a", "/d/b")
    with database.transaction() as changes:
        changes.move(("a",), ("c",))
        changes.copy(("d",), ("e",))
        changes.mkdir(("f",))
        changes.link(("g",), "/c")
    with database.transaction() as changes:
        changes.delete(("d",), recursive=True)
    assert told(read(feed_of(database))) == [
        ("entries_created", ["/a", "/d/b"]),
        ("entries_deleted", ["/a"]),
        ("entries_created", ["/c", "/e", "/f", "/g"]),
        ("entries_deleted", ["/d"]),
    ]


def test_what_is_deleted_and_stored_again_is_told_in_that_order(database: Database) -> None:
    put(database, "/d/a", "/x")
    with database.transaction() as changes:
        changes.delete(("d",), recursive=True)
        changes.put(("d", "b"), b"2")
        changes.delete(("x",))
    assert told(read(feed_of(database)))[1:] == [
        ("entries_deleted", ["/d"]),
        ("entries_deleted", ["/x"]),
        ("entries_created", ["/d/b"]),
    ]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.lists(st.sampled_from("ab"), min_size=1, max_size=3)), max_size=20)
)
def test_replaying_the_events_gives_what_replaying_the_commit_gives(
    changes: list[tuple[bool, list[str]]],
) -> None:
    class Commit:
        def changes_and_origins(self) -> Iterator[tuple[PathChange, None]]:
            for is_put, path in changes:
                yield PathChange("put" if is_put else "delete", tuple(path)), None

    def apply(present: set[tuple[str, ...]], is_put: bool, path: tuple[str, ...]) -> set[tuple[str, ...]]:
        if is_put:
            return present | {path}
        return {one for one in present if one[: len(path)] != path}

    by_commit: set[tuple[str, ...]] = set()
    for is_put, path in changes:
        by_commit = apply(by_commit, is_put, tuple(path))
    by_events: set[tuple[str, ...]] = set()
    for data in EntryEvents().events(Commit(), None):  # type: ignore[arg-type]
        assert data is not None
        for entry in data.payload["entries"]:
            by_events = apply(by_events, data.event_type == "entries_created", parse_path(entry["path"]))
    assert by_events == by_commit


def test_a_large_commit_is_several_events_and_no_path_is_left_out(database: Database) -> None:
    paths = [f"/f{number:06d}" for number in range(10_250)]
    put(database, *paths)
    put(database, "/last")
    feed = feed_of(database)
    events = read(feed)
    assert [entry["path"] for one in events for entry in one.payload["entries"]] == [*paths, "/last"]
    assert max(len(one.payload["entries"]) for one in events) == MOST_ENTRIES
    assert [one.event_id for one in events] == sorted({one.event_id for one in events})
    # From the middle of the commit, by somebody else who has kept nothing.
    middle = parse_place(events[7].event_id)
    feed.forget()
    assert read(feed, middle) == events[8:]
    assert read(EventFeed(database, lambda: extensions_of_feed(database)), middle) == events[8:]


def extensions_of_feed(database: Database) -> Mapping[str, Extension[EventType]]:
    return feed_of(database)._types_in_use()


def test_files_of_forks_and_the_system_tree_are_no_entries(database: Database) -> None:
    put(database, "/a")
    with database.transaction() as changes:
        changes.set_ref("forks/draft", database.head().root)
        changes.put_system(("anything",), b"1")
    with database.transaction(ref="forks/draft") as changes:
        changes.put(("b",), b"1")
    assert told(read(feed_of(database))) == [("entries_created", ["/a"])]


def test_a_return_of_head_is_what_differs_and_after_a_collection_the_root(database: Database) -> None:
    put(database, "/a", "/b")
    root = database.head().root
    put(database, "/c")
    with database.transaction() as changes:
        changes.set_ref("HEAD", root)
    feed = feed_of(database)
    events = read(feed)
    assert told(events)[2:] == [("entries_deleted", ["/c"])]
    put(database, "/d")
    simulate_collection(database)
    feed.forget()
    again = read(feed)
    assert told(again)[2:] == [
        ("entries_deleted", ["/"]),
        ("entries_created", ["/"]),
        ("entries_created", ["/d"]),
    ]
    assert [one.event_id for one in again[:2]] == [one.event_id for one in events[:2]]


def head_back_to(database: Database, root: bytes) -> list[tuple[str, list[str]]]:
    """What is told of a return of HEAD."""
    place = feed_of(database).end()
    with database.transaction() as changes:
        changes.set_ref("HEAD", root)
    return told(read(feed_of(database), place))


def test_a_return_of_head_over_many_differences_tells_each_in_parts(database: Database) -> None:
    gone = [f"/d/gone{number:05d}" for number in range(1_200)]
    back = [f"/d/back{number:05d}" for number in range(700)]
    put(database, "/d/stays", *back)
    root = database.head().root
    with database.transaction() as changes:
        for path in back:
            changes.delete(parse_path(path))
    put(database, *gone)
    events = head_back_to(database, root)
    assert [(name, len(paths)) for name, paths in events] == [
        *[("entries_deleted", size) for size in (500, 500, 200)],
        *[("entries_created", size) for size in (500, 200)],
    ]
    assert [path for name, paths in events for path in paths] == gone + back
    # From the middle of it, by who has kept nothing.
    feed = feed_of(database)
    everything = read(feed)
    feed.forget()
    middle = everything[-3]
    assert read(feed, parse_place(middle.event_id)) == everything[-2:]


def test_where_very_much_differs_the_topmost_directories_are_told_in_both_kinds(database: Database) -> None:
    put(database, "/all/a/old", "/all/b/old", "/all/file", "/all/same/x")
    root = database.head().root
    put(database, "/all/new", *(f"/all/{name}/{number}" for name in "ac" for number in range(5_001)))
    with database.transaction() as changes:
        changes.delete(parse_path("/all/b/old"))
        changes.put(parse_path("/all/file"), b"changed")
    assert head_back_to(database, root) == [
        ("entries_deleted", ["/all/a", "/all/b", "/all/c", "/all/new"]),
        ("entries_created", ["/all/a", "/all/b", "/all/file"]),
    ]


def test_where_even_the_names_of_a_directory_are_too_many_it_is_told_itself(database: Database) -> None:
    put(database, "/d/e/keeps")
    root = database.head().root
    put(database, *(f"/d/e/{number:05d}" for number in range(10_001)))
    assert head_back_to(database, root) == [("entries_deleted", ["/d/e"]), ("entries_created", ["/d/e"])]


@pytest.mark.parametrize("prefix", ["/a/b/c", "/a/b/", "/a/b", "/a/"])
def test_what_happened_to_a_directory_above_a_prefix_reaches_who_follows_it(
    database: Database, prefix: str
) -> None:
    put(database, "/a/b/c/d", "/other")
    place = feed_of(database).end()
    with database.transaction() as changes:
        changes.copy(("a",), ("z",))
        changes.move(("a",), ("y",))
        changes.move(("y",), ("a",))
        changes.delete(("a",), recursive=True)
        changes.put(("ab",), b"1")
    found = told(read(feed_of(database), place, EventFilter(path_prefix=prefix)))
    assert [name for name, paths in found if "/a" in paths] == [
        "entries_deleted",
        "entries_created",
        "entries_deleted",
    ]
    put(database, "/abc/d", "/o")
    assert told(read(feed_of(database), place, EventFilter(path_prefix=prefix))) == found


# -- places ----------------------------------------------------------------------------------------


def test_places_compare_as_their_ids_do() -> None:
    places = [Place(9), Place(10, 1), Place(10, 11), Place(10), Place(100, 2)]
    assert sorted(str(place) for place in places) == [str(place) for place in places]
    assert [parse_place(str(place)) for place in places] == places
    assert parse_place("42") == Place(42)


@pytest.mark.parametrize("text", ["", "x", "1.2", "-1", "1.0000001", "٣", "1" * 13, "1.000001 ", "1e3"])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_place(text)


def test_before_the_first_commit_nothing_is_missing(database: Database) -> None:
    put(database, "/a")
    for begin in ("0", "000000000000.000000", "000000000000.000007"):
        batch = feed_of(database).after(parse_place(begin))
        assert batch is not None
        assert "gap" not in [found.event.event_type for found in batch.events], begin


def test_a_place_behind_the_log_gives_a_gap_and_goes_on_at_its_end(database: Database) -> None:
    put(database, "/a")
    feed = feed_of(database)
    batch = feed.after(Place(1_000))
    assert batch is not None
    (found,) = batch.events
    assert found.event.event_type == "gap"
    assert found.event.payload == {"from": str(Place(1_000)), "to": str(feed.end()), "reason": "ahead"}
    assert batch.place == feed.end()
    assert feed.after(batch.place) is None


def test_commits_that_cannot_be_read_give_a_gap(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        put(database, f"/{name}")
    feed = feed_of(database)
    whole = read(feed)
    feed.forget()
    lost = int(whole[1].event_id.partition(".")[0])
    commits = Database.commits

    def damaged(self: Database, after: int = 0) -> Iterator[Any]:
        for commit in commits(self, after):
            if commit.sequence == lost:
                raise NotFound("gone")
            yield commit

    monkeypatch.setattr(Database, "commits", damaged)
    events = read(feed)
    assert [one.event_type for one in events] == ["entries_created", "gap", "entries_created"]
    assert events[1].payload == {"from": str(Place(lost - 1)), "to": str(Place(lost)), "reason": "unreadable"}
    assert [events[0], events[2]] == [whole[0], whole[2]]


def test_many_in_the_middle_of_one_large_commit_go_on_each_where_they_are(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = feed_of(database).end()
    put(database, *(f"/d/{number}" for number in range(20_000)))
    begun: list[int] = []
    made = EntryEvents.events

    def counted(self: EntryEvents, commit: Any, configuration: Any) -> Iterator[Any]:
        begun.append(commit.commit.sequence)
        return made(self, commit, configuration)

    monkeypatch.setattr(EntryEvents, "events", counted)
    monkeypatch.setattr(feeds, "_KEPT_WEIGHT", 0)
    feed = feed_of(database)
    places = [begin] * 4
    given_ids: list[list[str]] = [[] for _ in places]
    step = 0
    while any(place < feed.end() for place in places):
        # Each begins a few batches behind the one before.
        for reader, place in enumerate(places):
            if step >= 3 * reader and (batch := feed.after(place)) is not None:
                given_ids[reader].extend(found.event.event_id for found in batch.events)
                places[reader] = batch.place
        step += 1
    assert len(given_ids[0]) == 40
    assert given_ids == [given_ids[0]] * len(places)
    # Nobody had to look for where they were from the beginning of the commit.
    assert len(begun) == len(places)


# -- who sees what ---------------------------------------------------------------------------------


def test_hidden_paths_leave_no_trace(database: Database) -> None:
    put(database, "/open/1", "/hidden/1")
    put(database, "/hidden/2")
    put(database, "/open/2")
    feed = feed_of(database)
    by = Onlooker(lambda path: path[:1] == ("open",), "ann")
    assert told(read(feed, by=by)) == [
        ("entries_created", ["/open/1"]),
        ("entries_created", ["/open/2"]),
    ]
    # Not even that one of them has the prefix.
    assert read(feed, wanted=EventFilter(path_prefix="/hidden"), by=by) == []
    # What was left out for one is there for the next.
    assert len(read(feed)) == 3


def test_a_prefix_keeps_the_event_as_a_whole(database: Database) -> None:
    put(database, "/a/1", "/b/1")
    put(database, "/b/2")
    wanted = EventFilter(path_prefix="/a/")
    assert told(read(feed_of(database), wanted=wanted)) == [("entries_created", ["/a/1", "/b/1"])]


def test_a_prefix_in_another_unicode_form_is_the_same(database: Database) -> None:
    put(database, "/M\u00fcller/1")
    wanted = EventFilter(path_prefix="/Mu\u0308ller/")
    assert told(read(feed_of(database), wanted=wanted)) == [("entries_created", ["/M\u00fcller/1"])]


def test_names_that_nobody_has_are_refused_with_those_that_there_are() -> None:
    assert parse_event_names(" a, b ", {"a", "b", "c"}) == {"a", "b"}
    assert parse_event_names(None, {"a"}) is None
    with pytest.raises(InvalidInput) as caught:
        parse_event_names("a,x", {"a", "b"})
    assert caught.value.details["known"] == ["a", "b"]


# -- types -----------------------------------------------------------------------------------------


class Failing(EventType):
    names = ("a_failing_type",)

    def events(self, commit: Any, configuration: Any) -> Iterator[EventData]:
        yield EventData("a_failing_type", {"path": "/a"})
        yield EventData("a_failing_type", {"path": "/b", "what": object()})
        yield EventData("a_failing_type", {"path": "/c"})


def test_a_type_that_fails_costs_its_own_events_alone(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    put(database, "/a")
    put(database, "/b")
    present = extensions_of_feed(database)
    context = present["entries_created"].context
    types = {**present, "a_failing_type": Extension(Failing(), context)}
    feed = EventFeed(database, lambda: types)
    assert [one.event_type for one in read(feed, Place(database.head().sequence - 2))] == [
        "a_failing_type",
        "entries_created",
    ] * 2
    assert sum("failed" in record.message for record in caplog.records) == 1


def test_the_same_is_made_once_for_all_who_ask(database: Database) -> None:
    put(database, "/a")
    feed = feed_of(database)
    first, second = feed.after(BEGINNING), feed.after(BEGINNING)
    assert first is second
    assert first is not None
    assert first.events[0].json is first.events[0].json


def test_readers_at_many_places_come_together(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a restart: else each of thousands would read the whole of what it missed for itself."""
    feed = feed_of(database)
    begun = feed.end().sequence
    for number in range(300):
        put(database, f"/{number}")
    made: list[Place] = []
    make = feed._make
    monkeypatch.setattr(feed, "_make", lambda place: made.append(place) or make(place))
    for number in range(40):
        assert len(read(feed, Place(begun + number))) == 300 - number
    assert len(made) <= 10


def test_who_is_not_there_any_more_is_told(database: Database) -> None:
    feed = feed_of(database)
    assert not feed.watch.wait(database.head().sequence, 0.01)
    place = feed.end()
    feed.close()
    put(database, "/a")
    assert not feed.watch.wait(0, 30)
    with pytest.raises(ServiceUnavailable):
        feed.after(place)


def test_a_commit_wakes_who_waits_and_nobody_looks_when_nobody_waits(database: Database) -> None:
    feed = feed_of(database)
    sequence = database.head().sequence
    woken: list[bool] = []

    def wait() -> None:
        with feed.watch.joined(lambda: False):
            woken.append(feed.watch.wait(sequence, 30))

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not feed.watch.count:
        time.sleep(0.001)
    put(database, "/a")
    waiting.join(30)
    assert woken == [True]
    assert feed.watch.count == 0
    for thread in threading.enumerate():
        if thread.name == "svc-events":
            thread.join(30)
            assert not thread.is_alive()


def test_commands_find_the_types_of_the_plugins_that_are_enabled(database: Database) -> None:
    assert set(extensions_of(database, "events", EVENT_TYPES)) >= {"entries_created", "entries_deleted"}
