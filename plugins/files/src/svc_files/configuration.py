"""The settings of the plugin: every limit of its routes, each with its default."""

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
        maximum_body: bytes of one uploaded file.
        maximum_json: bytes of a JSON body, and of a stored document that a merge patch rewrites.
        maximum_batch: operations of a batch, files of a commit, paths of a copy, a download or a restore.
        maximum_chunks: hashes of one check.
        listing_default: entries on a page of a listing when ``limit`` is not given.
        listing_maximum: largest ``limit`` of a listing.
        count_maximum: entries that are looked at to state a total that the tree does not keep; beyond
            it the total is null.
        fetch_paths: paths of one fetch.
        fetch_bytes: bytes of content in one fetch's answer.
        fetch_scan_bytes: bytes that one fetch may read to find its lines, characters or values.
        merge_attempts: how often a merge patch is tried again when others write the document meanwhile.
        sandbox_active_content: whether HTML, SVG and XML files are served with
            ``Content-Security-Policy: sandbox``, so that a stored page runs no script in the server's origin.
    """

    maximum_body: _Bytes = 10 * _GIB
    maximum_json: _Bytes = 32 * _MIB
    maximum_batch: _Count = 10_000
    maximum_chunks: _Count = 100_000
    listing_default: _Count = 20
    listing_maximum: _Count = 1_000
    count_maximum: _Count = 100_000
    fetch_paths: _Count = 10_000
    fetch_bytes: _Bytes = 32 * _MIB
    fetch_scan_bytes: _Bytes = _GIB
    merge_attempts: _Count = 100
    sandbox_active_content: bool = True
