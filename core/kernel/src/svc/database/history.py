"""What is known to have been durable, compared with what stands in the log.

The state directory proves that a commit was durable: HEAD's cell and the key index name it only once its
sync has returned. A clean-end mark in the log proves the same of everything before it. Where the log does
not hold what is proved, a commit is lost, and somebody must be told before anything is changed.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from svc.database.catch_up import NO_HASH, CommitChain
from svc.database.commit import CommitSummary
from svc.database.head import Head
from svc.errors import CorruptRecord, TruncatedFile, UnsupportedFormat
from svc.hashing import Hash, ObjectKind
from svc.log import (
    FIRST,
    RECORD_HEADER_SIZE,
    DamagedRegion,
    Log,
    ScannedRecord,
    SharedCell,
    boot_id,
    record_size,
)
from svc.log.framing import decode_header
from svc.objects.key_index import CoverageMark, KeyIndex

__all__ = [
    "Covered",
    "History",
    "Loss",
    "Proof",
    "examine",
    "proof_of_head",
    "readable_time",
    "withdraw_claims",
]

_STATE_DIRECTORY = "the state directory"
_CLEAN_END = "a clean-end mark"
_DIRECTORY = "the directory beside it (its name with '.d')"


class Proof(Struct, frozen=True):
    """A commit that was durable, whatever the log says now.

    Its time, and its roots (of user and system tree after it), are None when nobody knows.
    """

    sequence: int
    commit_end: int
    time_ms: int | None = None
    roots: tuple[Hash, Hash] | None = None

    def is_of(self, commit: CommitSummary, end: int) -> bool:
        """Whether a commit whose record ends at an offset is the one that is proved."""
        roots = self.roots
        return end == self.commit_end and (roots is None or roots == (commit.root, commit.system_root))


class Covered(Struct, frozen=True):
    """A key index that can be trusted, how far it covers the log, and the last commit there (or None)."""

    index: KeyIndex
    mark: CoverageMark
    last: CommitSummary | None
    hash: Hash | None


class Loss(Struct, frozen=True):
    """A commit that was durable, and that the log does not hold any more.

    Attributes:
        is_short: whether the file ends before the commit; ``offset``: the file's end then, else the commit's.
        witness: who proves that it was durable.
        sequence: number of the lost commit; None when nobody knows.
        time_ms: when it was made, or when the database was closed behind it; None when nobody knows.
        last: number of the last commit that the log holds; 0 for none, with a ``last_ms`` of None.
    """

    is_short: bool
    offset: int
    witness: str
    sequence: int | None
    time_ms: int | None
    last: int
    last_ms: int | None

    @property
    def is_of_state_directory(self) -> bool:
        """Whether the state directory is what proves it, rather than the log itself."""
        return self.witness == _STATE_DIRECTORY

    def describe(self) -> str:
        """Returns what is lost and what may have happened: sentences without a path of the machine."""
        held = (
            f"with commit {self.last} of {readable_time(self.last_ms)}" if self.last else "before any commit"
        )
        if self.sequence is None:
            proven = f"another one was durable when the database was closed, {readable_time(self.time_ms)}"
        else:
            when = "" if self.time_ms is None else f" of {readable_time(self.time_ms)}"
            another = "another " if self.last >= self.sequence else ""
            proven = f"{another}commit {self.sequence}{when} was durable"
        return (
            f"The log ends {held}, but {self.witness} proves that {proven}. The file was cut short or "
            "damaged, or an older or another copy of it was put in its place."
        )

    def advice(self) -> str:
        """Returns what can be done, a sentence without a path of the machine."""
        if self.witness == _STATE_DIRECTORY:
            return (
                "Look with 'svc verify' and restore a copy; or, to go on with the file as it is, move "
                f"{_DIRECTORY} away."
            )
        return "Look with 'svc verify' and restore a copy."

    def error(self, log: Log) -> CorruptRecord:
        """Returns the error that refuses to open a log for writing."""
        kind = TruncatedFile if self.is_short else CorruptRecord
        advice = self.advice().replace(_DIRECTORY, log.state_directory.name)
        message = f"{log.storage.name}: {self.describe()} Nothing was changed. {advice}"
        return kind(message, offset=self.offset)


class History(Struct, frozen=True):
    """What the log says of itself behind the key index, compared with what is proved.

    Attributes:
        durable: offset before which everything is known to have been on disk: damage there is rot.
        last: number of the last commit that the log holds; 0 for none.
        loss: a commit that is proved and not there.
        goes_on: whether later commits were durable too: the proof is of an earlier course of events then.
        broken: what to raise where a commit is missing although nothing is damaged.
    """

    durable: int
    last: int
    loss: Loss | None
    goes_on: bool
    broken: CorruptRecord | None = None


def proof_of_head(log: Log, cell: SharedCell) -> Proof | None:
    """Returns what HEAD's cell proves, of any boot, if the shared tail beside it is this database's."""
    payload = cell.read()
    head = Head.unpack(payload) if payload is not None else None
    if head is None or not head.sequence or not log.storage.owns_state():
        return None
    return Proof(head.sequence, head.commit_end, head.time_ms, (head.root, head.system_root))


def withdraw_claims(log: Log, cell: SharedCell) -> None:
    """Takes from HEAD's cell what it says of another file, before the shared tail becomes this one's.

    Of another database it proves nothing; of another copy of this one it does not say what was never
    acknowledged here.
    """
    payload = cell.read() if log.needs_recovery else None
    head = Head.unpack(payload) if payload is not None else None
    if head is None or not head.sequence:
        return
    if not log.storage.owns_state():
        cell.write(Head.of_nothing().pack())
        cell.sync()
    elif head.boot_id == boot_id():
        cell.write(replace(head, boot_id=bytes(16)).pack())


def examine(log: Log, covered: Covered | None, proof: Proof | None, *, walked: bool = True) -> History:
    """Walks what lies behind the key index, and compares the log with what is proved; changes nothing.

    Every commit states how far the log was durable when it was made, and a clean-end mark says so of all
    before it. The largest counts: an index may be older than the log, and a power cut can have hit only what
    lies behind the last statement. The log's end may be torn; nothing is ``walked`` where others are writing.
    """
    walk = _Walk(log, covered, proof)
    size = log.storage.size()
    if walked or (proof is not None and proof.sequence > walk.chain.sequence):
        walk.go(size)
    return walk.result(size)


class _Walk:
    def __init__(self, log: Log, covered: Covered | None, proof: Proof | None) -> None:
        self._log = log
        self._start = covered.mark.covered if covered is not None else FIRST
        self._durable = self._start
        self._proof = proof
        self._last = covered.last if covered is not None else None
        # What the log shows of the commit that is proved: None as long as nothing was seen of it.
        self._holds_proven: bool | None = None
        self._goes_on = False
        self._broken: CorruptRecord | None = None
        self._damaged: list[DamagedRegion] = []
        self._unnamed: ScannedRecord | None = None
        if covered is None:
            self.chain = CommitChain(log, 0, None)
        else:
            self.chain = CommitChain(log, covered.mark.sequence, covered.hash)
            self._meet_indexed(covered)

    def go(self, size: int) -> None:
        """Meets every commit and every clean-end mark behind the index."""
        for record in self._log.scan_tolerant(self._start, size):
            if isinstance(record, DamagedRegion):
                self._damaged.append(record)
                self.chain.pass_over()
            elif record.kind is ObjectKind.COMMIT:
                self._meet(record)
            elif record.kind is ObjectKind.VOID and record.hash == NO_HASH:
                self.chain.pass_over()
            elif record.kind is ObjectKind.VOID and record.stored_length == 0:
                self._meet_void(record)

    def result(self, size: int) -> History:
        loss = self._loss(size)
        durable = self._durable
        if self._proof is not None and self._proof.commit_end <= size and self._holds_proven is not False:
            durable = max(durable, self._proof.commit_end)
        last = self._last.sequence if self._last is not None else 0
        return History(durable, last, loss, self._goes_on, self._broken)

    def _meet_indexed(self, covered: Covered) -> None:
        """Compares what is proved with what the index knows of it."""
        proof, last = self._proof, covered.last
        if proof is None or last is None or proof.sequence > last.sequence:
            return
        self._goes_on = last.sequence > proof.sequence
        place = covered.index.commit_place(proof.sequence)
        if place is None:
            return
        try:
            is_last = proof.sequence == last.sequence
            commit = last if is_last else CommitSummary.decode(self._log.read_payload(*place))
        except (CorruptRecord, UnsupportedFormat):
            return  # rot: a later commit is there
        self._holds_proven = proof.is_of(commit, place[0] + record_size(place[1]))

    def _meet(self, record: ScannedRecord) -> None:
        try:
            commit = self.chain.take(record)
        except CorruptRecord as error:
            self._broken = self._broken or error
            return
        if commit is None:
            return
        self._last = commit.summary()
        self._unnamed = None
        if self._proof is not None and commit.sequence == self._proof.sequence:
            self._holds_proven = self._proof.is_of(self._last, record.end)
        stated = commit.durable_end
        # Behind damage the bytes of a chunk may look like a commit: what cannot be is passed over.
        if self._durable < stated <= record.offset and self._may_begin_at(stated):
            self._durable = stated
            self._goes_on |= stated > (FIRST if self._proof is None else self._proof.commit_end)

    def _meet_void(self, record: ScannedRecord) -> None:
        named = self._log.clean_end_at(record.offset)
        if named is not None:
            self._durable = record.offset
            self._goes_on |= self.chain.sequence > (0 if self._proof is None else self._proof.sequence)
            # Where a commit follows, what is missing before it is rot in the middle, and named as such.
            self._unnamed = None if named == self.chain.parent else record

    def _may_begin_at(self, offset: int) -> bool:
        """Whether a record begins at an offset, as far as the log can be read there."""
        if any(region.offset <= offset < region.end for region in reversed(self._damaged)):
            return True
        header = self._log.storage.read(offset, RECORD_HEADER_SIZE)
        return len(header) == RECORD_HEADER_SIZE and decode_header(header, 0, offset) is not None

    def _loss(self, size: int) -> Loss | None:
        proof, last = self._proof, self._last
        number, time_ms = (last.sequence, last.time_ms) if last is not None else (0, None)
        if proof is not None and not self._holds_proven:
            is_short = size < proof.commit_end
            # Where a later one was durable too, a commit that cannot be read is rot in the middle.
            if is_short or self._holds_proven is False or not self._goes_on:
                offset = size if is_short else proof.commit_end
                return Loss(
                    is_short, offset, _STATE_DIRECTORY, proof.sequence, proof.time_ms, number, time_ms
                )
        if self._unnamed is not None:
            mark = self._unnamed
            return Loss(False, mark.offset, _CLEAN_END, None, mark.time_ms, number, time_ms)
        return None


def readable_time(time_ms: int | None) -> str:
    """Returns a time in Unix milliseconds as a sentence holds it."""
    if time_ms is None:
        return "an unknown time"
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"
