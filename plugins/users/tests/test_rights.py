"""What grants add up to, against a model of ten lines: no decision differs, however random the grants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path as FilePath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.plugin import Database, Entry, Operation, Path, Rights, Version, format_path
from svc_users.api import Grant, GrantedRights, RightsCache, checked_grant, put_grant, remove_grant
from svc_users.names import name_key
from svc_users.records import FLAGS, Group, decode_grant, encode, grant_file, group_file
from svc_users.rights import rule_of

OPERATIONS = tuple(Operation)
NAMES = ("a", "b", "ab", "c.md")


def model(grants: Sequence[Grant], operation: Operation, path: Path) -> bool:
    """The rule as the specification has it: the nearest level that says something; deny beats allow."""
    for depth in range(len(path), -1, -1):
        here = [
            grant
            for grant in grants
            if grant.path == format_path(path[:depth]) and fits(grant.path_pattern, path[depth:])
        ]
        if any(operation.letter in grant.deny for grant in here):
            return False
        if any(operation.letter in grant.allow for grant in here):
            return True
    return False


def fits(pattern: str | None, path: Path) -> bool:
    """Whether a pattern fits a relative path, by trying every way."""
    return pattern is None or fits_from(tuple(pattern.split("/")), path)


def fits_from(pattern: tuple[str, ...], path: Path) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(fits_from(pattern[1:], path[skipped:]) for skipped in range(len(path) + 1))
    one = re.escape(pattern[0]).replace(r"\*", ".*").replace(r"\?", ".")
    return bool(path) and re.fullmatch(one, path[0]) is not None and fits_from(pattern[1:], path[1:])


def paths(longest: int) -> st.SearchStrategy[Path]:
    return st.lists(st.sampled_from(NAMES), max_size=longest).map(tuple)


def flags() -> st.SearchStrategy[str]:
    letters = [st.sampled_from((letter, "-", "-")) for letter in FLAGS]
    return st.tuples(*letters).map("".join)


PATTERNS = st.none() | st.lists(
    st.sampled_from(("**", "*", "a*", "?", "*b", "a", "b", "*.md")), min_size=1, max_size=4
).map("/".join)
GROUPS = ("red", "green", "blue")


@st.composite
def grant_lists(draw: st.DrawFn) -> list[Grant]:
    found = []
    for _ in range(draw(st.integers(0, 8))):
        allow, deny = draw(flags()), draw(flags())
        if allow == deny == "--------":
            allow = "-r------"
        found.append(
            checked_grant(
                draw(paths(3)),
                draw(st.sampled_from(GROUPS)),
                allow=allow,
                deny=deny,
                path_pattern=draw(PATTERNS),
                created_at=1,
            )
        )
    # One grant for one group, path and pattern: the last one.
    return list({grant.grant_id: grant for grant in found}.values())


def rights_of(grants: Sequence[Grant]) -> GrantedRights:
    return GrantedRights(map(rule_of, grants))


@settings(max_examples=200)
@given(grants=grant_lists(), asked=st.lists(paths(6), min_size=1, max_size=8))
def test_every_decision_is_the_models(grants: list[Grant], asked: list[Path]) -> None:
    rights = rights_of(grants)
    for path in (*asked, *asked):
        for operation in OPERATIONS:
            assert rights.allows(operation, path) == model(grants, operation, path), (operation, path)
        allowed = [operation.bit for operation in OPERATIONS if rights.allows(operation, path)]
        assert rights.mask(path) == sum(allowed), path


@settings(max_examples=200)
@given(grants=grant_lists(), above=paths(3), below=st.lists(paths(3), min_size=1, max_size=12))
def test_yes_for_everything_below_is_never_wrong(grants: list[Grant], above: Path, below: list[Path]) -> None:
    rights = rights_of(grants)
    hung = [tuple(segment for segment in grant.path.split("/") if segment) for grant in grants]
    candidates = [(*above, *path) for path in below] + [path for path in hung if path[: len(above)] == above]
    for operation in OPERATIONS:
        if rights.allows_below(operation, above):
            for path in (above, *candidates):
                assert model(grants, operation, path), (operation, above, path)


@given(grants=grant_lists(), above=paths(3))
def test_without_patterns_and_denials_yes_for_one_path_is_yes_for_all_below(
    grants: list[Grant], above: Path
) -> None:
    plain = [grant for grant in grants if grant.path_pattern is None and grant.deny == "--------"]
    rights = rights_of(plain)
    for operation in OPERATIONS:
        assert rights.allows_below(operation, above) == rights.allows(operation, above)


def test_nothing_granted_is_nothing_allowed() -> None:
    nothing = rights_of([])
    for operation in OPERATIONS:
        assert not nothing.allows(operation, ())
        assert not nothing.allows(operation, ("a", "b"))
        assert not nothing.allows_below(operation, ())


@pytest.mark.parametrize("depth", [1, 50, 2000])
def test_a_deep_path_is_decided_by_what_is_near(depth: int) -> None:
    rights = rights_of(
        [
            checked_grant((), "red", allow="-r--l---", created_at=1),
            checked_grant(("a",) * 40, "red", deny="-r------", created_at=1),
        ]
    )
    assert rights.allows(Operation.READ, ("a",) * depth) == (depth < 40)
    assert rights.allows(Operation.LIST, ("a",) * depth)
    assert rights.allows_below(Operation.LIST, ())
    assert not rights.allows_below(Operation.READ, ())


def test_what_is_remembered_is_bounded() -> None:
    grants = [
        checked_grant((f"d{number}",), "red", allow="-r------", created_at=1) for number in range(20_000)
    ]
    rights = rights_of(grants)
    assert all(rights.allows(Operation.READ, (f"d{number}", "x")) for number in range(20_000))
    assert len(rights._passed) <= 8192


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("*.md", [("x.md",)], [(), ("d", "x.md"), ("x.txt",)]),
        ("*", [("x",)], [(), ("d", "x")]),
        ("**/*", [("x",), ("d", "x")], [()]),
        ("**/*.md", [("x.md",), ("d", "e", "x.md")], [(), ("d",), ("x.mdx",)]),
        ("**", [(), ("d",), ("d", "e")], []),
        ("drafts", [("drafts",)], [("drafts", "x"), ()]),
        ("drafts/**", [("drafts",), ("drafts", "x", "y")], [("draft",), ()]),
        ("[ab]", [("[ab]",)], [("a",)]),
    ],
)
def test_a_pattern_narrows_a_grant(pattern: str, inside: list[Path], outside: list[Path]) -> None:
    at = ("shared", "a.b")
    grant = checked_grant(at, "red", allow="-r------", path_pattern=pattern, created_at=1)
    rights = rights_of([grant])
    for path in inside:
        assert rights.allows(Operation.READ, (*at, *path))
    for path in outside:
        assert not rights.allows(Operation.READ, (*at, *path))


def test_malformed_flags_allow_nothing_and_deny_everything() -> None:
    good = checked_grant((), "red", allow="crudlify", created_at=1)
    torn = Grant(grant_id="x", path="/a", group="red", allow="everything", created_at=1)
    shut = Grant(grant_id="y", path="/b", group="red", allow="crudlify", deny="no", created_at=1)
    rights = rights_of([good, torn, shut])
    assert rights.allows(Operation.READ, ("a",))
    assert not rights.allows(Operation.READ, ("b", "c"))


# -- the cache -----------------------------------------------------------------------------------------


@pytest.fixture
def groups(tmp_path: FilePath) -> Database:
    database = Database(tmp_path / "rights.svcdb")
    with database.transaction() as transaction:
        for name in GROUPS:
            transaction.put_system(group_file(name_key(name)), encode(Group(name=name, created_at=1)))
    return database


STEPS = st.lists(
    st.lists(st.tuples(grant_lists(), st.booleans()), min_size=1, max_size=2), min_size=1, max_size=4
)


@settings(max_examples=25)
@given(rounds=STEPS, asked=st.lists(paths(5), min_size=1, max_size=6))
def test_rights_that_followed_changes_equal_those_made_anew(
    tmp_path_factory: pytest.TempPathFactory,
    rounds: list[list[tuple[list[Grant], bool]]],
    asked: list[Path],
) -> None:
    with Database(tmp_path_factory.mktemp("rights") / "x.svcdb") as database:
        with database.transaction() as transaction:
            for name in GROUPS:
                transaction.put_system(group_file(name_key(name)), encode(Group(name=name, created_at=1)))
        cache = RightsCache(database)
        present: dict[str, Grant] = {}
        for changes in rounds:
            for grants, comes in changes:
                change(database, present, grants, comes)
            for some in (GROUPS, GROUPS[:1], ()):
                followed = cache.of(frozenset(some), database.system())
                anew = RightsCache(database).of(frozenset(some), database.system())
                own = [grant for grant in present.values() if grant.group in some]
                for path in asked:
                    for operation in OPERATIONS:
                        expected = model(own, operation, path)
                        assert followed.allows(operation, path) == expected
                        assert anew.allows(operation, path) == expected
                        assert followed.allows_below(operation, path) == anew.allows_below(operation, path)


def change(database: Database, present: dict[str, Grant], grants: list[Grant], comes: bool) -> None:
    with database.transaction() as transaction:
        for grant in grants:
            if comes:
                put_grant(transaction, database.system(), grant)
                present[grant.grant_id] = grant
            elif grant.grant_id in present:
                remove_grant(transaction, present.pop(grant.grant_id))


def test_a_grant_that_cannot_be_read_denies(groups: Database) -> None:
    grants = [checked_grant((name,), "red", allow="cr------", created_at=1) for name in ("a", "b")]
    with groups.transaction() as transaction:
        for grant in grants:
            put_grant(transaction, groups.system(), grant)
    cache = RightsCache(groups)
    assert cache.of(frozenset({"red"}), groups.system()).mask(("c",)) == 0
    with groups.transaction() as transaction:
        everywhere = checked_grant((), "green", allow="crudlify", created_at=1)
        put_grant(transaction, groups.system(), everywhere)
    both = frozenset({"red", "green"})
    assert cache.of(both, groups.system()).allows(Operation.READ, ("c",))
    with groups.transaction() as transaction:
        transaction.put_system(grant_file(grants[0].grant_id), b"torn")
    for rights in (cache.of(both, groups.system()), RightsCache(groups).of(both, groups.system())):
        assert not rights.allows(Operation.READ, ("c",))
        assert not rights.allows(Operation.READ, ("a",))
        assert rights.allows(Operation.READ, ("b",)), "what is granted nearer is granted"


def test_rights_that_many_need_at_once_are_put_together_once(
    groups: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with groups.transaction() as transaction:
        for number in range(300):
            grant = checked_grant((f"d{number}",), "red", allow="-r------", created_at=1)
            put_grant(transaction, groups.system(), grant)
    read: list[str] = []

    def decode(system: Version, entry: Entry) -> Grant | None:
        grant = decode_grant(system, entry)
        read.append("" if grant is None else grant.grant_id)
        return grant

    monkeypatch.setattr("svc_users.rights_cache.decode_grant", decode)
    cache, wanted = RightsCache(groups), frozenset({"red"})
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cache.of(wanted, groups.system()), range(32)))
    assert all(rights is found[0] for rights in found)
    assert len(read) == len(set(read)) == 300


def test_rights_stay_the_same_object_while_foreign_grants_change(groups: Database) -> None:
    cache = RightsCache(groups)

    def of(*names: str) -> Rights:
        return cache.of(frozenset(names), groups.system())

    def give(group: str, path: str) -> None:
        with groups.transaction() as transaction:
            grant = checked_grant((path,), group, allow="-r------", created_at=1)
            put_grant(transaction, groups.system(), grant)

    give("red", "a")
    give("green", "b")
    red, both = of("red"), of("red", "green")
    give("blue", "c")
    assert of("red") is red
    assert of("red", "green") is both
    assert of("red", "nobody") is red
    give("green", "d")
    assert of("red") is red
    assert of("red", "green") is not both
    assert of("green", "red").allows(Operation.READ, ("d",))


def test_a_change_of_one_group_reads_no_grant_of_another(
    groups: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from svc_users import rights_cache

    with groups.transaction() as transaction:
        for number in range(50):
            for group in ("red", "green"):
                grant = checked_grant((f"d{number}",), group, allow="-r------", created_at=1)
                put_grant(transaction, groups.system(), grant)
    cache = RightsCache(groups)
    cache.of(frozenset(GROUPS), groups.system())
    read: list[str] = []
    decode = rights_cache.decode_grant

    def counting(system: object, entry: object) -> Grant | None:
        grant = decode(system, entry)  # type: ignore[arg-type]
        assert grant is not None
        read.append(grant.path)
        return grant

    monkeypatch.setattr(rights_cache, "decode_grant", counting)
    with groups.transaction() as transaction:
        put_grant(
            transaction, groups.system(), checked_grant(("new",), "red", allow="-r------", created_at=1)
        )
    assert cache.of(frozenset(GROUPS), groups.system()).allows(Operation.READ, ("new",))
    assert read == ["/new"]


def test_the_fingerprint_of_rights_changes_with_their_own_grants(groups: Database) -> None:
    def of(*names: str) -> bytes:
        fingerprint: bytes = RightsCache(groups).of(frozenset(names), groups.system()).fingerprint  # type: ignore[attr-defined]
        return fingerprint

    def give(group: str, path: str) -> None:
        with groups.transaction() as transaction:
            put_grant(
                transaction, groups.system(), checked_grant((path,), group, allow="-r------", created_at=1)
            )

    nothing = of("red")
    assert nothing == of() == of("blue")
    give("red", "a")
    red = of("red")
    assert red not in (nothing, b"")
    give("green", "b")
    assert of("red") == of("red", "blue") == red
    assert len({red, of("green"), of("red", "green"), nothing}) == 4
    assert of("red", "green") == of("green", "red")
    give("red", "c")
    assert of("red") != red


@settings(max_examples=500)
@given(grant_lists(), paths(4))
def test_nobody_is_stuck_above_what_may_be_read_or_listed(grants: list[Grant], path: Path) -> None:
    rights = GrantedRights(map(rule_of, grants))
    if any(rights.allows(operation, path) for operation in (Operation.READ, Operation.LIST)):
        for depth in range(len(path)):
            above = path[:depth]
            may_be_seen = any(rights.allows(one, above) for one in (Operation.READ, Operation.LIST))
            assert may_be_seen or rights.leads_on(above), above


def test_only_what_is_granted_to_be_read_or_listed_leads_there() -> None:
    def leads(path: str, *grants: Grant) -> bool:
        return GrantedRights(map(rule_of, grants)).leads_on(tuple(path.split("/")) if path else ())

    def grant(path: Path, group: str, **said: str) -> Grant:
        return checked_grant(path, group, created_at=1, **{"allow": "--------", "deny": "--------", **said})

    deep = grant(("a", "b"), "g", allow="-r------")
    assert [leads(path, deep) for path in ("", "a", "a/b", "a/c", "b")] == [True, True, False, False, False]
    assert not leads("a", grant(("a", "b"), "g", allow="c-ud----"))
    assert not leads("a", deep, grant(("a", "b"), "h", deny="-r------"))
    pattern = grant(("a",), "g", allow="----l---", path_pattern="x/*/y.md")
    assert [leads(path, pattern) for path in ("", "a", "a/x", "a/x/c", "a/y")] == [True] * 4 + [False]
