"""One function decides; silence denies; scoped keys see missing paths where they are denied."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest
from falcon.testing import TestClient
from hypothesis import given
from hypothesis import strategies as st

from svc.pipeline import Application, effective_permissions, parse_flags, permits
from svc.plugins import Identity, Operation, ScopedRule
from svc_testing import PathRights

R, L, C, D = Operation.READ, Operation.LIST, Operation.CREATE, Operation.DELETE


def scoped(*rules: tuple[str, str]) -> Identity:
    return Identity("u", "root", is_root=True, rules=tuple(ScopedRule(*rule) for rule in rules))


def path(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split("/")))


@pytest.mark.parametrize(
    ("rules", "operation", "at", "allowed"),
    [
        ([("/a/**", "crudlify")], C, "/a/b/c", True),
        ([("/a/**", "crudlify")], C, "/a", True),
        ([("/a/**", "crudlify")], C, "/ab", False),
        ([("/a/*", "-r------")], R, "/a/b", True),
        ([("/a/*", "-r------")], R, "/a/b/c", False),
        ([("/a/*", "-r------")], L, "/a", True),
        ([("/a/*", "-r------")], L, "/", True),
        ([("/a/*", "-r------")], C, "/a", False),
        ([("/a/*", "-r------")], R, "/sibling", False),
        ([("/a/?.txt", "-r------")], R, "/a/x.txt", True),
        ([("/a/?.txt", "-r------")], R, "/a/xy.txt", False),
        ([("/a/secret", "--------"), ("/a/**", "-r------")], R, "/a/secret", False),
        ([("/a/**", "-r------"), ("/a/secret", "--------")], R, "/a/secret", True),
        ([("/**/x", "-r------")], R, "/p/q/x", True),
        ([("/**/x", "-r------")], L, "/p/q", True),
        ([("/**", "-r------")], R, "/", True),
        ([("/*", "c-------")], C, "/", False),
        ([("/**/*", "c-------")], C, "/", False),
        ([("/a", "crudlifyX")], R, "/a", False),
        ([("/a", "rc------")], R, "/a", False),
        ([("/a.b", "-r------")], R, "/axb", False),
    ],
)
def test_the_first_rule_that_matches_decides(
    rules: Any, operation: Operation, at: str, allowed: bool
) -> None:
    assert permits(scoped(*rules), operation, path(at), directory=True) is allowed
    on_the_way = operation in (R, L) and not fits_any(rules, at)
    assert permits(scoped(*rules), operation, path(at)) is (allowed and not on_the_way)


def fits_any(rules: list[tuple[str, str]], at: str) -> bool:
    return any(fits([part for part in glob.split("/") if part], path(at)) for glob, _ in rules)


@pytest.mark.parametrize("glob", ["/**/*.json", "/*/x/**", "/a/b/**", "/a/**/b/c"])
def test_only_directories_are_passed_on_the_way(glob: str) -> None:
    """What lies beside the way may be a file: no glob opens it."""
    identity = scoped((glob, "-r--l---"))
    assert permits(identity, L, ("a",), directory=True)
    assert not permits(identity, L, ("a",))
    assert not permits(identity, R, ("a",))
    assert effective_permissions(identity, ("a",), directory=True) == "-r--l---"
    assert effective_permissions(identity, ("a",)) == "--------"


def test_a_star_needs_a_segment() -> None:
    for glob in ("/*", "/**/*", "/*/**", "*"):
        assert not permits(scoped((glob, "crudlify")), C, ()), glob
        assert permits(scoped((glob, "crudlify")), C, ("a",)), glob


def test_a_rule_is_compared_in_the_form_of_paths() -> None:
    rules = scoped(
        ("/caf\N{LATIN SMALL LETTER E}\N{COMBINING ACUTE ACCENT}", "--------"), ("/**", "-r------")
    )
    assert not permits(rules, R, ("caf\N{LATIN SMALL LETTER E WITH ACUTE}",))
    assert permits(rules, R, ("cafe",))


@given(
    st.lists(st.sampled_from(["a", "b", "*", "**", "a*b", "?b"]), max_size=6),
    st.lists(st.sampled_from(["a", "b", "ab", "aab"]), min_size=1, max_size=6).map(tuple),
)
def test_a_rule_matches_as_a_search_over_all_ways_does(parts: list[str], at: tuple[str, ...]) -> None:
    rules = scoped(("/" + "/".join(parts), "c-------"))
    assert permits(rules, C, at) is fits(parts, at)


def fits(pattern: list[str], at: tuple[str, ...]) -> bool:
    if not pattern:
        return not at
    if pattern[0] == "**":
        return any(fits(pattern[1:], at[skip:]) for skip in range(len(at) + 1))
    return bool(at) and fnmatchcase(at[0], pattern[0]) and fits(pattern[1:], at[1:])


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    ("glob", "at"),
    [
        ("/" + "*a" * 500 + "b", ("a" * 255,)),
        ("/**" * 100 + "/b", ("a",) * 1000),
        ("/" + "**/*a*/" * 100 + "b", ("a" * 20,) * 180),
    ],
)
def test_a_rule_that_a_hostile_hand_wrote_is_decided_soon(glob: str, at: tuple[str, ...]) -> None:
    """A matcher that tries every way would not come back."""
    assert not permits(scoped((glob, "c-------")), C, at)


def test_root_may_do_everything_but_name_the_system() -> None:
    root = Identity("u", "root", is_root=True)
    assert all(permits(root, operation, ("a",)) for operation in Operation)
    assert not any(permits(root, operation, (".svc-system", "users")) for operation in Operation)


def test_nothing_said_is_denied() -> None:
    assert not permits(Identity("u", "user"), R, ("a",))
    assert not permits(Identity(None, "share"), R, ("a",))


@given(st.frozensets(st.sampled_from(list(Operation))))
def test_flags_are_read_as_they_are_written(operations: frozenset[Operation]) -> None:
    flags = "".join(operation.letter if operation in operations else "-" for operation in Operation)
    assert parse_flags(flags) == operations
    assert effective_permissions(scoped(("/a", flags)), ("a",)) == flags


@given(
    st.lists(st.text(alphabet="ab*?/.[", max_size=8), min_size=1, max_size=4),
    st.text(alphabet="ab/", max_size=8),
)
def test_rules_never_grant_what_the_user_has_not(globs: list[str], at: str) -> None:
    identity = Identity("u", "user", rules=tuple(ScopedRule(glob, "crudlify") for glob in globs))
    assert not any(permits(identity, operation, path(at)) for operation in Operation)


class TestEverythingBelow:
    """One answer for a whole directory: yes is certain, whatever lies below it."""

    @pytest.mark.parametrize(
        ("rules", "at", "allowed"),
        [
            ([("/a/**", "-r------")], "/a", True),
            ([("/a/**", "-r------")], "/a/b", True),
            ([("/a/**", "-r------")], "/", False),
            ([("/**", "-r------")], "/", True),
            ([("/a/*", "-r------")], "/a", False),
            ([("/a", "-r------")], "/a", False),
            ([("/a/secret", "--------"), ("/a/**", "-r------")], "/a", False),
            ([("/a/secret", "--------"), ("/a/**", "-r------")], "/a/b", True),
            ([("/a/**", "-r------"), ("/a/secret", "--------")], "/a", True),
            ([("/b/**", "--------"), ("/**", "-r------")], "/a", True),
            ([("/**/x", "--------"), ("/**", "-r------")], "/a/b", False),
            ([("/a/?", "----l---"), ("/**", "-r------")], "/a/bc", True),
            ([("/a/?", "----l---"), ("/**", "-r------")], "/a/b", False),
            ([("/a/**", "----l---"), ("/**", "-r------")], "/a", False),
        ],
    )
    def test_rules(self, rules: Any, at: str, allowed: bool) -> None:
        assert permits(scoped(*rules), R, path(at), below=True) is allowed

    def test_root_and_those_without_rights(self) -> None:
        assert permits(Identity("u", "root", is_root=True), R, (), below=True)
        assert not permits(Identity("u", "root", is_root=True), R, (".svc-system",), below=True)
        assert not permits(Identity("u", "user"), R, (), below=True)
        assert not permits(Identity(None, "share"), R, (), below=True)

    def test_rights_that_do_not_say_it_mean_no(self) -> None:
        class Older:
            def allows(self, operation: Operation, path: Any) -> bool:
                return True

        older: Any = Older()
        assert permits(Identity("u", "user", rights=older), R, ("a",))
        assert not permits(Identity("u", "user", rights=older), R, ("a",), below=True)

    @given(
        st.lists(
            st.tuples(
                st.lists(st.sampled_from(["a", "b", "*", "**", "?"]), max_size=4).map("/".join),
                st.sampled_from(["-r------", "--------", "-r--l---"]),
            ),
            max_size=4,
        ),
        st.lists(st.sampled_from("ab"), max_size=2),
        st.lists(st.sampled_from(["a", "b", "c", "ab"]), max_size=3),
        st.dictionaries(st.sampled_from(["/", "/a", "/a/b", "/b", "/ab"]), st.sampled_from(["", "r"])),
    )
    def test_yes_holds_for_every_path_below(
        self, rules: list[tuple[str, str]], at: list[str], below: list[str], flags: dict[str, str]
    ) -> None:
        for identity in (
            scoped(*rules),
            Identity("u", "user", rights=PathRights(flags)),
            Identity("u", "user", rights=PathRights(flags), rules=scoped(*rules).rules),
        ):
            if permits(identity, R, tuple(at), below=True):
                assert permits(identity, R, (*at, *below))


class TestConfiguration:
    """Whoever may configure stores what configures something; only root changes the server's."""

    STORE = (Operation.CREATE, Operation.UPDATE)

    @pytest.mark.parametrize("below", [False, True])
    @pytest.mark.parametrize("at", ["/.svc-config", "/a/.svc-config/indexes.json", "/a/.svc-config/b/c"])
    def test_of_a_directory(self, at: str, below: bool) -> None:
        writer = Identity("u", "user", rights=PathRights({"/": "crudl"}))
        keeper = Identity("u", "user", rights=PathRights({"/": "crudly"}))
        for operation in self.STORE:
            assert not permits(writer, operation, path(at), below=below)
            assert permits(keeper, operation, path(at), below=below)
            assert permits(writer, operation, path("/a/.svc-configuration"), below=below)
        assert permits(writer, R, path(at), below=below)
        assert permits(writer, D, path(at), below=below)
        assert effective_permissions(writer, path(at)) == "-r-dl---"
        assert effective_permissions(keeper, path(at)) == "crudl--y"

    @pytest.mark.parametrize("at", ["/.config", "/.config/cron.json"])
    def test_of_the_server(self, at: str) -> None:
        everything = Identity("u", "user", rights=PathRights({"/": "crudlify"}))
        for operation in (*self.STORE, D):
            assert not permits(everything, operation, path(at))
            assert not permits(everything, operation, path(at), below=True)
            assert not permits(everything, operation, (), below=True)
            assert permits(everything, operation, path("/a/.config"), below=True)
            assert permits(Identity("u", "root", is_root=True), operation, path(at), below=True)
        assert effective_permissions(everything, path(at)) == "-r--lify"

    @pytest.mark.parametrize("at", ["/.config", "/.config/cron.json"])
    @pytest.mark.parametrize("flags", ["crudl---", "crudlify"])
    def test_of_the_server_by_a_key_of_root_with_rules(self, at: str, flags: str) -> None:
        key = scoped(("/.config/**", flags), ("/**", flags))
        for operation in (*self.STORE, D):
            assert not permits(key, operation, path(at))
            assert not permits(key, operation, path(at), below=True)
            assert not permits(key, operation, (), below=True)
            assert permits(key, operation, path("/a"), below=True)
        assert permits(key, R, path(at), below=True)
        assert effective_permissions(key, path(at)) == "-r--l" + flags[5:]

    def test_of_a_directory_by_a_key_of_root_with_rules(self) -> None:
        at = path("/a/.svc-config/indexes.json")
        assert not permits(scoped(("/**", "crudl---")), C, at)
        assert permits(scoped(("/**", "crudl--y")), C, at)
        assert effective_permissions(scoped(("/**", "crudl---")), at) == "-r-dl---"

    def test_by_a_share_key(self) -> None:
        share = Identity(None, "share", rules=(ScopedRule("/a/**", "crudl---"),))
        assert permits(share, C, path("/a/b"))
        assert not permits(share, C, path("/a/.svc-config/indexes.json"))


