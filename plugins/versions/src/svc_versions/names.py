"""Names of snapshots and forks: which are valid, and where their refs and documents stand."""

from __future__ import annotations

import unicodedata

from svc.errors import InvalidInput
from svc.plugin import SYSTEM_NAMES, Path, parse_hash, reference_path

__all__ = [
    "ABANDONED",
    "AUTOMATIC_PREFIXES",
    "FORKS",
    "HEAD",
    "SNAPSHOTS",
    "document_path",
    "is_automatic",
    "new_name",
    "normal_name",
    "reference",
]

HEAD = "HEAD"
SNAPSHOTS = "snapshots"
FORKS = "forks"
ABANDONED = "abandoned"
RESERVED_PREFIX = "_svc_"
SAFETY_PREFIX = "pre-restore-"
AUTOMATIC_PREFIXES = (RESERVED_PREFIX, SAFETY_PREFIX)
"""What the names of snapshots begin with that svc made by itself."""

DOCUMENTS = "versions"


def normal_name(name: str) -> str:
    """Returns a name in Unicode normalization form C, as refs are stored."""
    return unicodedata.normalize("NFC", name)


def new_name(name: str) -> str:
    """Returns the normalized name of a snapshot or fork that somebody wants to make.

    Raises InvalidInput where it is empty, longer than 200 characters, holds a control character, begins with
    ``_svc_``, is ``HEAD`` or a hash, or has parts between slashes that no URL can carry.
    """
    name = normal_name(name)
    reference_path(f"{SNAPSHOTS}/{name}")
    if name.startswith(RESERVED_PREFIX):
        raise InvalidInput(f"Names that begin with {RESERVED_PREFIX!r} are made by svc itself.", field="name")
    if name == HEAD or parse_hash(name) is not None:
        # Wherever a version is named, these mean something else: nobody would reach what is called so.
        raise InvalidInput("HEAD and 64 hex digits name versions, and so nothing else.", field="name")
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or parts[0] in SYSTEM_NAMES:
        raise InvalidInput(
            "The parts of a name between slashes may not be empty, '.' or '..', nor the first one a name "
            "of the system.",
            field="name",
        )
    return name


def is_automatic(name: str) -> bool:
    """Whether a snapshot's name says that svc made it by itself."""
    return name.startswith(AUTOMATIC_PREFIXES)


def reference(kind: str, name: str) -> str:
    """Returns the ref of a thing: ``snapshots/monday``."""
    return f"{kind}/{name}"


def document_path(kind: str, name: str) -> Path:
    """Returns where in the system tree the document beside a ref stands; InvalidInput for no ref's name."""
    return (DOCUMENTS, kind, *reference_path(reference(kind, name))[2:])
