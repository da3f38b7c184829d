"""Garbage collection: what no version needs any more is found, set apart, and its space given back.

``collect`` runs beside writers and readers of all processes. Why it can lose nothing that was acknowledged
stands in docs/decisions/026-garbage-collection.md.
"""

from __future__ import annotations

from svc.database.collection.collector import collect
from svc.database.collection.compacting import CompactReport, compact
from svc.database.collection.kept_commits import unkept_versions
from svc.database.collection.report import CollectionReport

__all__ = ["CollectionReport", "CompactReport", "collect", "compact", "unkept_versions"]
