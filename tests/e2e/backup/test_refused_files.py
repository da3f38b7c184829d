"""Files that are damaged, cut, foreign or made to harm: refused with 400, and the target stays as it was."""

from __future__ import annotations

import json
import os
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
import zstandard
from blake3 import blake3

from svc_blackbox.backups import Source, export, imported, patch, send
from svc_blackbox.client import Client, assert_error
from svc_blackbox.prepared import run_svc
from svc_blackbox.records import (
    CHUNK,
    COMMIT,
    FILE_RECORD,
    KIND_NAMES,
    NODE,
    StoredRecord,
    assemble,
    boundaries,
    parse,
    reseal,
    substitute,
)
from svc_blackbox.server import Server
from svc_blackbox.versions import head_version, list_forks, list_snapshots, make_fork, make_snapshot, tree

KINDS = ["export", "patch"]


class Target:
    """A database that must stay as it is, holding the base of the patch."""

    def __init__(self, server: Server, base: bytes) -> None:
        self.server = server
        self.client = server.client(timeout=120)
        imported(self.client, base, promote="true")
        make_snapshot(self.client, "kept")
        make_fork(self.client, "kept")
        self.state = self.now()

    def now(self) -> object:
        return (
            head_version(self.client),
            list_snapshots(self.client),
            list_forks(self.client),
            tree(self.client),
        )

    def refuses(self, data: bytes, story: str, *, version: str | None = None) -> None:
        """Sends a file; it must be refused with 400, and change nothing that can be seen."""
        for query in ({"promote": "true"}, {"promote": "true", "force": "true"}):
            response = send(self.client, data, **query)
            assert response.status == 400, (story, query, response.status, response.body[:300])
            assert_error(response, 400)
        assert self.now() == self.state, story
        if version is not None:
            assert self.client.head("/files/", version=version).status == 404, story

    def well(self) -> None:
        """The server is, and the database is sound."""
        assert self.client.get("/system/health").json()["status"] == "healthy"
        assert "Traceback" not in self.server.log_text()
        run_svc("verify", "-D", self.server.database)


@pytest.fixture(scope="module")
def backups(source: Source) -> dict[str, tuple[bytes, str]]:
    """An export and a patch, sound, with the version that each brings."""
    with Client(source.server.url) as client:
        return {
            "export": (export(client), source.roots["HEAD"]),
            "patch": (patch(client, **{"from": "one", "to": "two"}), source.roots["two"]),
        }


