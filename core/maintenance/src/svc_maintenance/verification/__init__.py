"""Checks a database completely: every record, every hash, every path of every version.

First the log is checked, a large one by as many processes as there are cores. Then every version is walked,
each node once, and damaged or missing objects are named by all paths and versions that have them.
"""

from __future__ import annotations

from svc_maintenance.verification.report import Damage, VerifyReport
from svc_maintenance.verification.scrub import ScrubStep, is_whole_again, name_damage, scrub
from svc_maintenance.verification.verification import verify

__all__ = [
    "Damage",
    "ScrubStep",
    "VerifyReport",
    "is_whole_again",
    "name_damage",
    "scrub",
    "verify",
]
