"""The commit record is what its format page says, and nothing malformed passes for one."""

from __future__ import annotations

from pathlib import Path

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from svc.database import Commit, Database, DatabaseTotals, PathChange, TransactionRecord, collect
from svc.database.commit import CommitSummary
from svc.database.references import reference_name, reference_path
from svc.errors import CorruptRecord, InvalidInput, SvcError, UnsupportedFormat
from svc.objects.store import EMPTY_ROOT, EMPTY_SYSTEM_ROOT

GOLDEN = Path(__file__).parents[4] / "docs" / "format" / "golden" / "commit.hex"

EXAMPLE = Commit(
    1,
    None,
    1_700_000_000_000,
    b"\x11" * 32,
    EMPTY_SYSTEM_ROOT,
    EMPTY_ROOT,
    EMPTY_SYSTEM_ROOT,
    0,
    128,
    DatabaseTotals(1, 0, 0, 5, 1, 5),
    (
        TransactionRecord(
            "00000000-0000-0000-0000-000000000000", "first", "HEAD", (PathChange("put", ("a",)),)
        ),
    ),
)


def test_the_payload_is_that_of_the_format_page() -> None:
    assert EXAMPLE.encode().hex() == "".join(GOLDEN.read_text().split())
    assert Commit.decode(EXAMPLE.encode()) == EXAMPLE


def test_a_summary_is_read_without_what_the_commit_did() -> None:
    largest = replace(
        EXAMPLE,
        sequence=2**64 - 1,
        parent=b"p" * 32,
        time_ms=2**64 - 1,
        first_offset=2**64 - 1,
        durable_end=2**64 - 1,
        transactions=EXAMPLE.transactions * 1000,
    )
    for commit in (EXAMPLE, largest):
        assert CommitSummary.decode(commit.encode()) == commit.summary()
    for payload in (b"", EXAMPLE.encode()[:100], b"\x8c\x01" + b"\xf6" * 300, b"\x80"):
        with pytest.raises(CorruptRecord):
            CommitSummary.decode(payload)
    with pytest.raises(UnsupportedFormat):
        CommitSummary.decode(b"\x8c\x04" + EXAMPLE.encode()[2:])


def test_every_kind_of_change_comes_back() -> None:
    changes = (
        PathChange("move", ("b", "c"), ("a",)),
        PathChange("put", ("plugins", "x"), None, True),
        PathChange("copy", ("d",), ("b", "c")),
        PathChange("delete", ("d",)),
        PathChange("link", ("l",)),
        PathChange("mkdir", ("m",)),
        PathChange("ref", ("snapshots", "monday")),
    )
    transaction = TransactionRecord(None, None, "forks/x", changes, b"f" * 32)
    commit = replace(EXAMPLE, transactions=(transaction,), parent=b"p" * 32)
    assert Commit.decode(commit.encode()) == commit
    assert commit.ref_roots() == (b"f" * 32,)
    assert EXAMPLE.ref_roots() == ()


_NUMBERS = st.one_of(
    st.integers(0, 300), st.sampled_from([2**16, 2**32]).map(lambda n: n - 1), st.integers(0, 2**64 - 1)
)
_TEXTS = st.one_of(st.text(max_size=30), st.integers(0, 70_000).map(lambda length: "é" * length))
_PATHS = st.lists(_TEXTS, max_size=3).map(tuple)
_HASHES = st.binary(min_size=32, max_size=32)
_CHANGES = st.builds(
    PathChange,
    st.sampled_from(["put", "delete", "move", "copy", "link", "mkdir", "ref"]),
    _PATHS,
    st.none() | _PATHS,
    st.booleans(),
)
_TRANSACTIONS = st.builds(
    TransactionRecord,
    st.none() | _TEXTS,
    st.none() | _TEXTS,
    _TEXTS,
    st.lists(_CHANGES, max_size=30).map(tuple),
    st.none() | _HASHES,
)
_COMMITS = st.builds(
    Commit,
    _NUMBERS,
    st.none() | _HASHES,
    _NUMBERS,
    _HASHES,
    _HASHES,
    _HASHES,
    _HASHES,
    _NUMBERS,
    _NUMBERS,
    st.builds(DatabaseTotals, _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS),
    st.lists(_TRANSACTIONS, max_size=30).map(tuple),
)


