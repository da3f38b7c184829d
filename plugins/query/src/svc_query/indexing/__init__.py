"""The indexes of a database: a view that follows commits and has work of its own, and ways to read it.

``read_snapshot`` is the way for queries. The presence of fields has an index of its own, ``PRESENCE``, among
those that a snapshot gives for a field; its term for a field is ``presence_term(field)``.
"""

from __future__ import annotations

from svc_query.indexing.checking import IndexesCheck
from svc_query.indexing.reading import finish_work, read_snapshot, read_status, rebuild
from svc_query.indexing.snapshot import IndexSnapshot
from svc_query.indexing.status import index_status
from svc_query.indexing.values_of import EffectiveField, FieldReader
from svc_query.indexing.view import INDEX_VIEW, IndexView

__all__ = [
    "INDEX_VIEW",
    "EffectiveField",
    "FieldReader",
    "IndexSnapshot",
    "IndexView",
    "IndexesCheck",
    "finish_work",
    "index_status",
    "read_snapshot",
    "read_status",
    "rebuild",
]
