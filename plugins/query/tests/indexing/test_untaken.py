"""Documents that an index type does not take: they are known, told of, and taken again by a mended type."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from svc_query.api import Value
from svc_query.health import IndexHealth
from svc_query.testing.indexed_database import Indexed, Source, Words

from svc.plugin import HealthStatus

TITLE = {"name": "title", "type": ["exact", "names"]}


class Mended(Words):
    """Takes what the other refuses."""

    def terms(self, value: Value, options: Mapping[str, Any]) -> Iterable[bytes]:
        return super().terms("mended" if value == "raise" else value, options)


def untaken(indexed: Indexed) -> set[tuple[str, str]]:
    """The index types with the paths that they did not take, as queries have them."""
    return indexed.read(  # type: ignore[no-any-return]
        lambda snapshot: {
            (index.type.name, "/".join(document.path))
            for index in snapshot.indexes("title")
            for document in snapshot.documents(index.untaken or ())
        }
    )


@pytest.mark.parametrize("flushed", [False, True])
def test_what_a_type_does_not_take_is_known_and_told(
    indexed: Indexed, caplog: pytest.LogCaptureFixture, flushed: bool
) -> None:
    indexed.configure("/", TITLE)
    indexed.put({f"/{number}.json": {"title": f"t{number}"} for number in range(300)})
    indexed.finish()
    assert untaken(indexed) == set()
    assert IndexHealth().check(indexed.context).status is HealthStatus.HEALTHY
    with caplog.at_level(logging.WARNING, "svc.plugin.query"):
        indexed.put({f"/{number}.json": {"title": "raise"} for number in (7, 8)})
        indexed.put({"/9.json": {"title": "refused"}})
        if flushed:
            indexed.view.worker.flush_until = 1 << 30
            indexed.finish()
    if flushed:
        assert untaken(indexed) == {("exact", "7.json"), ("exact", "8.json"), ("names", "9.json")}
        told = [record.getMessage() for record in caplog.records]
        assert [text for text in told if "exact" in text and "/7.json" in text and "it said so" in text]
        report = IndexHealth().check(indexed.context)
        assert report.status is HealthStatus.DEGRADED
        assert report.details["untaken"] == 3
    else:
        assert {path for _, path in untaken(indexed)} <= {"7.json", "8.json", "9.json"}


def test_a_mended_type_takes_them_after_a_restart(
    indexed: Indexed, open_index: Callable[..., Indexed], source: Source
) -> None:
    indexed.configure("/", {"name": "title", "type": "exact"})
    indexed.put({f"/{number}.json": {"title": "raise" if number == 5 else "x"} for number in range(300)})
    indexed.finish()
    assert untaken(indexed) == {("exact", "5.json")}
    indexed.close()
    still = open_index()
    still.finish()
    assert untaken(still) in ({("exact", "5.json")}, set()), "or it is in the tail, which is tested"
    still.close()
    source.types = {**source.types, "exact": Mended()}
    source.use()
    again = open_index()
    again.put({f"/more{number}.json": {"title": "y"} for number in range(300)})
    again.finish()
    assert untaken(again) == set()
    assert again.found("title", b"smended") == {"/5.json"}
    assert IndexHealth().check(again.context).status is HealthStatus.HEALTHY
