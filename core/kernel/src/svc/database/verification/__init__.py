"""Checks a database from end to end: every record, every hash, every path of every version.

Two passes: the log is checked once, from its first byte to its last, by as many processes as there are cores
where it is large; then every version is walked, each node once, and what is damaged or missing is named by
all its paths, with the versions that hold them.
"""

from __future__ import annotations

from svc.database.verification.report import Damage, VerifyReport
from svc.database.verification.scrub import ScrubStep, is_whole_again, name_damage, scrub
from svc.database.verification.verification import verify

__all__ = [
    "Damage",
    "ScrubStep",
    "VerifyReport",
    "is_whole_again",
    "name_damage",
    "scrub",
    "verify",
]
