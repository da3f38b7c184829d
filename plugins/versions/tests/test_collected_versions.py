"""Snapshots, forks, restores and merges when older versions were collected."""

from __future__ import annotations

from typing import Any

import pytest

from svc.errors import VersionCollected
from svc.plugin import collect
from svc_testing import simulate_collection
from svc_versions.forks import create_fork
from svc_versions.merging import merge_versions


@pytest.fixture
def old(http: Any) -> str:
    """A version that was collected; HEAD holds another content."""
    http.write({"/a": "one", "/b": "kept"})
    root: str = http.database.head().root.hex()
    http.write({"/a": "two"})
    simulate_collection(http.database)
    http.write({"/c": "later"})
    return root


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/versions/snapshots", {"name": "late", "version": "{old}"}),
        ("/versions/forks", {"name": "late", "base": "{old}"}),
        ("/versions/file-restore/a", {"version": "{old}"}),
    ],
)
def test_nothing_is_made_of_a_collected_version(http: Any, old: str, path: str, body: dict[str, str]) -> None:
    answer = http.post(path, {name: value.format(old=old) for name, value in body.items()})
    assert (answer.status_code, answer.json["code"]) == (404, "NOT_FOUND"), answer.text
    assert answer.json["collected"] is True
    assert "was collected" in answer.json["error"]
    assert http.files() == {"/a": "two", "/b": "kept", "/c": "later"}
    assert list(http.database.refs()) == []


def test_a_snapshot_is_restored_however_much_was_collected(http: Any) -> None:
    http.write({"/a": "one"})
    http.post("/versions/snapshots", {"name": "kept"})
    http.write({"/a": "two"})
    http.write({"/a": "three"})
    collect(http.database)
    assert http.post("/versions/restore", {"name": "kept"}).status_code == 200
    assert http.files() == {"/a": "one"}


def test_a_fork_is_merged_although_the_commits_between_were_collected(http: Any) -> None:
    http.write({"/a": "base", "/b": "base", "/gone": "base"})
    create_fork(http.database, "draft")
    http.write({"/a": "fork", "/gone": None}, fork="draft")
    http.write({"/b": "head"})
    collect(http.database)
    http.write({"/c": "later"})
    assert merge_versions(http.database, "draft").committed
    assert http.files() == {"/a": "fork", "/b": "head", "/c": "later"}
    http.write({"/a": "fork again"}, fork="draft")
    http.write({"/b": "head again"})
    collect(http.database)
    assert merge_versions(http.database, "draft").committed
    assert http.files() == {"/a": "fork again", "/b": "head again", "/c": "later"}


def test_the_base_of_a_fork_goes_with_the_fork(http: Any) -> None:
    http.write({"/a": "base"})
    base = http.database.head().root
    create_fork(http.database, "draft")
    http.write({"/a": "head"})
    collect(http.database)
    assert http.database.is_available(base)
    assert http.delete("/versions/forks/draft").status_code == 200
    for name, _ in list(http.database.refs("abandoned")):
        with http.database.transaction() as transaction:
            transaction.set_ref(name, None)
            transaction.set_ref(name.replace("abandoned/", "abandoned-bases/"), None)
    collect(http.database)
    assert not http.database.is_available(base)


def test_a_merge_whose_base_was_collected_says_so(http: Any) -> None:
    http.write({"/a": "one"})
    create_fork(http.database, "one")
    create_fork(http.database, "two")
    http.write({"/a": "x"}, fork="one")
    merge_versions(http.database, "one", "forks/two")
    http.write({"/a": "y"}, fork="one")
    http.write({"/a": "z"}, fork="two")
    merge_versions(http.database, "HEAD", "forks/two", "ours")
    http.write({"/a": "w"})
    simulate_collection(http.database)
    with pytest.raises(VersionCollected, match="both come of was collected") as raised:
        merge_versions(http.database, "one", "forks/two")
    assert raised.value.as_body()["collected"] is True
