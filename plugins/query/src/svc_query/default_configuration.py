"""What is indexed whatever configurations say: the fields that every file has.

It lies under all of them: one that names a field of it decides how that is indexed. Nothing of it is written
into anybody's tree, so an empty database keeps the root hash of an empty tree. Index types whose plugin is
not enabled are left out.
"""

from __future__ import annotations

from typing import Any

__all__ = ["DEFAULT_CONFIGURATION"]

DEFAULT_CONFIGURATION: dict[str, Any] = {
    "glob": "**/*",
    "indexes": [
        {"name": "@path", "type": "exact"},
        {"name": "@filename", "type": ["exact", "trigram"]},
        {"name": "@extension", "type": "exact"},
        {"name": "@content_type", "type": "exact"},
        {"name": "@hash", "type": "exact"},
        {"name": "@size", "type": "exact"},
        {"name": "@created_at", "type": "exact"},
        {"name": "@updated_at", "type": "exact"},
    ],
}
"""As an ``indexes.json`` would have it."""
