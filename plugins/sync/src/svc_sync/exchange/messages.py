"""What nodes say to each other: CBOR of these structs. ``docs/http/sync.md`` says what each is for."""

from __future__ import annotations

from typing import TypeVar

import cbor2
import msgspec
from msgspec import Struct

from svc.errors import CorruptRecord, InvalidInput, SvcError
from svc.plugin import Entry, Path, format_path, is_system_path, parse_path
from svc_sync.clock import check_received
from svc_sync.cluster import Cluster, Member
from svc_sync.encoding import decode_register
from svc_sync.exchange.users import Write
from svc_sync.hello import Hello
from svc_sync.pages import Page, check_register
from svc_sync.registers import Register
from svc_sync.scopes import (
    REFERENCES,
    SYSTEM,
    check_globs,
    is_of_user,
    parse_register_path,
    register_path_text,
)
from svc_sync.values import Directory, Document, Reference

__all__ = [
    "AdmittedState",
    "HelloAnswer",
    "HelloMessage",
    "ObjectsAnswer",
    "ObjectsMessage",
    "PageAnswer",
    "PageMessage",
    "PullAnswer",
    "PullMessage",
    "TreeAnswer",
    "TreeMessage",
    "check_cluster",
    "check_kinds",
    "decode_message",
    "encode_message",
    "hello_of",
    "read_page",
    "read_path",
    "read_register",
    "read_register_path",
]

T = TypeVar("T")
_LARGEST = (1 << 63) - 1
_MOST_ITEMS = 100_000
_STRINGS = (2, 3)
_LONG, _RESERVED, _ENDLESS = 24, 28, 31


class HelloMessage(Struct, frozen=True, kw_only=True):
    """``hello``: who asks, and when. ``t1`` is the asker's clock, Unix milliseconds.

    Where ``is_marked`` is false, the asker may be a copy of another node: nothing that it says is taken over.
    """

    protocol: int
    cluster_id: str
    member: Member
    known: dict[int, int]
    cluster: Cluster
    t1: int
    address: str = ""
    label: str = ""
    is_marked: bool = True


class HelloAnswer(Struct, frozen=True, kw_only=True):
    """Who answers, what it makes of the asker, and its clock when the question came and the answer went.

    ``your_address`` is where the asker is reached, as far as the one that answers knows; ``place``, the name
    of its state directory where the asker has its own identity: by that a node knows itself.
    """

    protocol: int
    cluster_id: str
    member: Member
    known: dict[int, int]
    cluster: Cluster
    verdict: str
    head: bytes
    t2: int
    t3: int
    your_address: str = ""
    place: str = ""


class PageMessage(Struct, frozen=True, kw_only=True):
    """``registers``: what ``asker`` does not know, from behind a path."""

    cluster_id: str
    asker: int
    known: dict[int, int]
    after: str | None = None
    limit: int = 1_000


class PageAnswer(Struct, frozen=True, kw_only=True):
    """A page: pairs of a path and the bytes of its register; small contents; and who made the writes.

    ``users`` may be missing, and whoever does not know of it leaves it out.
    """

    member: Member
    known: dict[int, int]
    cluster: Cluster
    registers: list[tuple[str, bytes]]
    last: bool
    contents: list[bytes] = []
    users: dict[str, list[Write]] = {}


class TreeMessage(Struct, frozen=True, kw_only=True):
    """``tree``: the leaves of the version that is kept for a joiner, from behind a path.

    Attributes:
        of_system: whether documents and names of the system tree are asked for instead.
        bases: versions that the asker has: what differs from one of them is enough.
    """

    cluster_id: str
    asker: int
    root: bytes
    after: str | None = None
    of_system: bool = False
    bases: list[bytes] = []


class TreeAnswer(Struct, frozen=True, kw_only=True):
    """Leaves in path order, each as a register that holds it alone; ``after`` asks for what follows.

    With ``base``, one of the versions that the asker has, they are what differs from that; deletions too.
    """

    leaves: list[tuple[str, bytes]]
    contents: list[bytes]
    after: str | None
    base: bytes | None = None


class ObjectsMessage(Struct, frozen=True, kw_only=True):
    """``objects``: the chunk hashes of a file's content from a place on, or the bytes of chunks.

    Attributes:
        path: where the file stands, or has lost.
        content: hash of the file's content.
        first: number of the first chunk whose hash is asked for.
        hashes: chunks of it whose bytes are asked for, at most 64; without any, their hashes are.
        root: the version in which the file stands; None: HEAD.
    """

    cluster_id: str
    asker: int
    path: str | None = None
    content: bytes | None = None
    first: int = 0
    hashes: list[bytes] = []
    root: bytes | None = None


class ObjectsAnswer(Struct, frozen=True, kw_only=True):
    """Hashes of chunks and whether more follow; or bytes of the first of the chunks that were asked for."""

    hashes: list[bytes] = []
    has_more: bool = False
    chunks: list[bytes] = []


class AdmittedState(Struct, frozen=True, kw_only=True):
    """What a joiner begins with: itself, the row and cluster of the member, and its latest virtual time."""

    member: Member
    known: dict[int, int]
    cluster: Cluster
    vt: int


class PullMessage(Struct, frozen=True, kw_only=True):
    """``pull``: the asker has something new; ``wait_ms``: for how long it waits for the outcome."""

    cluster_id: str
    asker: int
    wait_ms: int = 0