@pytest.fixture(scope="module")
def victim(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The target of all tests of this module; in the end it must still be sound."""
    server = Server(tmp_path_factory.mktemp("victim") / "victim.svcdb").start()
    with Client(source.server.url) as client:
        target = Target(server, export(client, snapshot="one"))
    yield target
    target.well()
    server.close()


@pytest.fixture(params=KINDS)
def sound(request: pytest.FixtureRequest, backups: dict[str, tuple[bytes, str]]) -> tuple[bytes, str]:
    """Each kind of backup."""
    return backups[request.param]


def test_foreign_files(victim: Target) -> None:
    archive = BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("../../etc/evil", b"x")
    for story, data in {
        "empty": b"",
        "one byte": b"\x89",
        "text": b"hello, world\n" * 1000,
        "zeros": bytes(100_000),
        "noise": random.Random(1).randbytes(100_000),
        "zip": archive.getvalue(),
        "sqlite": b"SQLite format 3\0" + bytes(4080),
        "json": json.dumps({"path": "/x"}).encode() * 100,
        "only the magic": b"\x89SVC\r\n\x1a\n",
    }.items():
        victim.refuses(data, story)


def test_headers_that_lie(victim: Target, sound: tuple[bytes, str]) -> None:
    data, version = sound
    header, rest = data[:128], data[128:]

    def changed(offset: int, value: bytes) -> bytes:
        return reseal(header[:offset] + value + header[offset + len(value) :]) + rest

    for story, bad in {
        "a later format": changed(8, struct.pack("<H", 99)),
        "format 0": changed(8, struct.pack("<H", 0)),
        "another byte order": changed(12, struct.pack(">I", 0x01020304)),
        "another header length": changed(16, struct.pack("<I", 4096)),
        "header length 0": changed(16, struct.pack("<I", 0)),
        "unknown flags": changed(20, struct.pack("<I", 0xFFFFFFFF)),
        "another hash": changed(40, b"\x09"),
        "a wrong checksum": header[:127] + bytes([header[127] ^ 1]) + rest,
        "nothing but the header": header,
    }.items():
        victim.refuses(bad, story, version=version)


def test_files_that_are_cut(victim: Target, sound: tuple[bytes, str]) -> None:
    data, version = sound
    _, records = parse(data)
    ends = boundaries(records)[:-1]
    chosen = random.Random(2).sample(ends, min(8, len(ends)))
    cuts = {1, 127, 128, len(data) // 2, len(data) - 1, len(data) - 8, *chosen, *(end + 40 for end in chosen)}
    for cut in sorted(cuts):
        victim.refuses(data[:cut], f"cut at {cut} of {len(data)}", version=version)


def test_flipped_bits(victim: Target, sound: tuple[bytes, str]) -> None:
    """A flip in a record is refused; padding is under no checksum and may be anything."""
    data, version = sound
    _, records = parse(data)
    random_ = random.Random(3)
    begins = boundaries(records)
    for begin, record in random_.sample(list(zip(begins, records, strict=False)), min(12, len(records))):
        for offset in (random_.randrange(72), 72 + random_.randrange(max(1, record.stored_length))):
            if offset >= 72 and not record.stored_length:
                continue
            bad = bytearray(data)
            bad[begin + offset] ^= 1 << random_.randrange(8)
            victim.refuses(bytes(bad), f"bit at {begin}+{offset}, {KIND_NAMES[record.kind]}", version=version)


def one_of_each(records: list[StoredRecord]) -> Iterator[tuple[int, StoredRecord]]:
    """The first record of each kind, with its index."""
    seen = set()
    for index, record in enumerate(records):
        if record.kind not in seen:
            seen.add(record.kind)
            yield index, record


def test_records_whose_content_is_another_with_right_checksums(
    victim: Target, sound: tuple[bytes, str]
) -> None:
    """Only the hash can tell; so it must be computed."""
    data, version = sound
    header, records = parse(data)
    for index, record in one_of_each(records):
        if record.kind == COMMIT:
            continue
        payloads = {
            "other bytes": record.with_payload(
                bytes(len(record.payload)), codec=0, raw_length=len(record.payload)
            ),
            "empty": record.with_payload(b"", codec=0, raw_length=0),
            "longer": record.with_payload(record.payload + b"x", raw_length=record.raw_length + 1),
        }
        for story, bad in payloads.items():
            changed = [*records[:index], bad, *records[index + 1 :]]
            victim.refuses(assemble(header, changed), f"{KIND_NAMES[record.kind]}: {story}", version=version)


def test_records_whose_header_lies(victim: Target, sound: tuple[bytes, str]) -> None:
    data, version = sound
    header, records = parse(data)
    for index, record in one_of_each(records):
        lies = {
            "raw length too large": replace(record, raw_length=0xFFFFFFFF),
            "raw length zero": replace(record, raw_length=0),
            "raw length one less": replace(record, raw_length=record.raw_length - 1),
            "stored length too large": replace(record, stored_length=0xFFFFFFF0),
            "stored length one more record": replace(record, stored_length=record.stored_length + 72),
            "unknown codec": replace(record, codec=77),
            "the other codec": replace(record, codec=1 - record.codec),
            "unknown kind": replace(record, kind=200),
            "kind zero": replace(record, kind=0),
            "another hash": replace(record, hash=bytes(32)),
        }
        if record.kind == CHUNK:
            lies["a node that is a chunk"] = replace(record, kind=NODE)
        if record.kind == NODE:
            lies["a chunk that is a node"] = replace(record, kind=CHUNK)
        for story, bad in lies.items():
            changed = [*records[:index], bad, *records[index + 1 :]]
            victim.refuses(
                assemble(header, changed), f"{KIND_NAMES.get(record.kind)}: {story}", version=version
            )


def worker_rss(server: Server) -> int:
    """The greatest anonymous memory of a process of the server, in bytes."""
    from svc_blackbox.memory import anonymous_bytes
    from svc_blackbox.server import living_processes

    return max(anonymous_bytes(pid) for pid in living_processes(server.pid))


def test_decompression_bombs(victim: Target, backups: dict[str, tuple[bytes, str]]) -> None:
    """A gigabyte in thirty kilobytes, behind honest and lying lengths: refused, and memory stays small."""
    from svc_blackbox.memory import watch_memory

    compressor = zstandard.ZstdCompressor(level=3).compressobj()
    piece = bytes(1 << 20)
    bomb = b"".join(compressor.compress(piece) for _ in range(1024)) + compressor.flush()
    nested = zstandard.ZstdCompressor(level=3).compress(bytes(64 << 20))
    data, version = backups["export"]
    header, records = parse(data)
    with watch_memory(victim.server) as peak:
        for index, record in one_of_each(records):
            for payload in (bomb, nested):
                for raw_length in (record.raw_length, len(payload), 64 << 20, 1 << 30, 0xFFFFFFFF):
                    bad = record.with_payload(payload, codec=1, raw_length=raw_length)
                    changed = [*records[:index], bad, *records[index + 1 :]]
                    response = send(victim.client, assemble(header, changed), promote="true")
                    assert response.status == 400, (KIND_NAMES[record.kind], raw_length, response.body[:300])
    assert peak.growth < 200 << 20, f"{peak.growth >> 20} MiB"
    assert victim.now() == victim.state
    assert victim.client.head("/files/", version=version).status == 404


def test_what_lacks_objects(victim: Target, sound: tuple[bytes, str]) -> None:
    """Without any one object that only this file could bring, the version is not complete."""
    data, version = sound
    header, records = parse(data)
    there = set(victim.state[3].values()) if isinstance(victim.state, tuple) else set()
    for index, record in enumerate(records):
        if record.kind == COMMIT or record.hash.hex() in there:
            continue
        response = send(
            victim.client, assemble(header, [*records[:index], *records[index + 1 :]]), promote="true"
        )
        # What the target holds already may be left out: then the import is whole, and undone here.
        if response.status == 200:
            assert victim.client.post("/versions/restore", {"name": "kept"}).status == 200
            pytest.fail(f"accepted without {KIND_NAMES[record.kind]} {record.hash.hex()[:12]}")
        assert_error(response, 400)
    assert victim.now() == victim.state
    assert victim.client.head("/files/", version=version).status == 404


def test_what_is_added_is_not_taken_over(victim: Target, backups: dict[str, tuple[bytes, str]]) -> None:
    """Bytes behind the end, and records of the system: refused, or at least without effect."""
    data, _ = backups["export"]
    header, records = parse(data)
    index = next(index for index, record in enumerate(records) if record.kind == CHUNK)
    system = [*records[:index], replace(records[index], flags=1), *records[index + 1 :]]
    victim.refuses(assemble(header, system), "a system chunk in the place of a user's")
    victim.refuses(data + os.urandom(5000), "noise behind the end")
    victim.refuses(data + data[128:][: len(data) // 3], "a second beginning behind the end")


@pytest.fixture
def changed_export(tmp_path: Path) -> Callable[..., tuple[bytes, bytes]]:
    """Makes an export, and the same with other bytes in its nodes and right hashes all the way up."""

    def make(path: str, old: bytes, new: bytes, content: bytes = b"fine") -> tuple[bytes, bytes]:
        place, output = tmp_path / "made.svcdb", tmp_path / "made-export.svcdb"
        run_svc("put", "-D", place, "-", path, stdin=content)
        run_svc("export", "-D", place, "--output", output)
        header, records = parse(output.read_bytes())
        return assemble(header, records), assemble(header, substitute(records, old, new))

    return make


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("/QX", b"QX", b".."),
        ("/d/QX/evil", b"QX", b".."),
        ("/d/QXZ", b"QXZ", b"a/b"),
        ("/QXZW", b"QXZW", b"/etc"),
        ("/d/QXZW", b"QXZW", b"a\x00bc"),
        ("/d/QXZW", b"QXZW", b"a\nbc"),
        ("/d/QXZW", b"QXZW", b"a\xff\xfe."),
        ("/d/QXZW", b"QXZW", b"ae\xcc\x81"),
        ("/QXZWQXZWQXZ", b"QXZWQXZWQXZ", b".svc-system"),
        ("/QXZWQXZWQXZ/plugins", b"QXZWQXZWQXZ", b".svc-system"),
        ("/QXZWQXZ/x", b"QXZWQXZ", b".system"),
    ],
    ids=[
        "up",
        "up below",
        "slash",
        "absolute",
        "nul",
        "newline",
        "no utf-8",
        "not composed",
        "system file",
        "system directory",
        "older system",
    ],
)
def test_names_that_no_path_may_have(
    victim: Target, changed_export: Callable[..., tuple[bytes, bytes]], path: str, old: bytes, new: bytes
) -> None:
    """The hashes are right: only the names convict the file."""
    sound, hostile = changed_export(path, old, new)
    assert sound != hostile
    response = send(victim.client, sound)
    assert response.status == 200, response.body
    victim.refuses(hostile, f"{new!r} in {path}")


def test_a_legal_name_in_the_same_place_is_taken(
    victim: Target, changed_export: Callable[..., tuple[bytes, bytes]]
) -> None:
    """What is changed that way is refused for what it says, not for the change."""
    for data in changed_export("/d/QX", b"QX", b"ok"):
        assert send(victim.client, data).status == 200


def test_a_tree_and_records_that_lie_about_a_file(victim: Target, tmp_path: Path) -> None:
    """Sizes, counts and the hash of the whole content are checked against what the chunks hold."""
    size = 1_000_003
    content = random.Random(8).randbytes(size)
    place, output = tmp_path / "made.svcdb", tmp_path / "made-export.svcdb"
    run_svc("put", "-D", place, "-", "/d/f", stdin=content)
    run_svc("export", "-D", place, "--output", output)
    header, records = parse(output.read_bytes())
    assert send(victim.client, output.read_bytes()).status == 200

    def in_nodes(value: int) -> list[StoredRecord]:
        return substitute(records, size.to_bytes(8, "little"), value.to_bytes(8, "little"))

    def in_record(among: list[StoredRecord], value: int) -> list[StoredRecord]:
        return substitute(among, b"\x1a" + size.to_bytes(4), b"\x1a" + value.to_bytes(4), (FILE_RECORD,))

    one_file, nine_files = b"\xa1\x00\x83\x01\x00\x00", b"\xa1\x00\x83\x09\x00\x00"
    whole, other = blake3(content).digest(), blake3(b"another content").digest()
    for story, changed in {
        "the tree says less": in_nodes(size - 1),
        "the tree says more": in_nodes(1 << 62),
        "the record says less": in_record(records, size - 1),
        "the record says more": in_record(records, 0x7FFFFFFF),
        "both say more": in_record(in_nodes(size + 1), size + 1),
        "both say less": in_record(in_nodes(size - 1), size - 1),
        "the directory counts more files": substitute(records, one_file, nine_files),
        "another content hash in the tree": substitute(records, whole, other, (NODE,)),
        "another content hash in tree and record": substitute(records, whole, other, (NODE, FILE_RECORD)),
    }.items():
        victim.refuses(assemble(header, changed), story)


def test_the_whole_database_is_no_backup_that_smuggles(source: Source, victim: Target) -> None:
    """A database file with history and settings: its system data are not taken over by a plain import."""
    data = source.server.database.read_bytes()
    response = send(victim.client, data)
    assert response.status in (200, 400), response.body
    if response.status == 200:
        assert response.json()["head_promoted"] is False
        assert response.json()["warnings"]
    assert victim.now() == victim.state


def test_a_refusal_at_the_shell_has_its_exit_code(
    victim: Target, backups: dict[str, tuple[bytes, str]], tmp_path: Path
) -> None:
    data, _ = backups["export"]
    bad = bytearray(data)
    bad[len(data) // 2] ^= 255
    for name, content, codes in (
        ("foreign", b"hello", {6}),
        ("cut", data[: len(data) // 2], {6, 7}),
        ("flipped", bytes(bad), {7}),
        ("empty", b"", {6}),
    ):
        file = tmp_path / f"{name}.svcdb"
        file.write_bytes(content)
        result = run_svc("import", "-D", victim.server.database, "--file", file, "--promote", check=False)
        assert result.returncode in codes, (name, result)
        assert result.stderr.startswith(b"svc: ")
        assert file.read_bytes() == content
    missing = run_svc("import", "-D", victim.server.database, "--file", tmp_path / "none", check=False)
    assert missing.returncode == 3
    assert victim.now() == victim.state
