"""One function decides; silence denies; scoped keys see missing paths where they are denied."""

from __future__ import annotations

from typing import Any

import pytest
from falcon.testing import TestClient
from hypothesis import given
from hypothesis import strategies as st

from svc.pipeline import Application, effective_permissions, format_flags, parse_flags, permits
from svc.plugins import Identity, Operation, ScopedRule

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
        ([("/a", "crudlifyX")], R, "/a", False),
        ([("/a", "rc------")], R, "/a", False),
        ([("/a.b", "-r------")], R, "/axb", False),
    ],
)
def test_the_first_rule_that_matches_decides(
    rules: Any, operation: Operation, at: str, allowed: bool
) -> None:
    assert permits(scoped(*rules), operation, path(at)) is allowed


def test_root_may_do_everything_but_name_the_system() -> None:
    root = Identity("u", "root", is_root=True)
    assert all(permits(root, operation, ("a",)) for operation in Operation)
    assert not any(permits(root, operation, (".svc-system", "users")) for operation in Operation)


def test_nothing_said_is_denied() -> None:
    assert not permits(Identity("u", "user"), R, ("a",))
    assert not permits(Identity(None, "share"), R, ("a",))


@given(st.frozensets(st.sampled_from(list(Operation))))
def test_flags_are_read_as_they_are_written(operations: frozenset[Operation]) -> None:
    assert parse_flags(format_flags(operations)) == operations
    identity = scoped(("/a", format_flags(operations)))
    assert effective_permissions(identity, ("a",)) == format_flags(operations)


@given(
    st.lists(st.text(alphabet="ab*?/.[", max_size=8), min_size=1, max_size=4),
    st.text(alphabet="ab/", max_size=8),
)
def test_rules_never_grant_what_the_user_has_not(globs: list[str], at: str) -> None:
    identity = Identity("u", "user", rules=tuple(ScopedRule(glob, "crudlify") for glob in globs))
    assert not any(permits(identity, operation, path(at)) for operation in Operation)


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
