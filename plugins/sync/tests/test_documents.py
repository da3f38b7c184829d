"""Documents of the system tree: users, keys, grants and settings are those of the cluster."""

from __future__ import annotations

import time

import pytest
from svc_sync.exchange import answering, commits
from svc_sync.exchange.messages import PageAnswer, decode_message, encode_message
from svc_sync.exchange.records import find_node

from svc.errors import InvalidInput
from svc.plugin import Path, collect
from svc_auth_self.keys import create_key, verified_key
from svc_users.lookup import find_user
from svc_users.models import UserChange
from svc_users.users import change_user, create_user

from .nodes import Node, Nodes  # noqa: TID252

USER: Path = ("users", "by-id", "u1")
KEY: Path = ("api-keys", "k1")
LIFECYCLE: Path = ("versions", "lifecycle")


def store(node: Node, path: Path, content: bytes) -> None:
    with node.database.transaction() as changes:
        changes.put_system(path, content)


def remove(node: Node, path: Path) -> None:
    with node.database.transaction() as changes:
        changes.delete_system(path)


def at(node: Node, path: Path) -> bytes | None:
    system = node.database.system()
    entry = system.get(path)
    return None if entry is None else system.read_all(entry)


def everywhere(nodes: Nodes, path: Path) -> bytes | None:
    [content] = {at(node, path) for node in nodes.all}
    return content


def test_documents_travel_and_are_forgotten(nodes: Nodes) -> None:
    a, b, c = nodes.cluster(3)
    store(a, USER, b"ann")
    store(b, KEY, b"key")
    nodes.heal()
    assert everywhere(nodes, USER) == b"ann"
    assert everywhere(nodes, KEY) == b"key"
    store(c, USER, b"anna")
    remove(a, KEY)
    nodes.heal()
    assert everywhere(nodes, USER) == b"anna"
    assert everywhere(nodes, KEY) is None
    assert a.registers() == b.registers() == c.registers() == {}


