"""The power fails at any moment: what the disk may hold then opens, with everything that was acknowledged."""

from __future__ import annotations

import random
import shutil
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from crash.block_layer import Recording, record
from crash.boots import another_boot
from crash.journal import Change, Journal
from crash.scale import SEED, scaled
from crash.workload import Writer, check_database, run_writers
from svc.database import Database
from svc.errors import SvcError

WRITERS = 5
STEPS = 12
IMAGES = 80


@dataclass(frozen=True, slots=True)
class Note:
    """What a writer's journal was told."""

    name: str
    event: str
    change: Change
    version: str | None


@dataclass(frozen=True, slots=True)
class Story:
    """A recorded workload, with what lay beside the log before it and in the middle of it."""

    recording: Recording
    before: Path
    middle: Path
    middle_moment: int


def journals_at(recording: Recording, moment: int) -> list[Journal]:
    """The journals as they were at a moment of the recording."""
    journals: dict[str, Journal] = {}
    for event in recording.events[:moment]:
        if isinstance(event, Note):
            journal = journals.setdefault(event.name, Journal(event.name))
            if event.event == "begin":
                journal.begin(event.change)
            elif event.event == "acknowledge":
                journal.acknowledge(event.version)
            else:
                journal.refuse()
    return list(journals.values())


def tell(recording: Recording):
    def note(writer: Writer, event: str, change: Change) -> None:
        recording.note(Note(writer.journal.name, event, change, writer.journal.version))

    return note


def record_work(directory: Path, seed: int) -> Story:
    """Five writers at work, twice, with a look at what lies beside the log between."""
    directory.mkdir()
    path = directory / "x.svcdb"
    with Database(path) as database, database.transaction() as transaction:
        transaction.put(("first",), b"before everything")
    shutil.copytree(f"{path}.d", directory / "before")
    with record(path) as recording, Database(path) as database:
        writers = [Writer(database, f"w{number}", seed, tell(recording)) for number in range(WRITERS)]
        run_writers(writers, STEPS)
        shutil.copytree(f"{path}.d", directory / "middle")
        middle = len(recording.events)
        run_writers(writers, STEPS)
        moment = len(recording.events)
    assert recording.whole(len(recording.events)) == path.read_bytes()
    assert sum(journal.answers for journal in journals_at(recording, moment)) == 2 * WRITERS * STEPS
    return Story(recording, directory / "before", directory / "middle", middle)


def place(image: Path, content: bytes, beside: Path | None) -> None:
    image.write_bytes(content)
    shutil.rmtree(f"{image}.d", ignore_errors=True)
    if beside is not None:
        shutil.copytree(beside, f"{image}.d")


def check_images(story: Story, image: Path, seed: str, count: int) -> None:
    recording = story.recording
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        moment = chance.randint(1, len(recording.events))
        beside = chance.choice((None, story.before, story.middle if moment >= story.middle_moment else None))
        place(image, recording.image(moment, chance), beside)
        try:
            with another_boot():
                check_database(image, journals_at(recording, moment))
        except BaseException as error:
            error.add_note(f"seed {seed!r}, image {number}, moment {moment}, beside: {beside}")
            raise
        for saved in image.parent.glob("*.cut-*"):
            saved.unlink()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("story_number", range(scaled(2, most=10)))
def test_whatever_a_power_cut_leaves_opens_with_everything_acknowledged(
    memory: Path, story_number: int
) -> None:
    story = record_work(memory / "work", SEED * 1000 + story_number)
    check_images(story, memory / "image.svcdb", f"{SEED}-{story_number}", scaled(IMAGES, most=1000))


def test_the_laboratory_notices_a_log_that_acknowledges_before_it_syncs(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test of the tests: without the sync of commits, images must be found that lost something."""
    monkeypatch.setattr("svc.log.LocalFileStorage.sync", lambda self: None)
    story = record_work(memory / "work", SEED)
    with pytest.raises((AssertionError, SvcError)):
        check_images(story, memory / "image.svcdb", f"{SEED}-unsynced", 60)


def test_a_power_cut_in_the_middle_of_a_recovery_can_be_recovered_from(memory: Path) -> None:
    """The image of a cut is opened, and the power fails again while it is worked on."""
    story = record_work(memory / "work", SEED * 1000 + 500)
    recording = story.recording
    image, again = memory / "image.svcdb", memory / "again.svcdb"
    for number in range(scaled(6, most=300)):
        chance = random.Random(f"{SEED} twice {number}")
        moment = chance.randint(1, len(recording.events))
        place(image, recording.image(moment, chance), None)
        journals = journals_at(recording, moment)
        with another_boot(), record(image) as second, Database(image) as database:
            with database.transaction() as transaction:
                transaction.put(("later",), b"x" * chance.randrange(9000))
            acknowledged = len(second.events)
        for _ in range(3):
            place(again, second.image(chance.randint(acknowledged, len(second.events)), chance), None)
            with another_boot(), Database(again) as database:
                assert database.at().get(("later",)) is not None
            check_database(again, journals)
        for _ in range(3):
            place(again, second.image(chance.randint(0, acknowledged), chance), None)
            with another_boot():
                check_database(again, journals)


def test_a_kill_leaves_the_file_as_it_was_and_the_index_as_far_as_it_had_come(memory: Path) -> None:
    """No power cut: the file is whole, but what lies beside it stands at an earlier point, or is gone."""
    story = record_work(memory / "work", SEED * 1000 + 900)
    recording, image = story.recording, memory / "image.svcdb"
    for number in range(scaled(25, most=1000)):
        chance = random.Random(f"{SEED} kill {number}")
        moment = chance.randint(story.middle_moment, len(recording.events))
        beside = chance.choice((None, story.before, story.middle))
        place(image, recording.whole(moment), beside)
        with another_boot() if beside == story.before else nullcontext():
            check_database(image, journals_at(recording, moment))


def test_a_sync_that_failed_is_never_taken_for_one_that_worked(memory: Path) -> None:
    """A failed sync loses its pages for good, though later syncs work and the file still reads well.

    The database is opened anew, works and acknowledges; then the power fails.
    """
    for number in range(scaled(4, most=100)):
        chance = random.Random(f"{SEED} failed {number}")
        path, image = memory / f"{number}.svcdb", memory / "image.svcdb"
        with Database(path) as database, database.transaction() as transaction:
            transaction.put(("first",), b"before everything")
        with record(path, failing_sync=chance.randint(2, 14)) as recording:
            with Database(path) as database:
                writers = [Writer(database, f"w{one}", number, tell(recording)) for one in range(WRITERS)]
                run_writers(writers, 20)
            first = journals_at(recording, len(recording.events))
            assert any(journal.under_way for journal in first)
            with Database(path) as database:
                assert not database.head().latched
                later = [Writer(database, f"later{one}", number, tell(recording)) for one in range(3)]
                run_writers(later, 5)
            assert all(writer.journal.answers == 5 for writer in later)
        for _ in range(6):
            place(image, recording.image(len(recording.events), chance), None)
            with another_boot():
                check_database(image, journals_at(recording, len(recording.events)))