class PullAnswer(Struct, frozen=True, kw_only=True):
    """What became of the pull: how many registers it changed, or why it failed; None while it is not over."""

    pulled: int | None = None
    error: str | None = None


def encode_message(message: Struct) -> bytes:
    """Returns the CBOR of a message."""
    return cbor2.dumps(msgspec.to_builtins(message, builtin_types=(bytes,)))


def decode_message(payload: bytes, form: type[T]) -> T:
    """Returns the message of some bytes.

    Raises:
        InvalidInput: they are not one.
    """
    _check_items(payload)
    try:
        return msgspec.convert(cbor2.loads(payload), form)
    except (cbor2.CBORDecodeError, ValueError, TypeError, RecursionError) as error:
        raise InvalidInput(f"This is no message of svc nodes: {error}") from error


def _check_items(payload: bytes) -> None:
    """Refuses what has more items than a message may have: no other thread runs while all are decoded.

    Raises:
        InvalidInput: there are too many.
    """
    place = count = 0
    while place < len(payload):
        count += 1
        if count > _MOST_ITEMS:
            raise InvalidInput(f"A message of svc nodes has at most {_MOST_ITEMS} items.")
        kind, value = payload[place] >> 5, payload[place] & 31
        place += 1
        is_string = kind in _STRINGS and value != _ENDLESS
        if _LONG <= value < _RESERVED:
            size = 1 << (value - _LONG)
            value = int.from_bytes(payload[place : place + size], "big")
            place += size
        if is_string:
            place += value


def check_cluster(member: Member, known: dict[int, int], cluster: Cluster, now_ms: int) -> None:
    """Refuses what no node says: members without a row, numbers out of bounds, times far ahead.

    Raises:
        InvalidInput: says which.
    """
    if any(writer not in cluster.rows for writer in cluster.members):
        raise InvalidInput("A member has no row.")
    if any(writer != one.writer for writer, one in cluster.members.items()):
        raise InvalidInput("A member stands under another's name.")
    if any(check_globs(one.scope) != one.scope for one in (member, *cluster.members.values())):
        raise InvalidInput("A member takes paths that are not told in the one form that is valid.")
    numbers = [*cluster.members, *cluster.rows, *cluster.removed, *cluster.heads, *known, member.node_id]
    numbers += [writer for row in cluster.rows.values() for writer in row]
    if any(not 0 < number <= _LARGEST for number in (*numbers, member.writer)):
        raise InvalidInput("A number of a node is out of bounds.")
    for row in (known, *cluster.rows.values()):
        for vt in row.values():
            check_received(vt, now_ms)
    for head in cluster.heads.values():
        check_received(head.vt, now_ms)


def read_path(text: str) -> Path:
    """Returns a path of the user tree that another node names.

    Raises:
        InvalidInput: it is none, is not written as this node writes it, or is of the system.
    """
    try:
        path = parse_path(text)
    except SvcError as error:
        raise InvalidInput("Another node names a path that is none.") from error
    if not path or not is_of_user(path) or is_system_path(path) or format_path(path) != text:
        raise InvalidInput("Another node names a path that files can't have.", path=text[:200])
    return path


def read_register_path(text: str) -> Path:
    """Returns the path of a register that another node names.

    Raises:
        InvalidInput: it is none, or is not written as this node writes it.
    """
    if not text.startswith("//"):
        return read_path(text)
    try:
        path = parse_register_path(text)
    except SvcError as error:
        raise InvalidInput("Another node names a path that is none.") from error
    if path[:2] not in (SYSTEM, REFERENCES) or len(path) < 3 or register_path_text(path) != text:
        raise InvalidInput("Another node names a path that registers can't have.", path=text[:200])
    return path


def check_kinds(path: Path, register: Register) -> None:
    """Refuses values that can't stand at the path of a register.

    Raises:
        InvalidInput: a document among files, or a file among documents.
    """
    kinds: tuple[type, ...] = (Entry, Directory)
    if not is_of_user(path):
        kinds = (Document,) if path[:2] == SYSTEM else (Reference,)
    if any(one.value is not None and type(one.value) not in kinds for one in register.versions.values()):
        raise InvalidInput("Another node has sent a value that can't stand at its path.")


def read_register(payload: bytes, now_ms: int) -> Register:
    """Returns a register that another node has sent.

    Raises:
        InvalidInput: it is none, or none that a node writes.
    """
    try:
        register = decode_register(payload)
    except CorruptRecord as error:
        raise InvalidInput(f"Another node has sent a bad register: {error}") from error
    check_register(register, now_ms)
    return register


def read_page(answer: PageAnswer, now_ms: int) -> Page:
    """Returns the page of an answer.

    Raises:
        InvalidInput: it holds what no node sends.
    """
    check_cluster(answer.member, answer.known, answer.cluster, now_ms)
    rows = [(read_register_path(text), read_register(payload, now_ms)) for text, payload in answer.registers]
    for path, register in rows:
        check_kinds(path, register)
    if [path for path, _ in rows] != sorted({path for path, _ in rows}):
        raise InvalidInput("The other node has sent paths out of their order.")
    return Page(rows, answer.last, answer.known, answer.cluster)


def hello_of(message: HelloMessage | HelloAnswer) -> Hello:
    """Returns what is judged of a hello or of its answer."""
    return Hello(message.protocol, message.cluster_id, message.member, message.known, message.cluster)
