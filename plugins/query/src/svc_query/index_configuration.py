"""``<directory>/.svc-config/indexes.json``: what is indexed of the files at and below a directory.

The file is checked when it is stored (``IndexesCheck``), and read again wherever it is used: one that is not
valid all the same, from an import or an older version, counts as absent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from svc.errors import InvalidInput
from svc.plugin import Path, PathGlob, text_encoding
from svc_query.api import IndexType
from svc_query.snapshot import VIRTUAL_FIELDS
from svc_query.sources import compile_source
from svc_query.values import VALUE_TYPES

__all__ = [
    "CONFIGURATION_SUFFIX",
    "MAXIMUM_CONFIGURATION_BYTES",
    "DirectoryConfiguration",
    "IndexEntry",
    "directory_of",
    "is_configuration",
    "parse_configuration",
]

CONFIGURATION_SUFFIX = (".svc-config", "indexes.json")
"""Last segments of the path of a configuration."""

MAXIMUM_CONFIGURATION_BYTES = 256 * 1024
_MAXIMUM_NAME = 200
_MAXIMUM_GLOB = 1_000
_ENTRY_MEMBERS = frozenset({"name", "type", "source", "value_type"})
_FILE_MEMBERS = frozenset({"glob", "parser", "compression", "encoding", "logging", "indexes"})


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One entry: a field, where its values come from, and its indexes.

    Attributes:
        source: steps into the parsed document; empty for a virtual field.
        value_type: what values are converted to.
        types: index types with their options, by name. Options are as ``normalize`` gave them; as they were
            written where the type is not in use here.
    """

    name: str
    source: tuple[str | int, ...]
    value_type: str
    types: Mapping[str, Mapping[str, Any]] = field(hash=False)

    @property
    def is_virtual(self) -> bool:
        """Whether every file has the field, without being read."""
        return self.name in VIRTUAL_FIELDS


@dataclass(frozen=True, slots=True)
class DirectoryConfiguration:
    """An ``indexes.json`` that is valid.

    Attributes:
        glob: which files below the directory it is for; None: the directory's own files.
        parser: name of the parser; None lets the file's type or name decide.
        compression: of long texts that are kept: ``zstd`` or ``none``.
        encoding: of texts whose media type has no ``charset``; None: it is guessed.
        logging: whether files that cannot be read are logged.
        entries: by the name of the field.
    """

    glob: str | None
    parser: str | None
    compression: str
    encoding: str | None
    logging: bool
    entries: Mapping[str, IndexEntry] = field(hash=False)
    _pattern: PathGlob | None = field(default=None, compare=False)

    @property
    def covers_all(self) -> bool:
        """Whether it is for every file at any depth below the directory."""
        return self.glob is not None and self._pattern is None

    def applies(self, relative: Path) -> bool:
        """Whether it is for a file."""
        if self._pattern is None:
            return self.glob is not None or len(relative) == 1
        return bool(self._pattern.matches("/" + "/".join(relative)))


def parse_configuration(
    content: bytes | Mapping[str, Any],
    types: Mapping[str, IndexType],
    *,
    parsers: Collection[str] | None = None,
    maximum_fields: int = 256,
    strict: bool = True,
) -> DirectoryConfiguration:
    """Returns the configuration of a file's content; InvalidInput, whose ``field`` says where, for a bad one.

    With ``strict`` an unknown index type is an error; otherwise it rests, with its options as written.
    Without ``parsers`` any name of one is taken.
    """
    members = content if isinstance(content, Mapping) else _decode(content)
    _refuse_unknown(members, _FILE_MEMBERS, "indexes.json")
    glob = members.get("glob")
    if glob is not None and (not isinstance(glob, str) or not 0 < len(glob) <= _MAXIMUM_GLOB):
        raise InvalidInput("'glob' must be a pattern of relative paths.", field="glob")
    parser = members.get("parser")
    if parser is not None and (not isinstance(parser, str) or not parser):
        raise InvalidInput("'parser' must be the name of a parser, or null.", field="parser")
    if parser is not None and parsers is not None and parser not in parsers:
        raise InvalidInput(f"There is no parser {parser!r}; there are {_listed(parsers)}.", field="parser")
    compression = members.get("compression", "zstd")
    if compression not in ("zstd", "none"):
        raise InvalidInput("'compression' must be 'zstd' or 'none'.", field="compression")
    encoding = _encoding(members.get("encoding"))
    logging = members.get("logging", False)
    if not isinstance(logging, bool):
        raise InvalidInput("'logging' must be true or false.", field="logging")
    rows = members.get("indexes", [])
    if not isinstance(rows, list) or len(rows) > maximum_fields:
        raise InvalidInput(f"'indexes' must be a list of at most {maximum_fields} fields.", field="indexes")
    entries: dict[str, IndexEntry] = {}
    for number, row in enumerate(rows):
        entry = _entry(row, types, f"indexes[{number}]", strict=strict)
        if entry.name in entries:
            raise InvalidInput(f"The field {entry.name!r} stands twice.", field=f"indexes[{number}].name")
        entries[entry.name] = entry
    return DirectoryConfiguration(
        glob, parser, compression, encoding, logging, entries, None if glob is None else _glob_pattern(glob)
    )