@pytest.mark.parametrize(
    ("user", "method", "url", "status"),
    [
        (None, "GET", "/things/a", 401),
        ("wrong", "GET", "/things/a", 401),
        ("nobody", "GET", "/things/a", 403),
        ("reader", "GET", "/things/a", 200),
        ("reader", "PUT", "/things/a", 403),
        ("reader", "PUT", "/things/own/a", 201),
        ("scoped", "GET", "/things/a", 404),
        ("scoped", "GET", "/things/own/a", 200),
        ("scoped-root", "GET", "/things/own/a", 200),
        ("scoped-root", "GET", "/things/a", 404),
        ("share", "GET", "/things/shared/a", 200),
        ("share", "GET", "/things/a", 404),
        (None, "GET", "/kinds", 200),
        ("wrong", "GET", "/kinds", 200),
        (None, "PUT", "/kinds", 401),
        ("nobody", "PUT", "/kinds", 200),
        ("reader", "DELETE", "/kinds", 403),
        ("root", "DELETE", "/kinds", 200),
        ("scoped-root", "DELETE", "/kinds", 403),
        ("reader", "GET", "/system/plugins", 403),
        ("root", "GET", "/system/plugins", 200),
    ],
)
def test_routes_ask_for_what_they_declare(
    app: Application, user: str | None, method: str, url: str, status: int
) -> None:
    headers = {} if user is None else {"Authorization": f"Bearer {user}"}
    answer = TestClient(app, headers=headers).simulate_request(method, url)
    assert answer.status_code == status
    assert ("www-authenticate" in answer.headers) == (status == 401)


def test_paths_in_a_body_are_asked_for_too(app: Application) -> None:
    client = TestClient(app, headers={"Authorization": "Bearer scoped"})
    assert client.simulate_post("/things/query", json={"names": ["own"]}).status_code == 200
    assert client.simulate_post("/things/query", json={"names": ["own", "a"]}).status_code == 404


def test_a_denied_path_reads_as_a_missing_one(app: Application) -> None:
    client = TestClient(app, headers={"Authorization": "Bearer scoped"})
    denied = client.simulate_get("/things/a").json
    assert denied == {"error": "There is nothing at this path.", "code": "NOT_FOUND", "path": "/a"}
