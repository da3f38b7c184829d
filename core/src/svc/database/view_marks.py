"""How far the views of a database have come, read without opening them for use.

Nothing is made and nothing is changed: a view that has never been computed, or whose data are of another
layout, is simply at the beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import lmdb

from svc.database.views import MAP_SIZE, MARK, MARK_KEY, View
from svc.errors import SvcError
from svc.objects.environments import close_environment, open_environment

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["applied_in"]


def applied_in(database: Database, view: View) -> int:
    """Returns the number of the last commit that is in a view's data; 0 when there are none.

    Args:
        database: the open database.
        view: the view; it need not be registered.
    """
    directory = database.state_directory / "views" / view.name
    if not (directory / "data.mdb").exists():
        return 0
    try:
        shared = open_environment(directory, MAP_SIZE, (b"data",), read_only=True)
    except (lmdb.Error, OSError, SvcError):
        return 0
    try:
        with shared.begin() as transaction:
            value = transaction.get(MARK_KEY)
        if value is None or len(value) != MARK.size:
            return 0
        layout, applied, database_id = MARK.unpack(value)
        return int(applied) if (layout, database_id) == (view.format, database.database_id) else 0
    finally:
        close_environment(shared)
