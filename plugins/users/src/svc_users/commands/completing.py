"""Names of users and groups for a shell that completes them."""

from __future__ import annotations

from collections.abc import Iterator

from svc_cli import Source
from svc_users.operations import list_groups, list_users

__all__ = ["groups", "users"]


def users(source: Source, _incomplete: str) -> Iterator[str]:
    """Yields the names of users."""
    return (user.username for user in source.items(list_users))


def groups(source: Source, _incomplete: str) -> Iterator[str]:
    """Yields the names of groups that people made."""
    return (group.name for group in source.items(list_groups))
