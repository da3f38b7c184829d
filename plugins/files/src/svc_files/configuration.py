"""The limits that are the plugin's own, each with its default.

How large a file, a JSON body and a batch may be is set for the whole server (``svc.pipeline.Limits``).
"""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["FilesConfiguration"]

_GIB = 1024 * 1024 * 1024
_MIB = 1024 * 1024

_Bytes = Annotated[int, msgspec.Meta(ge=1, le=1 << 50)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]


class FilesConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of the file routes.

    Attributes:
        maximum_chunks: hashes of one check.
        listing_default: entries on a page of a listing when ``limit`` is not given.
        listing_maximum: largest ``limit`` of a listing.
        scan_entries: entries that one request looks at: a page of a listing, or to find out whether the
            caller may do something to everything below a directory.
        fetch_paths: paths of one fetch.
        fetch_bytes: bytes of content in one fetch's answer.
        fetch_scan_bytes: bytes that one fetch may read to find its lines, characters or values.
        merge_attempts: how often a merge patch is tried again when others write the document meanwhile.
        sandbox_active_content: whether HTML, SVG and XML files are served with
            ``Content-Security-Policy: sandbox``, so that a stored page runs no script in the server's origin.
    """

    maximum_chunks: _Count = 100_000
    listing_default: _Count = 1_000
    listing_maximum: _Count = 10_000
    scan_entries: _Count = 100_000
    fetch_paths: _Count = 10_000
    fetch_bytes: _Bytes = 32 * _MIB
    fetch_scan_bytes: _Bytes = _GIB
    merge_attempts: _Count = 100
    sandbox_active_content: bool = True
