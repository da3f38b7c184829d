"""A database whose commits a test makes one by one, and callers with few rights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from svc.plugins import ROOT_IDENTITY, Identity, ScopedRule
from svc.testing import PathRights

Files = dict[str, bytes | None]


@pytest.fixture
def commit(http: Any) -> Callable[..., str]:
    """Puts each content at its path, deletes where it is None; one commit. Returns the version."""

    def make(files: Files, actor: str = "ann", message: str = "", *, fork: str | None = None) -> str:
        ref = "HEAD" if fork is None else f"forks/{fork}"
        transaction = http.database.transaction(actor=actor, message=message or None, ref=ref)
        for path, content in files.items():
            where = tuple(path.strip("/").split("/"))
            if content is None:
                transaction.delete(where, recursive=True)
            else:
                transaction.put(where, content, content_type="text/plain")
        version: str = transaction.commit().version.hex()
        return version

    return make


@pytest.fixture
def make_user() -> Callable[[dict[str, str]], Identity]:
    """Makes a user with rights by path prefix."""
    return lambda flags: Identity("00000000-0000-0000-0000-000000000009", "ann", rights=PathRights(flags))


@pytest.fixture
def make_key() -> Callable[..., Identity]:
    """Makes a key of root's that is narrowed by rules."""

    def key(*rules: tuple[str, str]) -> Identity:
        scoped = tuple(ScopedRule(glob, flags) for glob, flags in rules)
        return Identity(ROOT_IDENTITY.user_id, "root", is_root=True, key_id="key", rules=scoped)

    return key
