"""What one answer of an exchange holds: registers that the asker does not know, in the order of paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from svc.errors import InvalidInput
from svc.plugin import Entry, Path
from svc_sync.checking import check_value
from svc_sync.clock import check_received
from svc_sync.cluster import Cluster, Horizons, covers_row
from svc_sync.registers import RESTATED_VT, STABLE, Register, Row, is_known
from svc_sync.values import Document

__all__ = ["MAXIMUM_BYTES", "MAXIMUM_REGISTERS", "Page", "check_register", "is_current", "select_page"]

MAXIMUM_REGISTERS = 1_000
MAXIMUM_BYTES = 1 << 20


class Page(Struct, frozen=True):
    """One answer.

    Attributes:
        registers: by path, in order.
        last: whether nothing follows.
        known: what the sender knew when it made the page.
        cluster: what it knew of the members then. What it has forgotten, it has by this.
    """

    registers: list[tuple[Path, Register]]
    last: bool
    known: Row
    cluster: Cluster


def select_page(
    paths: Iterable[Path],
    register_at: Callable[[Path], Register | None],
    known: Row,
    takes: Callable[[Path], bool],
    *,
    after: Path | None = None,
    limit: int = MAXIMUM_REGISTERS,
) -> tuple[list[tuple[Path, Register]], bool]:
    """Returns the registers of a page, and whether nothing follows.

    Args:
        paths: in order; all that may have something that the asker does not know.
        register_at: returns the register of a path.
        known: what the asker knew when its pull began.
        takes: whether sender and asker both take a path.
        after: the last path of the page before.
        limit: how many registers, without those of paths above.

    The registers of paths above come along: what is sent may displace a file there that the asker has
    forgotten all but the value of. They stand before it, so the next page still begins behind the last path.
    """
    chosen: dict[Path, Register] = {}
    above: dict[Path, Register] = {}
    weight = 0
    for path in paths:
        if after is not None and path <= after:
            continue
        register = register_at(path)
        if register is None or not takes(path) or is_known(register, known):
            continue
        if chosen and (len(chosen) >= limit or weight + _weight(path, register) > MAXIMUM_BYTES):
            return sorted({**above, **chosen}.items()), False
        chosen[path] = register
        weight += _weight(path, register)
        for depth in range(1, len(path)):
            holder = register_at(path[:depth])
            if holder is not None and takes(path[:depth]) and path[:depth] not in chosen:
                above[path[:depth]] = holder
    return sorted({**above, **chosen}.items()), True


def is_current(page: Page, sender: int, mine: Cluster) -> bool:
    """Whether a page may still be merged. One that is not is asked for again.

    Args:
        page: as it came.
        sender: who made it.
        mine: what this node knows of the cluster now, with what it has learned since it asked.

    While a page travels, the horizon here may pass what the sender knew when it made it: then what is
    forgotten here was not weighed there, and the page could undo it.
    """
    if sender not in mine.members:
        return False
    horizons = Horizons(mine)
    return all(covers_row(page.known, horizons.of(path)) for path, _ in page.registers)


def check_register(register: Register, now_ms: int) -> None:
    """Refuses what no node writes: times far ahead, two standing versions of one writer, none at all.

    Raises:
        InvalidInput: says which.
    """
    for vt in register.context.values():
        check_received(vt, now_ms)
    standing = [
        dot.writer
        for dot, version in register.versions.items()
        if not version.parked and dot.vt > RESTATED_VT
    ]
    for version in register.versions.values():
        check_value(version.value)
    if all(version.parked for version in register.versions.values()):
        raise InvalidInput("A register has no version that counts.")
    if len(set(standing)) < len(standing):
        raise InvalidInput("A register has two versions of one writer: one must have replaced the other.")
    if any(dot != STABLE and register.context.get(dot.writer, -1) < dot.vt for dot in register.versions):
        raise InvalidInput("A register has a version that it has not seen.")


def _weight(path: Path, register: Register) -> int:
    """About how many bytes a register takes in a page."""
    weight = 8 + sum(map(len, path)) + 20 * len(register.context)
    for version in register.versions.values():
        value = version.value
        weight += 40
        if type(value) is Entry:
            weight += 80 + len(value.content_type or "") + len(value.target or "")
        elif type(value) is Document:
            weight += len(value.data)
    return weight
