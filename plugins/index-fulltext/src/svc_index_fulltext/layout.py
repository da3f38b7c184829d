"""The fields that a document has in the library, and how an index of files is opened."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path as FilePath

import tantivy

from svc.errors import CorruptRecord
from svc.plugin import Path
from svc_index_fulltext.analysis import Analysis

__all__ = [
    "DIRECTORY_FIELD",
    "FORMAT",
    "ID_FIELD",
    "META_FILE",
    "TEXT_FIELD",
    "directory_key",
    "make_index",
    "open_index",
    "segment_files",
]

TEXT_FIELD = "text"
ID_FIELD = "id"
DIRECTORY_FIELD = "dir"
META_FILE = "meta.json"

_TOKENIZER = "svc"
_LAYOUT = 4


def _format() -> int:
    """Returns a number that changes with the files of the library, so that an upgrade makes them anew."""
    found = re.search(r"index_format v(\d+)", str(vars(tantivy)["__version__"]))
    return _LAYOUT * 1_000 + (int(found[1]) if found else 0)


FORMAT = _format()


@lru_cache(maxsize=1)
def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(TEXT_FIELD, stored=False, tokenizer_name=_TOKENIZER)
    # Deleting by a term of an unsigned field does nothing in this library, and says so to nobody.
    builder.add_integer_field(ID_FIELD, stored=False, indexed=True, fast=True)
    builder.add_integer_field(DIRECTORY_FIELD, stored=False, indexed=True)
    return builder.build()


def make_index(directory: FilePath, analysis: Analysis) -> tantivy.Index:
    """Makes an empty index in a directory."""
    index = tantivy.Index(_schema(), path=str(directory), reuse=False)
    return _prepared(index, analysis)


def open_index(directory: FilePath, analysis: Analysis) -> tantivy.Index:
    """Opens the index of a directory.

    Raises:
        FileNotFoundError: it is not there, or one of its files is not.
        CorruptRecord: it can't be read.
    """
    try:
        index = tantivy.Index.open(str(directory))
        return _prepared(index, analysis)
    except (ValueError, OSError) as error:
        meta = directory / META_FILE
        if not meta.exists():
            raise FileNotFoundError(str(meta)) from error
        missing = [name for name in segment_files(meta.read_bytes()) if not (directory / name).exists()]
        if missing:
            raise FileNotFoundError(str(directory / missing[0])) from error
        raise CorruptRecord(f"A full-text index can't be read: {error}") from error


def _prepared(index: tantivy.Index, analysis: Analysis) -> tantivy.Index:
    index.register_tokenizer(_TOKENIZER, analysis.analyzer)
    # Without this the library starts a thread that looks for changes: states do not change.
    index.config_reader("manual")
    return index


def segment_files(meta: bytes) -> list[str]:
    """Returns the names of the files that the segments of an index must have, by its ``meta.json``."""
    try:
        segments = json.loads(meta)["segments"]
        names = []
        for segment in segments:
            stem = segment["segment_id"].replace("-", "")
            names += [f"{stem}.{ending}" for ending in ("fast", "fieldnorm", "idx", "pos", "store", "term")]
            if segment["deletes"]:
                names.append(f"{stem}.{segment['deletes']['opstamp']}.del")
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptRecord(f"The list of segments of a full-text index can't be read: {error}") from error
    return names


@lru_cache(maxsize=65_536)
def directory_key(path: Path) -> int:
    """Returns the term of a path: a hash, since paths are long and a document has many above it.

    Two paths that had the same would show a document to a search below the other; whoever searches looks at
    the path of what was found all the same.
    """
    digest = blake2b("/".join(path).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
