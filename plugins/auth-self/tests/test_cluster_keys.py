"""Databases that share a key: what one signs the other takes, whatever is rotated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from svc import Database
from svc.errors import AuthRequired, InvalidInput
from svc.plugin import ROOT_USER_ID
from svc_auth_self.api import root_token, signing_keys, take_signing_keys
from svc_auth_self.signing import SigningKeys, active_record, remove_ended, rotate, rotate_now
from svc_auth_self.tokens import TokenReader, TokenWriter


@pytest.fixture
def databases(tmp_path: Path) -> Iterator[tuple[Database, Database]]:
    with Database(tmp_path / "a.svcdb") as a, Database(tmp_path / "b.svcdb") as b:
        yield a, b


def reads(database: Database, token: str | None) -> str:
    assert token is not None
    return TokenReader(SigningKeys(database)).read(token).subject


def test_nothing_is_signed_where_nothing_is_shared(databases: tuple[Database, Database]) -> None:
    a, _ = databases
    rotate(a, 60)
    assert root_token(a, 60) is None


def test_tokens_are_good_in_both_whatever_is_rotated(databases: tuple[Database, Database]) -> None:
    a, b = databases
    rotate(a, 60)
    rotate(b, 60)
    with b.transaction() as changes:
        take_signing_keys(b, changes, signing_keys(a))
    assert active_record(a) == active_record(b)
    user = TokenWriter(SigningKeys(a)).write("7", None, 60, None)[0]
    assert reads(b, user) == "7"
    for one, other in ((a, b), (b, a)):
        assert reads(other, root_token(one, 60)) == ROOT_USER_ID
    rotate_now(a, 60, end_tokens=True)
    rotate_now(b, 60)
    remove_ended(b)
    for one, other in ((a, b), (b, a)):
        assert reads(other, root_token(one, 60)) == ROOT_USER_ID
    with pytest.raises(AuthRequired):
        reads(a, user)
    assert signing_keys(a)[0] == signing_keys(b)[0]


@pytest.mark.parametrize(
    "change",
    [{"use": "other"}, {"private": None}, {"public": "00"}, {"kid": "../x"}, {"ends_at": 5}, {"kid": 5}],
)
def test_what_is_no_key_is_refused(databases: tuple[Database, Database], change: dict[str, object]) -> None:
    a, b = databases
    keys = [{**signing_keys(a)[0], **change}]
    with pytest.raises(InvalidInput):
        take_signing_keys(b, b.transaction(), keys)
