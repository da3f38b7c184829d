"""What nobody has asked for yet is not in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from svc_blackbox.server import Server

LATE = ("rapidfuzz/", "jellyfish/", "/_re2.")
"""Libraries for queries of a kind, and for expressions in sources of fields."""


def test_a_server_that_nobody_has_asked_anything_has_no_library_for_it(
    new_server: Callable[..., Server],
) -> None:
    server = new_server()
    processes = [server.pid, *_children(server.pid)]
    assert len(processes) >= 3
    for pid in processes:
        mapped = Path(f"/proc/{pid}/maps").read_text()
        assert "_cbor2" in mapped
        assert [name for name in LATE if name in mapped] == []


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
