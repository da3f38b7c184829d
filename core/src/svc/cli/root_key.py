"""The root key at the shell: what a command needs before it touches what only root may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.cli.opening import boot_plugins
from svc.errors import Forbidden

if TYPE_CHECKING:
    from svc.database import Database

__all__ = ["require_root_key"]


def require_root_key(database: Database, key: str) -> None:
    """Makes sure that a key is the root key of a database, by the auth modes that are enabled in it.

    Args:
        database: the open database.
        key: what the caller gave; it is shown nowhere.

    Raises:
        Forbidden: it is not, or no enabled auth mode knows it.
    """
    from svc.plugins import accepts_root_key

    if not accepts_root_key(database, boot_plugins(), key):
        raise Forbidden("This is not the root key of the database.")
