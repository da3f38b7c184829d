"""The operation that shows what is damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.plugin import Weight, operation, requires_root
from svc_task_verify.models import Damage, Verification

if TYPE_CHECKING:
    from svc.plugin import Call

__all__ = ["show_verification"]


@operation("GET", "/system/verification", requires_root, weight=Weight.SMALL, cache="no-store")
def show_verification(call: Call) -> Verification:
    """Shows what the last verification found damaged, until a later one finds it whole."""
    from svc_task_verify.record import read_found

    found = read_found(call.database)
    if found is None:
        return Verification(None)
    return Verification(
        Damage(
            found_at=found.at,
            count=found.count,
            paths=found.paths,
            hashes=found.hashes,
            regions=found.regions,
            commits=found.commits,
        )
    )