def _encoding(name: Any) -> str | None:
    """The one name of an encoding of text."""
    if name is None:
        return None
    found = text_encoding(name) if isinstance(name, str) else None
    if found is None:
        raise InvalidInput(
            f"'encoding' must be an encoding of text, such as windows-1251, or null; {name!r} is none.",
            field="encoding",
        )
    return found


def _decode(content: bytes) -> Mapping[str, Any]:
    if len(content) > MAXIMUM_CONFIGURATION_BYTES:
        raise InvalidInput(f"indexes.json may have {MAXIMUM_CONFIGURATION_BYTES} bytes.")
    try:
        members = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"indexes.json is not JSON: {error}.") from None
    if not isinstance(members, dict):
        raise InvalidInput("indexes.json must be an object.")
    return members


def _entry(row: Any, types: Mapping[str, IndexType], where: str, *, strict: bool) -> IndexEntry:
    if not isinstance(row, dict):
        raise InvalidInput(f"{where} must be an object.", field=where)
    name = row.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= _MAXIMUM_NAME or not name.isprintable():
        raise InvalidInput(
            f"{where} needs a 'name' of 1 to {_MAXIMUM_NAME} characters.", field=f"{where}.name"
        )
    if name.startswith("@") and name not in VIRTUAL_FIELDS:
        raise InvalidInput(
            f"There is no virtual field {name!r}; there are {_listed(VIRTUAL_FIELDS)}.", field=f"{where}.name"
        )
    chosen = _types(row, types, where, strict=strict)
    taken = _ENTRY_MEMBERS.union(*(types[item].options for item in chosen if item in types))
    if strict or all(item in types for item in chosen):
        _refuse_unknown(row, taken, where)
    given = {member: value for member, value in row.items() if member not in _ENTRY_MEMBERS}
    options: dict[str, Mapping[str, Any]] = {}
    for item in chosen:
        index_type = types.get(item)
        if index_type is None:
            options[item] = dict(given)
            continue
        own = {member: value for member, value in given.items() if member in index_type.options}
        try:
            options[item] = index_type.normalize(own)
        except InvalidInput as error:
            details = {**error.details, "field": f"{where}.{error.details.get('field', 'type')}"}
            raise InvalidInput(error.message, **details) from None
    if name in VIRTUAL_FIELDS:
        return IndexEntry(name, (), _virtual_type(row, name, where), options)
    return IndexEntry(name, _source(row, name, where), _value_type(row, where), options)


def _types(row: Mapping[str, Any], types: Mapping[str, IndexType], where: str, *, strict: bool) -> list[str]:
    given = row.get("type")
    chosen = [given] if isinstance(given, str) else given
    if not isinstance(chosen, list) or not chosen or not all(isinstance(item, str) for item in chosen):
        raise InvalidInput(f"{where} needs a 'type': one index type, or a list.", field=f"{where}.type")
    if len(set(chosen)) < len(chosen):
        raise InvalidInput(f"{where} names an index type twice.", field=f"{where}.type")
    for item in chosen if strict else ():
        if item not in types:
            raise InvalidInput(
                f"There is no index type {item!r}; there are {_listed(types)}.", field=f"{where}.type"
            )
    return chosen


def _source(row: Mapping[str, Any], name: str, where: str) -> tuple[str | int, ...]:
    source = row.get("source", [name])
    source = [source] if isinstance(source, str) else source
    if not isinstance(source, list):
        raise InvalidInput(f"{where} needs a list as 'source'.", field=f"{where}.source")
    try:
        compile_source(source)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error.message}", field=f"{where}.source") from None
    return tuple(source)


def _value_type(row: Mapping[str, Any], where: str) -> str:
    value_type = row.get("value_type", "auto")
    if not isinstance(value_type, str) or value_type not in VALUE_TYPES:
        raise InvalidInput(
            f"{where} has no valid 'value_type'; there are {_listed(VALUE_TYPES)}.",
            field=f"{where}.value_type",
        )
    return value_type


def _virtual_type(row: Mapping[str, Any], name: str, where: str) -> str:
    if "source" in row and row["source"] not in (name, [name]):
        raise InvalidInput(f"{where}: a virtual field has no source.", field=f"{where}.source")
    own = VIRTUAL_FIELDS[name]
    if row.get("value_type", own) not in (own, "auto"):
        raise InvalidInput(
            f"{where}: the values of {name} are of the type {own}.", field=f"{where}.value_type"
        )
    return own


def _refuse_unknown(members: Mapping[str, Any], known: Collection[str], where: str) -> None:
    for member in members:
        if member not in known:
            raise InvalidInput(
                f"{where} has an unknown member {member!r}; it takes {_listed(known)}.", field=str(member)
            )


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _glob_pattern(glob: str) -> PathGlob | None:
    """A glob over relative paths; None where it takes every file."""
    segments = [segment for segment in glob.split("/") if segment and segment != "."]
    if not segments or ".." in segments:
        raise InvalidInput(f"The glob {glob!r} is no pattern of relative paths.", field="glob")
    return None if segments in (["**"], ["**", "*"]) else PathGlob(segments)


def is_configuration(path: Path) -> bool:
    """Whether a path lies in a directory of configuration: that is no document."""
    return CONFIGURATION_SUFFIX[0] in path


def directory_of(path: Path) -> Path | None:
    """Returns the directory whose configuration a path is; None when it is none."""
    return path[:-2] if path[-2:] == CONFIGURATION_SUFFIX else None
