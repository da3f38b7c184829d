"""Repairs a database: what can be restored is, from anywhere; what can't is put out of the way and listed.

First the bytes of the log, record by record: restored in place, exactly as they were, or made a void. Then
what versions need and the log does not hold any more: fetched, and committed as anything else is. Each step
leaves a database that opens, and the whole can be done again at any point.
"""

from __future__ import annotations

from svc.database.repair.repair import repair
from svc.database.repair.report import RepairReport
from svc.database.repair.sources import FileSource, RepairSource

__all__ = ["FileSource", "RepairReport", "RepairSource", "repair"]
