"""``/versions/compare`` and ``/versions/blame``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.plugin import Database
from svc_history.blaming import BlameLimits, blame_lines
from svc_history.viewer import Viewer
from svc_history.walking import open_history

LIMITS = BlameLimits(1 << 20, 1 << 26)


def compare(http: Any, **query: str) -> Any:
    answer = http.get("/versions/compare", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json


def paths(answer: Any) -> list[tuple[str, str]]:
    return [(change["path"], change["change_type"]) for change in answer["changes"]]


def test_two_versions_are_compared_both_ways(http: Any, commit: Any) -> None:
    first = commit({"/a": b"1", "/b": b"1", "/d/x": b"1"})
    second = commit({"/a": b"22", "/b": None, "/c": b"1"})
    answer = compare(http, **{"from": first, "to": second})
    assert paths(answer) == [("/a", "modified"), ("/b", "deleted"), ("/c", "added")]
    assert (answer["from"], answer["to"]) == (first, second)
    assert answer["totals"] == {"added": 1, "modified": 1, "deleted": 1}
    modified = answer["changes"][0]
    assert set(modified["before"]) == {"hash", "size", "updated_at", "entry_type", "content_type"}
    assert (modified["before"]["size"], modified["after"]["size"], modified["entry_type"]) == (1, 2, 2)
    back = compare(http, **{"from": second, "to": first})
    assert paths(back) == [("/a", "modified"), ("/b", "added"), ("/c", "deleted")]
    assert compare(http, **{"from": first, "to": first})["changes"] == []


def test_a_comparison_is_read_in_parts(http: Any, commit: Any) -> None:
    first = commit({"/keep": b"1"})
    commit({f"/d/{number}": b"1" for number in range(5)} | {"/e": b"1"})
    whole = compare(http, **{"from": first})
    for limit in ("1", "2", "6"):
        found, after = [], ""
        while after is not None:
            part = compare(http, **{"from": first, "limit": limit, **({"after": after} if after else {})})
            found += part["changes"]
            assert part["totals"] is None
            assert part["has_more"] is (part["next_cursor"] is not None)
            after = part["next_cursor"]
        assert found == whole["changes"]
    below = compare(http, **{"from": first, "path": "/d", "limit": "100"})
    assert [one["path"] for one in below["changes"]] == ["/d", *(f"/d/{number}" for number in range(5))]
    assert http.get("/versions/compare", params={"from": first, "limit": "0"}).status_code == 400


def test_versions_are_named_in_every_way_and_the_end_is_head_by_default(http: Any, commit: Any) -> None:
    first = commit({"/a": b"1"})
    http.post("/versions/snapshots", {"name": "monday"})
    http.post("/versions/forks", {"name": "draft"})
    on_fork = commit({"/b": b"1"}, fork="draft")
    second = commit({"/a": b"2"})
    assert compare(http, **{"from": "monday"})["to"] == second
    assert compare(http, **{"from": "monday", "to": "forks/draft"})["to"] == on_fork
    assert paths(compare(http, **{"from": "HEAD", "to": "forks/draft"})) == [
        ("/a", "modified"),
        ("/b", "added"),
    ]
    assert compare(http, **{"from": first, "to": "2999-01-01"})["to"] == second


def test_a_path_narrows_the_comparison(http: Any, commit: Any) -> None:
    first = commit({"/d/a": b"1", "/d/b": b"1", "/x": b"1"})
    commit({"/d/a": b"2", "/d/b": b"2", "/x": b"2"})
    assert paths(compare(http, **{"from": first, "path": "/d"})) == [
        ("/d/a", "modified"),
        ("/d/b", "modified"),
    ]
    assert paths(compare(http, **{"from": first, "path": "/d/a"})) == [("/d/a", "modified")]
    assert paths(compare(http, **{"from": first, "path": "/none"})) == []


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 400),
        ({"from": "nothing"}, 404),
        ({"from": "0" * 64}, 404),
        ({"from": "HEAD", "to": "nothing"}, 404),
        ({"from": "HEAD", "path": "/.svc-system/x"}, 404),
        ({"from": "HEAD", "path": "a/.."}, 400),
    ],
)
def test_a_comparison_of_nothing_is_refused(
    http: Any, commit: Any, query: dict[str, str], status: int
) -> None:
    commit({"/a": b"1"})
    assert http.get("/versions/compare", params=query).status_code == status


def test_a_comparison_shows_what_the_caller_may_read(http: Any, commit: Any, make_user: Any) -> None:
    first = commit({"/open/a": b"1", "/secret/b": b"1", "/open/gone": b"1"})
    commit({"/open/a": b"2", "/secret/b": b"2", "/open/gone": None})
    http.become(make_user({"/": "", "/open": "rl"}))
    answer = compare(http, **{"from": first})
    assert paths(answer) == [("/open/a", "modified")]
    assert answer["totals"] == {"added": 0, "modified": 1, "deleted": 0}
    http.become(make_user({"/": "", "/open": "rld"}))
    assert len(paths(compare(http, **{"from": first}))) == 2
    assert http.get("/versions/compare", params={"from": first, "path": "/secret"}).status_code == 403


def test_a_long_comparison_comes_in_pieces(http: Any, commit: Any) -> None:
    first = commit({"/a": b"1"})
    commit({f"/many/{number}": b"x" for number in range(1500)})
    answer = compare(http, **{"from": first})
    assert len(answer["changes"]) == 1501
    assert answer["totals"]["added"] == 1500
    assert http("HEAD", "/versions/compare", params={"from": first}).status_code == 200


# -- blame -------------------------------------------------------------------------------------------


def blame(http: Any, path: str, **query: str) -> list[tuple[str, str]]:
    answer = http.get(f"/versions/blame{path}", params=query)
    assert answer.status_code == 200, answer.text
    return [(line["text"], line["user"]) for line in answer.json["lines"]]


def test_each_line_comes_from_the_commit_that_brought_it(http: Any, commit: Any) -> None:
    first = commit({"/f": b"one\ntwo\nthree\n"}, "ann")
    commit({"/other": b"x"}, "eve")
    third = commit({"/f": b"one\n2\nthree\n"}, "bob")
    commit({"/f": b"zero\none\n2\nthree\nend"}, "cid")
    answer = http.get("/versions/blame/f").json
    assert [(line["line"], line["text"], line["user"]) for line in answer["lines"]] == [
        (1, "zero", "cid"),
        (2, "one", "ann"),
        (3, "2", "bob"),
        (4, "three", "ann"),
        (5, "end", "cid"),
    ]
    assert (answer["path"], answer["truncated"]) == ("/f", False)
    line = answer["lines"][2]
    assert line["version"] == third
    assert line["timestamp"] == http.database.commit(line["sequence"]).time_ms
    assert blame(http, "/f", version=first) == [("one", "ann"), ("two", "ann"), ("three", "ann")]
    without = http.get("/versions/blame/f", params={"text": "false"}).json["lines"]
    assert "text" not in without[0]


def test_a_line_that_came_back_is_of_who_brought_it_back(http: Any, commit: Any) -> None:
    commit({"/f": b"a\nb\n"}, "ann")
    commit({"/f": b"a\n"}, "bob")
    commit({"/f": b"a\nb\n"}, "cid")
    assert blame(http, "/f") == [("a", "ann"), ("b", "cid")]
    commit({"/f": None}, "dan")
    commit({"/f": b"a\nb\n"}, "eve")
    assert blame(http, "/f") == [("a", "eve"), ("b", "eve")]


def test_lines_are_followed_through_moves_and_copies(http: Any, commit: Any) -> None:
    commit({"/old/f": b"a\nb\n"}, "ann")
    with http.database.transaction(actor="bob") as transaction:
        transaction.move(("old",), ("new",))
    commit({"/new/f": b"a\nb\nc\n"}, "cid")
    with http.database.transaction(actor="dan") as transaction:
        transaction.copy(("new", "f"), ("copy",))
    assert blame(http, "/copy") == [("a", "ann"), ("b", "ann"), ("c", "cid")]
    lines = http.get("/versions/blame/copy").json["lines"]
    assert [line["path"] for line in lines] == ["/old/f", "/old/f", "/new/f"]


def test_where_a_file_came_from_is_for_those_who_may_know(http: Any, commit: Any, make_user: Any) -> None:
    commit({"/secret": b"a\n"}, "ann")
    with http.database.transaction(actor="bob") as transaction:
        transaction.copy(("secret",), ("open",))
    http.become(make_user({"/": "", "/open": "rl"}))
    assert blame(http, "/open") == [("a", "bob")]
    assert http.get("/versions/blame/secret").status_code == 403


def test_a_directory_shows_the_last_commit_of_each_entry(http: Any, commit: Any) -> None:
    first = commit({"/d/a": b"1", "/d/e/b": b"1", "/d/c": b"1"}, "ann")
    second = commit({"/d/e/b": b"2"}, "bob")
    answer = http.get("/versions/blame/d").json
    assert [(row["path"], row["user"], row["version"]) for row in answer["entries"]] == [
        ("/d/a", "ann", first),
        ("/d/c", "ann", first),
        ("/d/e", "bob", second),
    ]
    page = http.get("/versions/blame/d", params={"limit": "2"}).json
    assert page["has_more"]
    rest = http.get("/versions/blame/d", params={"after": page["next_cursor"]}).json
    assert page["entries"] + rest["entries"] == answer["entries"]
    assert [row["path"] for row in http.get("/versions/blame/").json["entries"]] == ["/d"]
    assert {
        row["user"] for row in http.get("/versions/blame/d", params={"version": first}).json["entries"]
    } == {"ann"}


@pytest.mark.parametrize("content", [b"\0binary", b"\xff\xfe not UTF-8"])
def test_a_file_that_is_no_text_shows_its_last_commit(http: Any, commit: Any, content: bytes) -> None:
    commit({"/f": b"text"}, "ann")
    version = commit({"/f": content}, "bob")
    answer = http.get("/versions/blame/f").json
    assert [(row["path"], row["user"], row["version"]) for row in answer["entries"]] == [
        ("/f", "bob", version)
    ]
    commit({"/f": b"text\n"}, "cid")
    assert blame(http, "/f") == [("text", "cid")], "nothing of a binary content is a line"


def test_an_empty_file_has_no_lines(http: Any, commit: Any) -> None:
    commit({"/f": b""})
    assert http.get("/versions/blame/f").json["lines"] == []


def test_a_link_shows_its_last_commit(http: Any, commit: Any) -> None:
    commit({"/f": b"1"})
    with http.database.transaction(actor="bob") as transaction:
        transaction.link(("l",), "/f")
    assert http.get("/versions/blame/l").json["entries"][0]["user"] == "bob"


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/none", {}, 404),
        ("/f", {"version": "x"}, 400),
        ("/f", {"version": "0" * 64}, 404),
        ("/f", {"snapshot": "none"}, 404),
        ("/f", {"at": "1970-01-02"}, 404),
        ("/f", {"at": "x"}, 400),
        ("/f", {"text": "x"}, 400),
        ("/d", {"after": "x"}, 400),
    ],
)
def test_a_blame_of_nothing_is_refused(
    http: Any, commit: Any, path: str, query: dict[str, str], status: int
) -> None:
    commit({"/f": b"1\n", "/d/a": b"1"})
    assert http.get(f"/versions/blame{path}", params=query).status_code == status


def test_a_version_that_was_never_head_has_no_blame(http: Any, commit: Any) -> None:
    commit({"/f": b"1\n"})
    http.post("/versions/forks", {"name": "x"})
    on_fork = commit({"/f": b"2\n"}, fork="x")
    answer = http.get("/versions/blame/f", params={"version": on_fork})
    assert (answer.status_code, answer.json["code"]) == (400, "INVALID_INPUT")


def test_a_deleted_file_is_blamed_by_those_who_may_delete(http: Any, commit: Any, make_user: Any) -> None:
    version = commit({"/f": b"1\n"})
    commit({"/f": None})
    http.become(make_user({"/": "rl"}))
    assert http.get("/versions/blame/f", params={"version": version}).status_code == 404
    http.become(make_user({"/": "rld"}))
    assert http.get("/versions/blame/f", params={"version": version}).status_code == 200


def test_beyond_the_limits_lines_count_for_the_oldest_that_was_seen(tmp_path: Path) -> None:
    with Database(tmp_path / "x.svcdb") as database:
        for name in "abc":
            with database.transaction(actor=name) as transaction:
                lines = "".join(f"{one}\n" for one in "abc"[: "abc".index(name) + 1])
                transaction.put(("f",), lines.encode())
        history, viewer, version = open_history(database), Viewer(database), database.at()
        entry = version.get(("f",))
        assert entry is not None
        whole = blame_lines(history, viewer, version, ("f",), entry, LIMITS)
        short = blame_lines(history, viewer, version, ("f",), entry, BlameLimits(100, 4))
        assert whole is not None
        assert short is not None
        assert [origin.user for origin in whole.origins] == ["a", "b", "c"]
        assert [origin.user for origin in short.origins] == ["b", "b", "c"]
        assert (whole.truncated, short.truncated) == (False, True)
        assert blame_lines(history, viewer, version, ("f",), entry, BlameLimits(3, 100)) is None


CONTENTS = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=6)


@given(st.lists(CONTENTS, min_size=1, max_size=8))
def test_a_line_is_in_the_content_of_its_origin_and_in_all_later_ones(contents: list[list[str]]) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        Database(Path(directory) / "x.svcdb") as database,
    ):
        for number, lines in enumerate(contents):
            with database.transaction(actor=str(number)) as transaction:
                transaction.put(("f",), "".join(f"{line}\n" for line in lines).encode())
        entry = database.at().get(("f",))
        assert entry is not None
        found = blame_lines(open_history(database), Viewer(database), database.at(), ("f",), entry, LIMITS)
        assert found is not None
        assert [line.decode().rstrip("\n") for line in found.lines] == contents[-1]
        for line, origin in zip(found.lines, found.origins, strict=True):
            text = line.decode().rstrip("\n")
            assert all(text in content for content in contents[int(origin.user or "0") :])
