"""Repairs a database: restores what it can from any source, and lists what it cannot restore.

First the log, record by record: each is restored in place, exactly as it was, or made a void. Then what
versions need and the log does not have: it is fetched, and committed as usual. Each step leaves a database
that opens, and the whole can be repeated at any point.
"""

from __future__ import annotations

from svc_maintenance.repair.repair import repair
from svc_maintenance.repair.report import RepairReport
from svc_maintenance.repair.sources import FileSource, RepairSource

__all__ = ["FileSource", "RepairReport", "RepairSource", "repair"]