@given(_COMMITS)
def test_the_payload_is_the_canonical_one(commit: Commit) -> None:
    totals = commit.totals
    fields = [
        1,
        commit.sequence,
        commit.parent,
        commit.time_ms,
        commit.root,
        commit.system_root,
        commit.parent_root,
        commit.parent_system_root,
        commit.first_offset,
        commit.durable_end,
        [totals.files, totals.directories, totals.symlinks, totals.size, totals.chunks, totals.chunk_bytes],
        [_transaction_fields(one) for one in commit.transactions],
    ]
    assert commit.encode() == cbor2.dumps(fields, canonical=True)


def _transaction_fields(one: TransactionRecord) -> list[object]:
    changes = [
        [
            ("put", "delete", "move", "copy", "link", "mkdir", "ref").index(change.kind) + 16 * change.system,
            *["/".join(path) for path in (change.path, change.source) if path is not None],
        ]
        for change in one.changes
    ]
    root = [] if one.root is None else [one.root]
    return [one.actor, one.message, one.ref, changes, *root]


def test_a_text_that_is_no_unicode_is_refused() -> None:
    transaction = TransactionRecord(None, "\ud800", "HEAD", ())
    with pytest.raises(UnicodeEncodeError):
        replace(EXAMPLE, transactions=(transaction,)).encode()


def test_a_newer_commit_is_told_from_a_damaged_one() -> None:
    with pytest.raises(UnsupportedFormat):
        Commit.decode(cbor2.dumps([4]))
    fields = cbor2.loads(EXAMPLE.encode())
    for index in range(1, len(fields)):
        for wrong in ("text", [1], None, -1, b"short"):
            changed = [*fields[:index], wrong, *fields[index + 1 :]]
            try:
                Commit.decode(cbor2.dumps(changed))
            except CorruptRecord:
                continue
            assert wrong in (-1, None), (index, wrong)
    for length in range(1, len(fields)):
        with pytest.raises(CorruptRecord):
            Commit.decode(cbor2.dumps(fields[:length]))


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(payload: bytes) -> None:
    try:
        Commit.decode(payload)
    except SvcError:
        return


@given(st.text(min_size=1, max_size=200).filter(str.isprintable))
def test_every_name_of_a_ref_has_a_path_of_its_own(name: str) -> None:
    path = reference_path(f"snapshots/{name}")
    assert reference_name(path) == f"snapshots/{name}"
    assert all(0 < len(segment.encode()) <= 255 and "/" not in segment for segment in path)


@pytest.mark.parametrize(
    "name", ["", "snapshots", "snapshots/", "/x", "snapshots/a\nb", "snapshots/" + "x" * 201]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        reference_path(name)


def test_a_commit_that_begins_a_sweep_has_a_version_of_its_own(tmp_path: Path) -> None:
    """Programs that know version 1 alone, and no sweeps, must not take in what one destroys."""
    with Database(tmp_path / "x.svcdb") as database:
        for content in (b"a", b"b"):
            with database.transaction() as transaction:
                transaction.put(("f",), content * 1000)
        before = database.head().sequence
        collect(database)
        commits = list(database.commits(before))
        assert [commit.begins_sweep for commit in commits] == [False, True, False]
        for commit in commits:
            payload = commit.encode()
            assert payload[:2] == bytes((0x8C, 2 if commit.begins_sweep else 1))
            assert Commit.decode(payload) == commit
            assert CommitSummary.decode(payload) == commit.summary()
