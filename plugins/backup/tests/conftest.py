"""A small history to export, ways to call commands and routes, and a workshop that forges files."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import cbor2
import pytest
from falcon.testing import Result, TestClient
from msgspec import Struct, field
from msgspec.structs import replace
from xxhash import xxh3_64_intdigest

from svc.database.commit import Commit
from svc.errors import SvcError
from svc.log import encode_record
from svc.log.scanning import scan_records
from svc.objects.codecs import compress, decompress
from svc.plugin import Database, Hash, Identity, ObjectKind, SystemPaths, hash_object
from svc.plugins import Plugins, initialize
from svc_backup.format import IncomingFile, IncomingLimits, plan_export, plan_patch
from svc_backup.importing import ImportOptions, import_incoming
from svc_cli import main
from svc_testing import DistributionFactory, TestingAuthMode, load_with_testing_auth, serve_in_process

HOLDER = """
from svc.plugins import BackupRule, PluginDescriptor, SystemPath

INCLUDE, SECRET, SKIP = BackupRule.INCLUDE, BackupRule.SECRET, BackupRule.SKIP
PLUGIN = PluginDescriptor(
    "test.holder", "1.0", "Keeps data in the system tree", (1, 1), "svc_test_holder",
    system_paths=(
        *(SystemPath(path, INCLUDE) for path in ("users", "groups", "config", "grants")),
        *(SystemPath(path, SECRET) for path in ("api-keys", "refresh-tokens", "magic-links")),
        SystemPath("users/api-keys", SECRET),
        SystemPath("config/*/magic-links", SECRET),
        SystemPath("tasks", SKIP),
        SystemPath("refs/snapshots", INCLUDE, documents="versions/snapshots"),
        SystemPath("refs/forks", SKIP),
        SystemPath("versions", SKIP),
        SystemPath("versions/snapshots", INCLUDE),
    ),
)
"""
"""A plugin that keeps users, keys and named versions, as its descriptor says."""


def declared(source: str = HOLDER) -> SystemPaths:
    """What the descriptor of a module says of the system tree."""
    module: dict[str, Any] = {}
    exec(source, module)
    return SystemPaths([module["PLUGIN"]])


HELD = declared()

NOW = 1_790_000_000_000


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    return ("backup",)


class Source(Struct):
    """A database with two versions.

    Attributes:
        database: the database.
        first: root of the earlier version.
        second: root of the later one: files added, changed, deleted, and a directory moved.
    """

    database: Database
    first: Hash
    second: Hash

    def export(
        self, root: Hash | None = None, *, with_system: bool = False, system_paths: SystemPaths = HELD
    ) -> bytes:
        chosen = system_paths if with_system else None
        root = self.first if root is None else root
        with plan_export(self.database, root, system_paths=chosen) as outgoing:
            data = b"".join(outgoing.pieces())
            assert len(data) == outgoing.size
            return data

    def patch(self, base: Hash | None = None, target: Hash | None = None) -> bytes:
        base, target = base or self.first, target or self.second
        with plan_patch(self.database, base, target) as outgoing:
            data = b"".join(outgoing.pieces())
            assert len(data) == outgoing.size
            return data


def fill(database: Database) -> Source:
    """Two versions with one of everything."""
    large = random.Random(1).randbytes(300_000)
    with database.transaction() as transaction:
        for number in range(90):
            path = ("many", f"file-{number:03}.txt")
            transaction.put(path, b"number %d\n" % number, content_type="text/plain", updated_ms=NOW)
        transaction.put(("large.bin",), database.store(io.BytesIO(large)), updated_ms=NOW)
        transaction.put(("deep", "er", "data"), b"data" * 3000, updated_ms=NOW)
        transaction.put(("empty",), b"", updated_ms=NOW)
        transaction.mkdir(("hollow", "inside"), at_ms=NOW)
        transaction.link(("link",), "/large.bin", updated_ms=NOW)
    first = database.head().root
    while time.time_ns() // 1_000_000 <= database.head().time_ms:
        time.sleep(0.001)
    with database.transaction() as transaction:
        transaction.put(("many", "file-007.txt"), b"changed", updated_ms=NOW + 1)
        transaction.put(("new",), b"new", updated_ms=NOW + 1)
        changed = large[:70_000] + b"inserted" + large[70_000:]
        transaction.put(("large.bin",), database.store(io.BytesIO(changed)), updated_ms=NOW + 1)
        transaction.delete(("many", "file-050.txt"))
        transaction.delete(("link",))
        transaction.move(("deep",), ("moved",))
    return Source(database, first, database.head().root)


@pytest.fixture
def holder(testing_auth: DistributionFactory) -> None:
    """Lets processes that ``run_svc`` starts see the plugin ``test.holder``."""
    if not any("svc-test-holder" in path for path in testing_auth.paths):
        testing_auth.install(
            "svc-test-holder",
            modules={"svc_test_holder": HOLDER},
            entry_points={"test.holder": "svc_test_holder:PLUGIN"},
        )


@pytest.fixture
def hidden_rules() -> SystemPaths:
    """What a forger might use: everything is included, and nothing secret."""
    return declared(HOLDER.replace("SECRET)", "INCLUDE)").replace("SKIP)", "INCLUDE)"))


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    with Database(tmp_path / "source.svcdb") as database:
        yield fill(database)


@pytest.fixture(scope="session")
def shared_source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    """The same, for tests that only read it."""
    with Database(tmp_path_factory.mktemp("source") / "source.svcdb") as database:
        yield fill(database)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Database]:
    """An empty database."""
    with Database(tmp_path / "target.svcdb") as database:
        yield database


def take_in(
    database: Database,
    data: bytes,
    *,
    limits: IncomingLimits | None = None,
    name: str = "the file",
    with_system: bool = False,
    **options: Any,
) -> Any:
    """Imports bytes and returns the result."""
    path = database.path.with_name("incoming")
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with IncomingFile(
            descriptor, name, limits=limits or IncomingLimits(), directory=database.state_directory
        ) as file:
            chosen = HELD if with_system else None
            return import_incoming(database, file, ImportOptions(system_paths=chosen, **options))
    finally:
        os.close(descriptor)


@pytest.fixture(name="take_in")
def take_in_fixture() -> Callable[..., Any]:
    return take_in


def state_of(database: Database) -> tuple[Any, ...]:
    """What an import that is refused may not change."""
    log = database.path.read_bytes()
    return database.head(), tuple(database.refs()), log


@pytest.fixture
def refused(target: Database) -> Callable[..., SvcError]:
    """Imports bytes that must be refused, the database being afterwards, byte for byte, what it was."""

    def check(data: bytes, **options: Any) -> SvcError:
        before = state_of(target)
        with pytest.raises(SvcError) as caught:
            take_in(target, data, promote=True, **options)
        assert state_of(target) == before
        assert caught.value.status in (400, 409), caught.value
        return caught.value

    return check


def sealed(header: bytes) -> bytes:
    """A file header with its checksum made right."""
    return header[:120] + struct.pack("<Q", xxh3_64_intdigest(header[:120]))


# -- forging -----------------------------------------------------------------------------------


class Piece(Struct):
    """One record of a file, its content uncompressed. What is None follows from the content."""

    kind: ObjectKind | int
    content: bytes
    system: bool = False
    codec: int | None = None
    stored: bytes | None = None
    raw_length: int | None = None
    hash: Hash | None = None
    time_ms: int = NOW

    @property
    def identity(self) -> Hash:
        return self.hash or hash_object(ObjectKind(self.kind), self.content, self.system)

    def framed(self) -> bytes:
        codec, stored = compress(self.content)
        if self.codec is not None:
            codec = self.codec
        if self.stored is not None:
            stored = self.stored
        raw_length = len(self.content) if self.raw_length is None else self.raw_length
        return encode_record(
            self.kind,
            self.identity,
            stored,
            codec=codec,
            raw_length=raw_length,
            time_ms=self.time_ms,
            system=self.system,
        )


class Forge(Struct):
    """A file taken apart, to be changed and put together with valid checksums and hashes."""

    header: bytes
    pieces: list[Piece] = field(default_factory=list)
    commit: Commit | None = None
    tail: bytes = b""

    @classmethod
    def of(cls, data: bytes) -> Forge:
        forge = cls(data[:128])
        records = scan_records(lambda at, size: data[at : at + size], 128, len(data), payloads=True)
        for record in records:
            content = decompress(record.codec, record.payload or b"", record.raw_length)
            if record.kind is ObjectKind.COMMIT:
                forge.commit = Commit.decode(content)
            else:
                forge.pieces.append(Piece(record.kind, content, record.system, time_ms=record.time_ms))
        return forge

    def of_kind(self, kind: ObjectKind) -> list[Piece]:
        return [piece for piece in self.pieces if piece.kind == kind]

    def built(self, **changes: Any) -> bytes:
        """The file again; ``changes`` are fields of the commit."""
        assert self.commit is not None
        body = b"".join(piece.framed() for piece in self.pieces)
        chunks = sum(piece.kind == ObjectKind.CHUNK for piece in self.pieces)
        totals = replace(self.commit.totals, chunks=chunks)
        fields = {"durable_end": 128 + len(body), "totals": totals, **changes}
        content = replace(self.commit, **fields).encode()
        closing = Piece(ObjectKind.COMMIT, content, system=True, codec=0, stored=content)
        return self.header + body + closing.framed() + self.tail

    def with_node(self, piece: Piece, change: Callable[[list[Any]], None]) -> bytes:
        """The file with a changed root node, which the commit names under its new hash."""
        document = cbor2.loads(piece.content)
        change(document)
        piece.content = cbor2.dumps(document)
        for deletion in self.of_kind(ObjectKind.DELETION):
            fields = cbor2.loads(deletion.content)
            fields[2] = piece.identity
            deletion.content = cbor2.dumps(fields)
            self.header = sealed(self.header[:88] + piece.identity + self.header[120:])
        return self.built(root=piece.identity)


@pytest.fixture
def forge() -> type[Forge]:
    return Forge


@pytest.fixture
def piece() -> type[Piece]:
    return Piece


# -- commands ----------------------------------------------------------------------------------


class Ran(Struct, frozen=True):
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def report(self) -> dict[str, str]:
        """The lines of a report by name."""
        return {
            name: value.strip() for name, _, value in (line.partition(":") for line in self.out.splitlines())
        }


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Runs ``svc`` with words in this process; ``check`` is the exit code that is expected."""
    for name in ("SVC_DATABASE", "SVC_ROOT_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SVC_PLUGINS", "backup")

    def run_command(*words: object, check: int = 0) -> Ran:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        out, err = capfd.readouterr()
        code = int(ended.value.code or 0)
        assert code == check, f"svc {words} exited with {code}: {err}"
        sys.stdout.flush()
        return Ran(code, out, err)

    return run_command


@pytest.fixture
def ready(source: Source) -> Source:
    """The source with the plugin enabled in it, as commands need it."""
    initialize(source.database, load_with_testing_auth("backup"))
    return source


# -- routes ------------------------------------------------------------------------------------


class Http:
    """Calls the routes of one application on one database."""

    def __init__(self, app: Any, database: Database, mode: TestingAuthMode) -> None:
        self.database = database
        self._mode = mode
        self._client = TestClient(app)

    def become(self, identity: Identity | None) -> None:
        self._mode.identity = identity

    def post(self, path: str, value: Any = None, **options: Any) -> Result:
        if value is not None:
            options["body"] = json.dumps(value)
            options["headers"] = {"Content-Type": "application/json"}
        return self._client.simulate_post(path, **options)

    def send(self, path: str, body: bytes, **options: Any) -> Result:
        headers = {"Content-Type": "application/octet-stream"}
        return self._client.simulate_post(path, body=body, headers=headers, **options)


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    return load_with_testing_auth("backup")


@pytest.fixture
def http(tmp_path: Path, plugins: Plugins) -> Iterator[Http]:
    with serve_in_process(tmp_path / "served.svcdb", plugins) as (app, database, mode):
        yield Http(app, database, mode)
