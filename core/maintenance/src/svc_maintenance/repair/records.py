"""Repairs the records of a log: each is restored in place, exactly as it was, or becomes a void.

This module does not know versions. A void that was needed is found missing when the versions are walked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import chain
from typing import NamedTuple

from svc.clock import now_ms
from svc.hashing import Hash, ObjectKind
from svc.log import MAXIMUM_STORED_LENGTH, RECORD_HEADER_SIZE, encode_record, encode_void, record_size
from svc.log.framing import RECORD_HEADER, RecordHeader, decode_header
from svc.objects.key_index import KeyIndex, Place
from svc_maintenance.repair.correction import corrected_header, corrected_payload
from svc_maintenance.repair.originals import Overwriter
from svc_maintenance.repair.report import RepairReport
from svc_maintenance.repair.sources import Sources, StoredForm
from svc_maintenance.verification.stretches import Stretch, check_stretch, damage_of_content

__all__ = ["IndexedPlaces", "RecordRepair"]

_MOST_NOTES = 1_000_000
_LARGEST_GUESS = 64 << 20
_LARGEST_VOID = RECORD_HEADER_SIZE + (MAXIMUM_STORED_LENGTH & ~7)


class IndexedPlaces:
    """What the key index, where one can be read, says of damaged regions of the log."""

    def __init__(self, index: KeyIndex | None) -> None:
        self._places: list[tuple[int, Hash, Place]] = []
        if index is not None:
            known = chain(index.objects(), index.locate(index.damaged(_MOST_NOTES)))
            self._places = sorted((place.offset, hash, place) for hash, place in known)
        self._offsets = [offset for offset, _, _ in self._places]

    def at(self, offset: int) -> tuple[Hash, Place] | None:
        """Returns the object whose record begins at an offset."""
        at = bisect_left(self._offsets, offset)
        if at == len(self._offsets) or self._offsets[at] != offset:
            return None
        return self._places[at][1], self._places[at][2]

    def next_after(self, offset: int) -> int | None:
        """Returns where the first record behind an offset begins that the index knows."""
        at = bisect_left(self._offsets, offset + 1)
        return self._offsets[at] if at < len(self._offsets) else None


class _Guess(NamedTuple):
    """What a record whose header is damaged may have been."""

    kind: ObjectKind
    system: bool
    codec: int
    stored_length: int
    raw_length: int
    hash: Hash
    time_ms: int


class _What(Enum):
    PADDING = 0
    PAYLOAD = 1
    REGION = 2


_Item = tuple[int, _What, int]


def _items(stretches: Iterable[Stretch]) -> list[_Item]:
    """Returns (offset, what, end) of all damage in some stretches, the first one last."""
    items: list[_Item] = []
    for stretch in stretches:
        items += [(offset, _What.PADDING, offset) for offset in stretch.padded]
        items += [(one.offset, _What.PAYLOAD, one.end) for one in stretch.damaged]
        items += [(offset, _What.REGION, end) for offset, end in stretch.regions]
    items.sort(key=lambda item: (item[0], item[1].value), reverse=True)
    return items


class RecordRepair:
    """Repairs what stretches of the log are found to be.

    Damage from ``limit`` on may be a crash's: what can't be restored there is left as it is.
    """

    def __init__(
        self,
        file: Overwriter,
        database_id: bytes,
        sources: Sources,
        places: Callable[[], IndexedPlaces],
        limit: int,
        report: RepairReport,
    ) -> None:
        self._file = file
        self._database_id = database_id
        self._sources = sources
        self._places_later: Callable[[], IndexedPlaces] | None = places
        self._places = IndexedPlaces(None)
        self._limit = limit
        self._report = report
        self._size = file.size()

    def repair(self, stretches: Iterable[Stretch]) -> None:
        """Repairs everything that stretches say, in order; changes wait in the file until it is flushed."""
        items = _items(stretches)
        while items:
            offset, what, end = items.pop()
            if what is _What.PADDING:
                self._clean_padding(offset)
            elif what is _What.PAYLOAD:
                self._repair_payload(offset, end)
            else:
                again = self._repair_region(offset, end)
                found: list[Stretch] = []
                while again is not None:
                    found.append(again)
                    # What was said of the bytes that were looked at again is worth nothing: where a header
                    # was damaged, those of a content may have passed for records.
                    reached = covered = again.end
                    while items and items[-1][0] < covered:
                        reached = max(reached, items.pop()[2])
                    again = self._looked_at(covered, reached) if reached > covered else None
                items += _items(found)

    def _clean_padding(self, offset: int) -> None:
        header = self._header_at(offset)
        if header is not None:
            behind = offset + RECORD_HEADER_SIZE + header.stored_length
            self._file.write(behind, bytes(-behind & 7))
            self._report.cleaned += 1

    # -- a record whose header is whole ----------------------------------------------------------

    def _repair_payload(self, offset: int, end: int) -> None:
        header = self._header_at(offset)
        assert header is not None, "the header was found whole"
        payload = self._sources.payload_of(header)
        if payload is None:
            stored = self._file.read(offset + RECORD_HEADER_SIZE, header.stored_length)
            payload = corrected_payload(stored, header.payload_checksum)
            if payload is not None and damage_of_content(header, payload) is not None:
                payload = None
        if payload is not None:
            self._file.write(offset + RECORD_HEADER_SIZE, payload)
            self._report.restored_records += 1
        elif offset < self._limit:
            self._void(offset, end)

    # -- a region without a header ---------------------------------------------------------------

    def _repair_region(self, start: int, end: int) -> Stretch | None:
        """Restores the record that begins a region, or voids it; returns what a new check found, if any."""
        if self._places_later is not None:
            self._places, self._places_later = self._places_later(), None
        restored = corrected_header(self._file.read(start, RECORD_HEADER_SIZE))
        if restored is None:
            copy = self._sources.stretch(
                self._database_id, start, end, self._file.read(end, RECORD_HEADER_SIZE)
            )
            if copy is not None:
                self._file.write(start, copy)
                self._report.restored_records += 1
                return None
            restored = self._remade(start, end)
        if restored is not None:
            header = decode_header(restored, 0, start)
            behind = start + record_size(header.stored_length) if header is not None else self._size + 1
            if behind <= self._size:
                self._file.write(start, restored)
                self._report.restored_records += 1
                return self._looked_at(start, max(end, behind))
        if start >= self._limit:
            return None
        known = self._places.next_after(start)
        if known is not None and known != end and start + RECORD_HEADER_SIZE <= known <= self._size:
            self._void(start, known)
            return self._looked_at(known, max(end, known))
        self._void(start, end)
        return None

    def _looked_at(self, start: int, end: int) -> Stretch:
        return check_stretch(self._file.read, start, end, self._size, self._database_id)

    def _remade(self, start: int, end: int) -> bytes | None:
        """Returns the header of the record at the beginning of a region, with a damaged payload restored too.

        It is computed from the key index, or from the valid fields of the damaged header: the content's
        identity proves them.
        """
        forms: dict[Hash, StoredForm | None] = {}
        for guess in self._guesses(start, end):
            payload = self._file.read(start + RECORD_HEADER_SIZE, guess.stored_length)
            if len(payload) < guess.stored_length:
                continue
            framed = _framed(guess, payload)
            header = decode_header(framed, 0, start)
            if header is not None and damage_of_content(header, payload) is None:
                return framed[:RECORD_HEADER_SIZE]
            if guess.hash not in forms:
                forms[guess.hash] = self._sources.find(guess.hash)
            form = forms[guess.hash]
            if form is not None and form.codec == guess.codec and len(form.payload) == guess.stored_length:
                framed = _framed(guess, form.payload)
                header = decode_header(framed, 0, start)
                if header is not None and damage_of_content(header, form.payload) is None:
                    return framed
        return None

    def _guesses(self, start: int, end: int) -> list[_Guess]:
        data = self._file.read(start, RECORD_HEADER_SIZE)
        if len(data) < RECORD_HEADER_SIZE:
            return []
        _, kind, flags, codec, _, stored, raw, time_ms, hash, _, _ = RECORD_HEADER.unpack(data)
        guesses: list[_Guess] = []
        indexed = self._places.at(start)
        if indexed is not None:
            identity, place = indexed
            at_ms = min(time_ms, now_ms())
            guesses.append(
                _Guess(
                    ObjectKind(place.kind),
                    bool(place.system),
                    place.codec,
                    place.stored_length,
                    place.raw_length,
                    identity,
                    at_ms,
                )
            )
        room = end - start - RECORD_HEADER_SIZE
        lengths = {stored, *range(max(0, room - 7), room + 1)}
        lengths = {one for one in lengths if one <= _LARGEST_GUESS and start + record_size(one) <= self._size}
        kinds = {kind & 7, *(int(one) for one in _KINDS)} & {int(one) for one in _KINDS}
        for length in sorted(lengths, key=lambda one: one != stored):
            for number in sorted(kinds, key=lambda one: one != kind):
                for system in sorted((False, True), key=lambda one: one != bool(flags & 1)):
                    for form in {codec & 1, 0}:
                        size = raw if form else length
                        guesses.append(
                            _Guess(
                                ObjectKind(number), system, form, length, size, hash, min(time_ms, now_ms())
                            )
                        )
        return guesses

    # -- both --------------------------------------------------------------------------------------

    def _header_at(self, offset: int) -> RecordHeader | None:
        data = self._file.read(offset, RECORD_HEADER_SIZE)
        return decode_header(data, 0, offset) if len(data) == RECORD_HEADER_SIZE else None

    def _void(self, start: int, end: int) -> None:
        """Makes the bytes between two offsets a void; those after its header stay as they are."""
        self._report.voided_records += 1
        if end - start < RECORD_HEADER_SIZE:
            return  # no record ever was so short: only the end of the file can be, and recovery cuts that
        while start < end:
            size = end - start
            if size > _LARGEST_VOID:
                size = (
                    _LARGEST_VOID - RECORD_HEADER_SIZE
                    if size < _LARGEST_VOID + RECORD_HEADER_SIZE
                    else _LARGEST_VOID
                )
            self._file.write(start, encode_void(size - RECORD_HEADER_SIZE, time_ms=now_ms()))
            start += size


_KINDS = (ObjectKind.CHUNK, ObjectKind.FILE_RECORD, ObjectKind.NODE, ObjectKind.COMMIT)


def _framed(guess: _Guess, payload: bytes) -> bytes:
    return encode_record(
        guess.kind,
        guess.hash,
        payload,
        codec=guess.codec,
        raw_length=guess.raw_length,
        time_ms=guess.time_ms,
        system=guess.system,
    )
