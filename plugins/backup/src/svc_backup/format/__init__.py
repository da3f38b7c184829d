"""The files of exports and patches: how they are made of a version, and how they become one.

Their bytes are described in docs/format/export.md and patch.md.
"""

from __future__ import annotations

from svc_backup.format.applying import IMPORTS, ImportResult, apply_incoming
from svc_backup.format.checking import check_incoming
from svc_backup.format.incoming import IncomingFile, IncomingLimits, read_header
from svc_backup.format.layout import TransferHeader
from svc_backup.format.outgoing import Outgoing, OutgoingCounts, plan_export, plan_patch

__all__ = [
    "IMPORTS",
    "ImportResult",
    "IncomingFile",
    "IncomingLimits",
    "Outgoing",
    "OutgoingCounts",
    "TransferHeader",
    "apply_incoming",
    "check_incoming",
    "plan_export",
    "plan_patch",
    "read_header",
]
