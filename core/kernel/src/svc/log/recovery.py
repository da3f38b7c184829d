"""What a crash or rot has left of the log: which bytes are sound, and which may go.

Nothing is changed here. The rule: only the last batch of commits can be unacknowledged, for each is durable
before the next is written. So damage behind the last durable offset is a crash's, and what it broke may go,
saved first. Damage elsewhere is rot, and nothing is ever cut for it.
"""

from __future__ import annotations

from msgspec import Struct, field

from svc.errors import CorruptRecord
from svc.hashing import ObjectKind
from svc.log.framing import RECORD_HEADER_SIZE, Location, decode_header, record_size
from svc.log.remains import Remains
from svc.log.scanning import ReadBytes, ScannedRecord, find_header, scan_records, scan_tolerant

__all__ = ["Assessment", "Recovery", "assess", "end_of_records"]


class Recovery(Struct, frozen=True):
    """What ``Log.recover`` found and did.

    Attributes:
        records: how many records from ``start``, where it began, to ``tail`` are there.
        tail: end of the last record that was kept.
        cut_bytes: how many bytes behind ``tail`` were removed (would be, where nothing is written).
        saved_to: where they were saved; None for zeros alone, or without space for what nobody was told of.
        remains: what the removed bytes are.
        may_be_lost: whether an acknowledged commit may be among them, as far as anybody can say.
        damaged: records that were kept although their payloads fail their checksums: no crash explains them.
            Reading them raises ``CorruptRecord``; everything else is sound.
    """

    records: int
    start: int
    tail: int
    cut_bytes: int
    saved_to: str | None = None
    damaged: tuple[Location, ...] = ()
    remains: Remains | None = None
    may_be_lost: bool = False


class Assessment(Struct, frozen=True):
    """What to keep of the bytes from an offset to the end of the file, and which of it is damaged."""

    records: int
    tail: int
    damaged: tuple[Location, ...]


class _Damage(Struct):
    """A place where the chain of whole records breaks.

    ``kind`` and ``stored_length`` are what a valid header there names; a ``kind`` of None: the header is
    damaged. ``next`` is where the next record stands or would stand, None when nobody knows. ``records`` and
    ``commits`` count whole ones before it.
    """

    offset: int
    kind: ObjectKind | None
    stored_length: int
    next: int | None
    records: int
    commits: int


class _Survey(Struct):
    """Everything from the start to the end of the file: where it breaks, and how much is whole."""

    records: int = 0
    commits: int = 0
    tail: int = 0
    damages: list[_Damage] = field(default_factory=list)


def assess(read: ReadBytes, start: int, size: int, known: int = 0, *, one_batch: bool = False) -> Assessment:
    """Decides what to keep of the bytes from ``start`` to the end of the file. Reads all of them.

    ``start`` is a record's offset; records that begin before ``known`` were written whole. ``one_batch``: all
    that was ever made durable lies before ``start``, but for one last batch: damage is that batch's, however
    many commits it held. Otherwise two whole commits behind it show that damage is no crash's.

    Raises:
        CorruptRecord: a record header that no crash explains is damaged, so that nobody can say what to keep;
            ``details["offset"]`` names it.
        UnsupportedFormat: a record of an unknown kind is met.
    """
    survey = _survey(read, start, size)
    damaged: list[Location] = []
    for damage in survey.damages:
        behind = survey.commits - damage.commits
        if damage.offset >= known and (one_batch or behind < 2):
            return Assessment(damage.records, damage.offset, tuple(damaged))
        if damage.kind is None or damage.next is None:
            raise CorruptRecord(
                f"The record at offset {damage.offset} is damaged, and no crash explains it: {behind} "
                "commits stand behind it. Nothing was changed; the database can be opened for reading only.",
                offset=damage.offset,
            )
        damaged.append(Location(damage.offset, damage.stored_length))
    return Assessment(survey.records, survey.tail, tuple(damaged))


def end_of_records(read: ReadBytes, start: int, size: int) -> int:
    """Returns the end of the last record with a valid header; payloads are not looked at."""
    tail = start
    for item in scan_tolerant(read, start, size):
        if isinstance(item, ScannedRecord):
            tail = item.end
    return tail


def _survey(read: ReadBytes, start: int, size: int) -> _Survey:
    """Walks everything; after a break it goes on at the next valid header."""
    survey = _Survey(tail=start)
    position = start
    while position < size:
        try:
            for record in scan_records(read, position, size, verify=True):
                survey.records += 1
                survey.commits += record.kind is ObjectKind.COMMIT
                survey.tail = position = record.end
        except CorruptRecord as error:
            damage = _damage_at(read, int(error.details["offset"]), size, survey)
            survey.damages.append(damage)
            if damage.next is None:
                break
            position = damage.next
            if damage.kind is not None:
                survey.records += 1
                survey.tail = position
    return survey


def _damage_at(read: ReadBytes, offset: int, size: int, survey: _Survey) -> _Damage:
    data = read(offset, RECORD_HEADER_SIZE)
    header = decode_header(data, 0, offset) if len(data) == RECORD_HEADER_SIZE else None
    if header is None:
        following = find_header(read, offset + 8, size)
        return _Damage(offset, None, 0, following, survey.records, survey.commits)
    end = offset + record_size(header.stored_length)
    return _Damage(
        offset,
        header.kind,
        header.stored_length,
        end if end <= size else None,
        survey.records,
        survey.commits,
    )
