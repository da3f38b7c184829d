"""The values of the fields that every file has without being read, of a document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from svc_query.api import Value
from svc_query.snapshot import Document

__all__ = ["VIRTUAL_VALUES"]


def _extension(document: Document) -> Sequence[Value]:
    stem, dot, ending = document.path[-1].rpartition(".")
    return (ending.lower(),) if dot and ending and stem.strip(".") else ()


VIRTUAL_VALUES: Mapping[str, Callable[[Document], Sequence[Value]]] = {
    "@path": lambda document: ("/" + "/".join(document.path),),
    "@filename": lambda document: (document.path[-1],),
    "@extension": _extension,
    "@content_type": lambda document: () if document.content_type is None else (document.content_type,),
    "@hash": lambda document: (document.hash.hex(),),
    "@size": lambda document: (document.size,),
    "@created_at": lambda document: (document.created_ms,),
    "@updated_at": lambda document: (document.updated_ms,),
}
"""What gives the values of each field."""