def test_a_removal_counts_more_than_a_change_where_rights_are_given(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    store(a, KEY, b"key")
    store(a, LIFECYCLE, b"first")
    nodes.heal()
    remove(a, KEY)
    remove(a, LIFECYCLE)
    time.sleep(0.005)
    store(b, KEY, b"later")
    store(b, LIFECYCLE, b"later")
    nodes.heal()
    assert everywhere(nodes, KEY) is None
    assert everywhere(nodes, LIFECYCLE) == b"later"
    assert a.conflicts() == {}
    store(b, KEY, b"made again by somebody who knows of the removal")
    nodes.heal()
    assert everywhere(nodes, KEY) == b"made again by somebody who knows of the removal"
    assert a.registers() == b.registers() == {}


def test_what_is_no_business_of_others_stays(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    for path in (
        ("plugins", "sync"),
        ("plugins", "sync.http"),
        ("signing-keys", "x"),
        ("tasks", "records", "t"),
    ):
        store(a, path, b"of a")
    store(a, ("plugins", "query"), b"of all")
    nodes.heal()
    assert at(b, ("plugins", "sync")) is None
    assert at(b, ("plugins", "sync.http")) is None
    assert at(b, ("tasks", "records", "t")) is None
    assert at(b, ("signing-keys", "x")) is None
    assert at(b, ("plugins", "query")) == b"of all"


def test_a_joiner_takes_the_documents_of_the_cluster_and_keeps_its_own_settings(nodes: Nodes) -> None:
    a, b = nodes.new(), nodes.new()
    store(a, USER, b"of a")
    store(a, ("plugins", "sync"), b"settings of a")
    store(b, USER, b"of b")
    store(b, KEY, b"of b")
    store(b, ("plugins", "sync"), b"settings of b")
    store(b, ("plugins", "query"), b"of b")
    b.join(a)
    assert at(b, USER) == b"of a"
    assert at(b, KEY) is None
    assert at(b, ("plugins", "query")) is None
    assert at(b, ("plugins", "sync")) == b"settings of b"
    nodes.heal()
    assert at(a, ("plugins", "sync")) == b"settings of a"
    assert at(a, KEY) is None
    assert a.registers() == b.registers() == {}


def test_what_changes_during_a_first_copy_arrives(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "_TREE_ENTRIES", 2)
    a, b = nodes.new(), nodes.new()
    for number in range(6):
        store(a, ("users", "by-id", f"{number}"), b"first")
    asked = 0

    def on_question(question: str) -> None:
        nonlocal asked
        asked += question == "tree"
        if asked == 3:
            asked += 1
            remove(a, ("users", "by-id", "0"))
            store(a, ("users", "by-id", "1"), b"second")
            store(a, ("users", "by-id", "00"), b"new")

    b.on_question = on_question
    b.join(a)
    assert asked >= 5
    names = {name for name, _ in b.database.system().entries(("users", "by-id"))}
    assert names == {"00", "1", "2", "3", "4", "5"}
    assert at(b, ("users", "by-id", "1")) == b"second"
    assert b.database.system().get(("sync", "copied")) is None


def test_changes_outlive_collections_and_rounds(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    a, _ = nodes.cluster(2)
    store(a, KEY, b"key")
    nodes.heal()
    monkeypatch.setattr(commits, "ROUND_PATHS", 4)
    for number in range(11):
        store(a, ("users", "by-id", f"{number}"), b"x")
        store(a, ("users", "by-id", f"{number}"), b"y")
    remove(a, KEY)
    collect(a.database)
    a.database.drop_caches()
    nodes.heal()
    assert everywhere(nodes, KEY) is None
    assert [everywhere(nodes, ("users", "by-id", f"{number}")) for number in range(11)] == [b"y"] * 11


def test_a_document_that_changes_during_a_merge_is_merged_again(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    store(a, KEY, b"key")
    nodes.heal()
    remove(a, KEY)
    a.put("large", b"0123456789abcdef" * 50_000)

    def on_question(question: str) -> None:
        if question == "objects":
            store(b, KEY, b"changed meanwhile")

    b.on_question = on_question
    b.pull(a)
    b.on_question = lambda question: None
    nodes.heal()
    assert everywhere(nodes, KEY) is None


def test_a_document_above_64_kib_stays_on_its_node(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    store(a, LIFECYCLE, b"x" * (65 << 10))
    nodes.heal()
    assert at(b, LIFECYCLE) is None
    store(a, LIFECYCLE, b"small")
    nodes.heal()
    assert at(b, LIFECYCLE) == b"small"


@pytest.mark.parametrize("bad", ["//system", "//other/x", "//system/../x", "///x", "//refs/forks"])
def test_paths_that_registers_cannot_have_are_refused(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, bad: str
) -> None:
    a, b = nodes.cluster(2)
    store(a, KEY, b"key")
    change_pages(monkeypatch, lambda rows: [(bad, rows[0][1])])
    with pytest.raises(InvalidInput):
        b.pull(a)


def test_what_no_descriptor_lets_in_is_left_out(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = nodes.cluster(2)
    before = find_node(b.database.system())
    store(a, KEY, b"key")
    change_pages(
        monkeypatch,
        lambda rows: [(text, rows[0][1]) for text in ("//system/signing-keys/x", "//system/sync/node")],
    )
    b.pull(a)
    assert find_node(b.database.system()) == before
    assert at(b, ("signing-keys", "x")) is None


def change_pages(monkeypatch: pytest.MonkeyPatch, changed: object) -> None:
    """What a member says that lies."""
    honest = answering.QUESTIONS["registers"]

    def lie(database: object, payload: bytes) -> bytes:
        from msgspec.structs import replace

        said = decode_message(honest(database, payload), PageAnswer)  # type: ignore[arg-type]
        rows = changed(said.registers) if said.registers else []  # type: ignore[operator]
        return encode_message(replace(said, registers=rows))

    monkeypatch.setitem(answering.QUESTIONS, "registers", lie)


def test_keys_that_were_made_on_both_sides_of_a_partition_are_good_at_both(nodes: Nodes) -> None:
    a, b = nodes.cluster(2)
    texts = []
    for node in (a, b):
        with node.database.transaction() as changes:
            _, text = create_key(
                node.database,
                changes,
                user_id="u",
                label="",
                expires_at=1 << 52,
                rules=(),
                created_by=None,
            )
        texts.append(text)
    nodes.heal()
    for node in (a, b):
        assert all(verified_key(node.database, text) for text in texts)


@pytest.mark.parametrize("is_later", [False, True])
def test_a_deactivation_outlives_another_change_of_the_user(nodes: Nodes, is_later: bool) -> None:
    a, b = nodes.cluster(2)
    user_id = create_user(a.database, "ann").user_id
    nodes.heal()
    changes: list[tuple[Node, UserChange]] = [
        (a, UserChange(is_active=False)),
        (b, UserChange(email="ann@example.org")),
    ]
    for node, change in changes if is_later else reversed(changes):
        change_user(node.database, user_id, change)
        time.sleep(0.005)
    nodes.heal()
    for node in (a, b):
        found = find_user(node.database.system(), user_id)
        assert found is not None
        assert not found.is_active
    change_user(b.database, user_id, UserChange(is_active=True))
    nodes.heal()
    for node in (a, b):
        found = find_user(node.database.system(), user_id)
        assert found is not None
        assert found.is_active
