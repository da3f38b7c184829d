"""YAML by the safe loader alone, and never more than its aliases may stand for."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]

__all__ = ["load_yaml"]

_MAXIMUM_NODES = 500_000
_MAXIMUM_DEPTH = 100
_MAXIMUM_DESCENT = 1_000
_BRACKET = re.compile(r"[\[\]{}]")
_MANY_DASHES = re.compile(r"(?:[-?:] {1,8}){1000}")


class _Loader(yaml.CSafeLoader):  # type: ignore[misc]
    """Reads unknown tags that begin with ``!`` as what they stand at; makes no objects."""


def _plain(loader: Any, _suffix: str, node: Any) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


_Loader.add_multi_constructor("!", _plain)


def _timestamp(loader: Any, node: Any) -> Any:
    """A date; one that no calendar has is the text that it is."""
    try:
        return loader.construct_yaml_timestamp(node)
    except (ValueError, OverflowError):
        return loader.construct_scalar(node)


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _timestamp)


class Loaded(NamedTuple):
    """The documents of a text; ``lacks`` says why these are not all, or nothing."""

    documents: list[Any]
    lacks: str = ""


def load_yaml(text: str) -> Loaded:
    """Returns the documents of a text, or those before the first that can't be read.

    Raises:
        ValueError: the first is not YAML, or its aliases stand for more than a document may have.
    """
    if _nests_too_deeply(text):
        raise ValueError("it nests too deeply")
    loader = _Loader(text)
    documents: list[Any] = []
    try:
        left = _MAXIMUM_NODES
        while loader.check_node():
            node = loader.get_node()
            left -= _size(node, {}, 0)
            if left < 0:
                raise ValueError(f"with its aliases it has more than {_MAXIMUM_NODES:,} values")
            documents.append(loader.construct_document(node))
    except (yaml.YAMLError, ValueError) as error:
        if not documents:
            raise ValueError(str(error)) from error
        return Loaded(documents, f"its first {len(documents):,} documents alone are read: {error}")
    finally:
        loader.dispose()
    return Loaded(documents)


def _nests_too_deeply(text: str) -> bool:
    """Whether the library, which descends on the stack of C, would leave it; only one line can."""
    steps = (1 if bracket in "[{" else -1 for bracket in _BRACKET.findall(text))
    return max(accumulate(steps), default=0) > _MAXIMUM_DESCENT or _MANY_DASHES.search(text) is not None


def _size(node: Any, sizes: dict[int, int | None], depth: int) -> int:
    """How many values a node stands for when every alias is written out; shared nodes are counted once."""
    known = sizes.get(id(node), 0)
    if known is None:
        raise ValueError("an alias stands for a list or mapping that contains it")
    if known:
        return known
    if depth > _MAXIMUM_DEPTH:
        raise ValueError(f"it nests more than {_MAXIMUM_DEPTH} levels deep")
    sizes[id(node)] = None
    size = 1
    if isinstance(node, yaml.SequenceNode):
        size += sum(_size(item, sizes, depth + 1) for item in node.value)
    elif isinstance(node, yaml.MappingNode):
        size += sum(_size(item, sizes, depth + 1) for pair in node.value for item in pair)
    sizes[id(node)] = size
    return size
