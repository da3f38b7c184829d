"""The contract of event types, as tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
import pytest

from svc.plugin import Database, is_system_path, parse_path
from svc_events.api import EVENT_TYPES, EventData, EventType, FeedCommit
from svc_events.selecting import paths_of
from svc_testing import ExtensionContract, simulate_collection, used_by

__all__ = ["EventTypeContract"]

Told = dict[tuple[int, int], EventData | None]


class EventTypeContract(ExtensionContract):
    """Tests of an event type. A subclass sets ``plugin_id``, gives ``extension``, and says what happens.

    Attributes:
        configuration: the settings of the plugin that the type is called with.
        beside: other plugins that ``happen`` needs.
    """

    family = EVENT_TYPES
    configuration: ClassVar[Any] = None
    beside: ClassVar[Sequence[str]] = ()

    def happen(self, database: Database) -> None:
        """Commits something of each kind that the type tells of."""
        pytest.fail(f"{type(self).__name__} must say what happens.")

    @pytest.fixture
    def svc_plugins(self) -> Sequence[str]:
        """What the database of the tests has."""
        return used_by("events", self.plugin_id, *self.beside)

    def test_it_tells_each_of_its_kinds(self, extension: EventType, database: Database) -> None:
        """Something is told under every name, and under no other; it is JSON."""
        self.happen(database)
        told = [data for data in self.told(extension, database).values() if data is not None]
        assert {data.event_type for data in told} == set(extension.names)
        for data in told:
            assert msgspec.json.decode(msgspec.json.encode(data.payload))

    def test_its_paths_can_be_asked_for(self, extension: EventType, database: Database) -> None:
        """Where paths decide who may see an event it has some, and none of them is of the system."""
        self.happen(database)
        for data in self.told(extension, database).values():
            if data is not None and extension.seen_by == "paths":
                paths = [parse_path(path) for path in paths_of(data.payload)]
                assert paths
                assert not [path for path in paths if is_system_path(path)]
            if data is not None and extension.seen_by == "recipient":
                assert data.recipient_user_id is not None

    def test_it_tells_the_same_again(self, extension: EventType, database: Database) -> None:
        """Whoever asks, and however often."""
        self.happen(database)
        before = self.told(extension, database)
        database.drop_caches()
        with Database(database.path, read_only=True) as other:
            assert self.told(extension, other) == before
        assert self.told(extension, database) == before

    def test_a_collection_shifts_no_number(self, extension: EventType, database: Database) -> None:
        """What is told after it has the number that it had; the rest is left out, and nothing is raised."""
        self.happen(database)
        before = self.told(extension, database)
        simulate_collection(database)
        after = {place: data for place, data in self.told(extension, database).items() if place in before}
        assert after.keys() == before.keys()
        for place, data in after.items():
            then = before[place]
            assert data is None or (then is not None and data.event_type == then.event_type)

    def told(self, extension: EventType, database: Database) -> Told:
        """What the type says of all commits, by the number of the commit and its own."""
        return {
            (commit.sequence, number): data
            for commit in database.commits()
            for number, data in enumerate(
                extension.events(FeedCommit(database, commit), self.configuration), start=1
            )
        }
