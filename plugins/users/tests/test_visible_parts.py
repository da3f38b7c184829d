"""Where a caller may see anything: outside of the parts nothing is allowed, in some of them everything."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.plugin import ROOT_IDENTITY, Identity, Operation, Path, Rights, ScopedRule, permitted, visible_parts
from svc_users.api import Grant, GrantedRights, checked_grant
from svc_users.rights import rule_of

R = Operation.READ
NAMES = ("a", "b", "c.md")
FILES = [path for depth in range(5) for path in product(NAMES, repeat=depth)]
SEGMENTS = st.sampled_from(("a", "b", "*", "?", "**", "*.md", "c.md"))
FLAGS = st.sampled_from(("-r------", "crudlify", "--------", "-r------", "c-------"))


def paths(longest: int) -> st.SearchStrategy[Path]:
    return st.lists(st.sampled_from(NAMES), max_size=longest).map(tuple)


@st.composite
def grants(draw: st.DrawFn) -> Grant:
    allow, deny = draw(
        st.sampled_from((("-r------", "--------"), ("-r------", "c-------"), ("--------", "-r------")))
    )
    pattern = draw(st.none() | st.lists(SEGMENTS, min_size=1, max_size=3).map("/".join))
    return checked_grant(
        draw(paths(3)),
        draw(st.sampled_from("xyz")),
        allow=allow,
        deny=deny,
        path_pattern=pattern,
        created_at=1,
    )


RULES = st.lists(
    st.builds(
        ScopedRule, st.lists(SEGMENTS, max_size=4).map(lambda segments: "/" + "/".join(segments)), FLAGS
    ),
    max_size=5,
).map(tuple)


def rights_of(found: list[Grant]) -> GrantedRights:
    return GrantedRights(map(rule_of, found))


def check(identity: Identity, base: Path) -> None:
    parts = visible_parts(identity, R, base)
    assert parts is not None
    tops = [path for path, _ in parts]
    assert tops == sorted(tops)
    for number, path in enumerate(tops):
        assert path[: len(base)] == base
        assert not any(path[: len(other)] == other for other in tops[:number])
    for file in FILES:
        if file[: len(base)] == base:
            holding = [certain for path, certain in parts if file[: len(path)] == path]
            may = bool(permitted(identity, file) & R.bit)
            assert holding or not may, (parts, file)
            assert may or holding != [True], (parts, file)


@settings(max_examples=300, deadline=None)
@given(found=st.lists(grants(), max_size=6), rules=RULES, base=paths(2))
def test_parts_agree_with_every_decision(
    found: list[Grant], rules: tuple[ScopedRule, ...], base: Path
) -> None:
    check(Identity("u", "ann", rights=rights_of(found)), base)
    check(Identity("u", "ann", rights=rights_of(found), rules=rules), base)
    check(Identity(ROOT_IDENTITY.user_id, "root", is_root=True, rules=rules), base)
    check(Identity(None, "share", rules=rules), base)


def test_plain_grants_give_their_paths_for_certain() -> None:
    identity = Identity(
        "u",
        "ann",
        rights=rights_of(
            [checked_grant((*path,), "x", allow="-r------", created_at=1) for path in ("b", "ac", "abc")]
        ),
    )
    assert visible_parts(identity, R, ()) == ((("a", "b", "c"), True), (("a", "c"), True), (("b",), True))
    assert visible_parts(identity, R, ("a",)) == ((("a", "b", "c"), True), (("a", "c"), True))
    assert visible_parts(identity, R, ("b", "deep", "down")) == ((("b", "deep", "down"), True),)
    assert visible_parts(identity, R, ("c",)) == ()
    assert visible_parts(identity, Operation.CREATE, ()) == ()


def test_patterns_give_what_they_begin_with_and_denials_take_the_certainty() -> None:
    made = [
        checked_grant(("a",), "x", allow="-r------", path_pattern="deep/**/*.md", created_at=1),
        checked_grant(("b",), "x", allow="-r------", created_at=1),
        checked_grant(("b", "secret"), "x", deny="-r------", created_at=1),
    ]
    identity = Identity("u", "ann", rights=rights_of(made))
    assert visible_parts(identity, R, ()) == ((("a", "deep"), False), (("b",), False))
    assert visible_parts(identity, R, ("b", "open")) == ((("b", "open"), True),)
    assert visible_parts(identity, R, ("b", "secret")) == ()
    assert visible_parts(identity, R, ("a", "deep", "er")) == ((("a", "deep", "er"), False),)


def test_a_key_narrows_what_its_user_has() -> None:
    rights = rights_of([checked_grant(("a",), "x", allow="-r------", created_at=1)])
    rules = (
        ScopedRule("/a/b/**", "-r------"),
        ScopedRule("/a/*.md", "-r------"),
        ScopedRule("/c/**", "-r------"),
    )
    narrowed = Identity("u", "ann", rights=rights, rules=rules[:1] + rules[2:])
    assert visible_parts(narrowed, R, ()) == ((("a", "b"), True),)
    assert visible_parts(Identity("u", "ann", rights=rights, rules=rules), R, ()) == ((("a",), False),)


def test_root_sees_all_nobody_nothing_and_what_is_the_systems_is_no_part() -> None:
    assert visible_parts(ROOT_IDENTITY, R, ()) == (((), True),)
    assert visible_parts(ROOT_IDENTITY, R, ("a",)) == ((("a",), True),)
    assert visible_parts(ROOT_IDENTITY, R, (".svc-system", "a")) == ()
    assert visible_parts(Identity("u", "ann"), R, ()) == ()
    assert visible_parts(Identity(None, "share"), R, ()) == ()


class Silent(Rights):
    """Rights of a mode that says nothing of parts."""

    def allows(self, operation: Operation, path: Path) -> bool:
        return path[:1] == ("a",)


def test_what_nobody_tells_is_asked_for_each_path() -> None:
    rules = (ScopedRule("/a/b/**", "-r------"),)
    assert visible_parts(Identity("u", "ann", rights=Silent()), R, ()) is None
    assert visible_parts(Identity("u", "ann", rights=Silent(), rules=rules), R, ()) == ((("a", "b"), False),)


@pytest.mark.parametrize(("count", "known"), [(10_000, True), (10_001, False)])
def test_too_many_parts_are_not_told(count: int, known: bool) -> None:
    made = [checked_grant((f"{number}",), "x", allow="-r------", created_at=1) for number in range(count)]
    parts = visible_parts(Identity("u", "ann", rights=rights_of(made)), R, ())
    assert (parts is not None) is known
    assert parts is None or len(parts) == count
