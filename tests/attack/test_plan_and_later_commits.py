"""A plan that was not carried out, and a program that knows nothing of plans goes on writing."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from svc.database import Database, collect, verify
from svc.database.collection.plan import Sweeper

LARGE = random.Random(1).randbytes(400_000)


def test_what_was_committed_behind_a_plan_survives_it(tmp_path: Path) -> None:
    path, copy = tmp_path / "x.svcdb", tmp_path / "copy.svcdb"
    database = Database(path)
    with database.transaction() as transaction:
        transaction.put(("large",), database.store_bytes(LARGE))
    with database.transaction() as transaction:
        transaction.delete(("large",))

    def stop(*_: Any, **__: Any) -> None:
        shutil.copy(path, copy)
        raise KeyboardInterrupt

    with mock.patch.object(Sweeper, "sweep", stop), pytest.raises(KeyboardInterrupt):
        collect(database, upload_hours=0)
    database.close()

    # As a release does that has no collections: it makes the index from the log, and carries no plan out.
    with (
        mock.patch("svc.database.opening.carry_out_at_opening", return_value=False),
        Database(copy) as old,
        old.transaction() as transaction,
    ):
        transaction.put(("again",), old.store_bytes(LARGE))
    with Database(copy) as new:
        entry = new.at().get(("again",))
        assert entry is not None
        assert new.at().read_all(entry) == LARGE
        assert not verify(new).damaged
