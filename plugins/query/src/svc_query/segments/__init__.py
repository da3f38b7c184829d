"""Terms and the documents that have them, in immutable files.

One process writes: it collects documents in memory, makes a segment of them, and merges eight segments to
one. Any process reads what a manifest names, while others are written. ``docs/format/index-segments.md`` has
the bytes.
"""

from svc_query.segments.manifest import SegmentEntry, unused_files
from svc_query.segments.merging import merge_plan
from svc_query.segments.reader import TermIndexReader
from svc_query.segments.writer import TermIndexWriter

__all__ = [
    "SegmentEntry",
    "TermIndexReader",
    "TermIndexWriter",
    "merge_plan",
    "unused_files",
]
