"""Makes a version HEAD by its hash."""

from __future__ import annotations

from svc.plugin import Database, Hash
from svc_backup.format import IMPORTS

__all__ = ["promote_version"]


def promote_version(
    database: Database, root: Hash, *, actor: str | None = None, expected: Hash | None = None
) -> None:
    """Makes a version HEAD, durably. Blocks.

    What keeps an imported version reachable goes: HEAD names it from now on. ``expected`` is what HEAD must
    be at that moment (PreconditionFailed); None asks nothing. Raises NotFound for no such version.
    """
    database.require_version(root)
    kept = f"{IMPORTS}/{root.hex()}"
    message = f"Promotion of version {root.hex()}"
    with database.transaction(actor=actor, message=message) as transaction:
        transaction.set_ref("HEAD", root, expected=expected)
        if any(name == kept for name, _ in database.refs(IMPORTS)):
            transaction.set_ref(kept, None)
