"""What a backup does with a path of the system tree, as descriptors say it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from svc.database import Database
from svc.errors import InvalidInput, PreconditionFailed
from svc.plugin import same_content
from svc.plugins import BackupRule, PluginDescriptor, SyncRule, SystemPath, SystemPaths

INCLUDE, SECRET, SKIP = BackupRule.INCLUDE, BackupRule.SECRET, BackupRule.SKIP


def owners(*paths: tuple[str, BackupRule], documents: str | None = None) -> SystemPaths:
    owned = [SystemPath(path, rule) for path, rule in paths]
    if documents is not None:
        owned.append(SystemPath("refs/marks", INCLUDE, documents=documents))
    return SystemPaths([PluginDescriptor("a.b", "1", "s", (1, 1), "m", system_paths=tuple(owned))])


RULES = owners(
    ("users", INCLUDE),
    ("users/*/keys", SECRET),
    ("cache", SKIP),
    ("cache/kept", INCLUDE),
    ("cache/kept/not", SKIP),
    ("locked", SECRET),
    ("locked/open", INCLUDE),
    ("deep/er/still", INCLUDE),
)


TAKEN = {
    *("users/ann/name", "users/bob", "users/keys", "cache/kept/x", "deep/er/still/x"),
    *("plugins/files", "plugin-set"),
}
LEFT = {
    *("users/ann/keys/1/x", "users/cid/keys", "cache/x", "cache/kept/not/x", "locked/open/x", "deep/other"),
    "elsewhere",
}


def test_a_secret_decides_else_the_longest_path(database: Database) -> None:
    filled(database, *TAKEN, *LEFT)
    root = database.system().root
    assert {"/".join(path) for path, _ in RULES.included(database.objects, root)} == TAKEN


def test_nodes_exchange_what_the_longest_path_says_but_settings_of_a_node() -> None:
    removal, later, none = SyncRule.REMOVAL_WINS, SyncRule.LAST_WRITER, SyncRule.NONE
    shared = PluginDescriptor(
        "a.b",
        "1",
        "s",
        (1, 1),
        "m",
        is_of_node=True,
        system_paths=(
            SystemPath("keys", SECRET, sync=removal),
            SystemPath("keys/own", SECRET),
            SystemPath("marks/set", INCLUDE, sync=later),
        ),
    )
    paths = SystemPaths([shared])
    assert paths.exchanged() == [(("keys",), removal), (("marks", "set"), later), (("plugins",), later)]
    assert paths.kept() == {("plugins", "a.b")}
    rules = {
        ("keys", "x"): removal,
        ("keys", "own"): none,
        ("keys", "own", "x"): none,
        ("marks", "set"): later,
        ("marks",): none,
        ("marks", "other"): none,
        ("plugins", "a.b"): none,
        ("plugins", "a.c"): later,
        ("unknown",): none,
    }
    assert {path: paths.sync_rule(path) for path in rules} == rules


def test_an_entry_of_the_system_tree_stands_at_another_path_too(database: Database) -> None:
    filled(database, "a/x", "a/y/z")
    entry = database.system().get(("a",))
    assert entry is not None
    with database.transaction() as transaction:
        transaction.put_system_entry(("copy", "a"), entry)
    found = database.system().get(("copy", "a"))
    assert found is not None
    assert found.hash == entry.hash
    with database.transaction() as transaction:
        transaction.put_system(("copy", "a", "x"), b"other")
    changed = database.system().get(("copy", "a", "x"))
    with pytest.raises(PreconditionFailed), database.transaction() as transaction:
        transaction.delete_system(("copy", "a", "x"), condition=same_content(entry))
    with database.transaction() as transaction:
        transaction.delete_system(("copy", "a", "x"), condition=same_content(changed))
    assert database.system().get(("copy", "a", "x")) is None
    absent = msgspec.structs.replace(entry, hash=bytes(32))
    with pytest.raises(InvalidInput), database.transaction() as transaction:
        transaction.put_system_entry(("copy", "b"), absent)


def filled(database: Database, *paths: str) -> Database:
    with database.transaction() as transaction:
        for path in paths:
            transaction.put_system(tuple(path.split("/")), path.encode())
    return database


@pytest.fixture
def database(tmp_path) -> Any:
    with Database(tmp_path / "x.svcdb") as opened:
        yield opened


def test_a_walk_gives_what_is_included_in_order_and_names_what_nobody_declares(database: Database) -> None:
    filled(
        database,
        *("users/ann/name", "users/ann/keys/1", "users/bob", "cache/x", "cache/kept/a", "cache/kept/not/b"),
        *("locked/open/x", "deep/er/still/x", "deep/er/other", "deep/else", "elsewhere/a/b", "plugins/x"),
    )
    with database.transaction() as transaction:
        transaction.set_ref("marks/one", database.head().root)
    root = database.system().root
    held = ["/".join(path) for path, _ in RULES.included(database.objects, root)]
    assert held == ["cache/kept/a", "deep/er/still/x", "plugins/x", "users/ann/name", "users/bob"]
    missing = ["/".join(path) for path in RULES.undeclared(database.objects, root)]
    assert missing == ["deep/else", "deep/er/other", "elsewhere", "refs/marks"]


def test_refs_are_taken_as_wholes_with_their_documents(database: Database) -> None:
    with database.transaction() as transaction:
        transaction.put(("file",), b"content")
    with database.transaction() as transaction:
        transaction.set_ref("marks/a/b", database.head().root)
    rules = owners(("about", INCLUDE), documents="about/marks")
    held = [path for path, _ in rules.included(database.objects, database.system().root)]
    assert held == [("refs", "marks", "a%2Fb")]
    assert rules.documents(held[0]) == ("about", "marks", "a%2Fb")
    assert rules.documents(("refs", "others", "x")) is None


def test_what_is_secret_is_not_even_opened(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(database, *(f"locked/{number}/x" for number in range(100)), "users/ann")
    root = database.system().root
    read: list[bytes] = []
    real = database.objects.read_node
    monkeypatch.setattr(database.objects, "read_node", lambda hash: read.append(hash) or real(hash))
    assert [path for path, _ in RULES.included(database.objects, root)] == [("users", "ann")]
    assert len(set(read)) == 2
