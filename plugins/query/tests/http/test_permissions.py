"""What a caller may not read is not found, not counted, not ordered by, and not named."""

from __future__ import annotations

from typing import Any

import pytest
from svc_query.commands.statuses import status_lines

from svc.plugin import ROOT_IDENTITY, Identity, ScopedRule
from svc_testing import PathRights

YEAR = {"field": "year", "op": "gt", "value": 0}


@pytest.fixture
def library(books: Any) -> Any:
    """Beside the books, a hundred files in ten directories, and one directory with a field of its own."""
    files = {
        f"/books/d{number % 10}/f{number:03}.json": {"year": 3000 + number, "title": "common word"}
        for number in range(100)
    }
    books.write(files)
    books.write({
        "/secret/.svc-config/indexes.json": {"indexes": [{"name": "salary", "type": "exact"}]},
        "/secret/ann.json": {"salary": 5},
    })  # fmt: skip
    books.finish()
    return books


def numbers(answer: dict[str, Any]) -> list[str]:
    return [row["path"] for row in answer["results"]]


def test_a_user_finds_what_was_granted(library: Any, user: Any) -> None:
    library.become(user({"/books/d3": "rl", "/books/d4": "rl", "/books/d4/f014.json": ""}))
    answer = library.query(YEAR, "/", limit=100, include_total=True)
    expected = [f"/books/d3/f{number:03}.json" for number in range(3, 100, 10)]
    expected += [f"/books/d4/f{number:03}.json" for number in range(4, 100, 10) if number != 14]
    assert numbers(answer) == expected
    assert answer["total_count"] == 19
    ordered = library.query(YEAR, "/", limit=3, order_by=[{"field": "year", "direction": "desc"}])
    assert numbers(ordered) == ["/books/d4/f094.json", "/books/d3/f093.json", "/books/d4/f084.json"]
    assert library.query(YEAR, "/", aggregate={"count": True, "max": ["year"], "min": ["year"]}) == {
        "count": 19, "max": {"year": 3094}, "min": {"year": 3003},
    }  # fmt: skip
    groups = library.query(YEAR, "/", aggregate={"group_by": ["title"]})
    assert groups["groups"] == [{"key": {"title": "common word"}, "count": 19}]


def test_a_scoped_key_finds_what_its_rules_name(library: Any, key: Any) -> None:
    library.become(key(("/books/*/f*5.json", "-r------"), ("/books/ru/**", "-r--l---")))
    found = numbers(library.query(YEAR, "/books", limit=100))
    assert found == [
        "/books/d5/f005.json", *(f"/books/d5/f0{number}5.json" for number in range(1, 10)),
        *(f"/books/ru/{name}.json" for name in ("anna", "gull", "idiot", "notes", "war")),
    ]  # fmt: skip
    seen: list[str] = []
    answer: dict[str, Any] = {"has_more": True}
    while answer["has_more"]:
        place = {"after": answer["next_cursor"]} if "next_cursor" in answer else {}
        answer = library.query(YEAR, "/books", limit=4, order_by=[{"field": "year"}], **place)
        seen += numbers(answer)
    assert sorted(seen) == sorted(found)
    assert len(seen) == len(found)


@pytest.mark.parametrize(
    "path", ["/secret", "/nowhere", "/secret/ann.json", "/secret/nobody.json", "/secret/no/x"]
)
def test_what_is_hidden_and_what_is_not_there_look_the_same(
    library: Any, user: Any, key: Any, path: str
) -> None:
    answers = []
    for identity in (user({"/books/d3": "rl"}), key(("/books/d3/**", "-r--l---"))):
        library.become(identity)
        error = library.refused(YEAR, path, status=404)
        assert error.pop("path") == path
        answers.append(error)
    assert answers[0] == answers[1]


def test_a_directory_on_the_way_shows_nothing_of_what_is_beside(library: Any, user: Any) -> None:
    library.become(user({"/secret/other/place": "rl", "/books/d3": "rl"}))
    assert library.query([], "/secret")["results"] == []
    # That somebody indexes salaries there is not for this caller either.
    assert library.refused({"field": "salary", "op": "exists"}, "/")["field"] == "salary"
    known = library.refused({"field": "nobody", "op": "exists"}, "/")
    assert (
        known["error"].replace("nobody", "salary")
        == (library.refused({"field": "salary", "op": "exists"}, "/")["error"])
    )


def test_plans_count_only_what_is_visible(library: Any, user: Any) -> None:
    library.become(user({"/books/d3": "rl"}))
    where = {"and": [YEAR, {"field": "title", "op": "contains", "value": "common"}]}
    for explain in ("plan", "analyze"):
        plan = library.query(where, "/", explain=explain, limit=100)["plan"]
        pending = [plan]
        while pending:
            node = pending.pop()
            pending += node.get("children", ())
            for name in ("estimated_rows", "actual_rows"):
                assert node.get(name, 0) <= 10, (explain, node)


def test_search_ranks_only_what_is_visible(library: Any, user: Any) -> None:
    library.become(user({"/books/d3": "rl"}))
    answer = library.post("/files/search", {"query": "common", "limit": 4}).json
    assert numbers(answer) == [f"/books/d3/f{number:03}.json" for number in (3, 13, 23, 33)]
    assert answer["total_count"] == 10
    assert answer["has_more"] is True
    second = library.post("/files/search", {"query": "common", "limit": 4, "offset": 8}).json
    assert numbers(second) == ["/books/d3/f083.json", "/books/d3/f093.json"]
    assert second["has_more"] is False


def test_rights_that_cannot_say_where_they_hold_give_the_same(library: Any, user: Any) -> None:
    flags = {"/books/d3": "rl", "/books/d4": "rl", "/books/d4/f014.json": ""}
    answers = []
    for rights in (user(flags).rights, PathRights(flags)):
        library.become(Identity("00000000-0000-0000-0000-000000000009", "ann", rights=rights))
        answers.append(library.query(YEAR, "/", limit=7, offset=9, include_total=True)["results"])
        assert library.refused(YEAR, "/secret", status=404)["code"] == "NOT_FOUND"
    assert answers[0] == answers[1]


def test_to_list_is_not_to_read(library: Any, user: Any) -> None:
    library.become(user({"/": "l", "/books/d3": "rl"}))
    assert library.query(YEAR, "/books", limit=100, include_total=True)["total_count"] == 10


def test_the_past_is_for_those_who_may_see_what_was_deleted(library: Any, user: Any) -> None:
    old = library.database.at().root.hex()
    library.write({"/books/d3/f003.json": None})
    library.become(user({"/books/d3": "rl"}))
    assert library.query(YEAR, "/books", version=old, include_total=True)["total_count"] == 9
    library.become(user({"/books/d3": "rld"}))
    assert library.query(YEAR, "/books", version=old, include_total=True)["total_count"] == 10


def test_nobody_finds_the_system(library: Any) -> None:
    found = numbers(library.query([], "/", limit=1000))
    assert found
    assert not [path for path in found if path.startswith(("/.svc-system", "/.system"))]


def test_the_status_is_for_those_who_see_everything_below(library: Any, user: Any, key: Any) -> None:
    assert library.get("/query/status").json["documents"] > 100
    library.become(user({"/books/d3": "rl"}))
    assert library.get("/query/status", path="/books/d3").json["documents"] == 10
    assert library.get("/query/status").status_code == 403
    assert library.get("/query/status", path="/secret").status_code == 403
    library.become(key(("/books/d3/**", "-r--l---")))
    assert library.get("/query/status", path="/secret").status_code == 404
    assert library.post("/query/rebuild", {}).status_code == 403


@pytest.fixture
def configured(http: Any) -> Any:
    """A directory below another's configuration, beside one with the same field indexed in other ways."""
    indexed = {"name": "title", "type": "exact"}
    http.write({
        "/.svc-config/indexes.json": {"glob": "**/*", "indexes": [{"name": "wage", "type": "exact"}]},
        "/open/.svc-config/indexes.json": {"glob": "**/*", "indexes": [{"name": "rank", "type": "exact"}]},
        "/open/d/.svc-config/indexes.json": {"indexes": [indexed]},
        "/shut/.svc-config/indexes.json": {"indexes": [{"name": "title", "type": "phonetic"}]},
    })  # fmt: skip
    http.write(
        {"/open/d/a.json": {"title": "x"}, "/open/b.json": {"rank": 1}, "/shut/c.json": {"title": "y"}}
    )
    http.finish()
    return http


def callers_of_one_directory(user: Any, key: Any) -> list[Identity]:
    rule = ScopedRule("/open/d/**", "-r--l---")
    return [
        user({"/open/d": "rl"}),
        key((rule.glob, rule.flags)),
        Identity(None, "a share link", key_id="link", rules=(rule,)),
    ]


def test_the_status_of_a_part_tells_nothing_of_the_rest(configured: Any, user: Any, key: Any) -> None:
    def told() -> list[dict[str, Any]]:
        found = []
        for identity in callers_of_one_directory(user, key):
            configured.become(identity)
            found.append(configured.get("/query/status", path="/open/d").json)
            assert found[-1].pop("sequence") > 0
            assert found[-1].pop("unflushed") <= found[-1]["documents"] == 1
        configured.become(ROOT_IDENTITY)
        return found

    before = told()
    configured.write({f"/shut/{number}.json": {"title": "much", "wage": 5} for number in range(50)})
    configured.finish()
    configured.write({"/shut/last.json": {"title": "unflushed"}})
    assert configured.query([], "/shut")
    assert configured.get("/query/status").json["unflushed"] == 1
    assert configured.get("/query/status", path="/open/d").json["unflushed"] == 0
    assert told() == before
    for status in before:
        assert [one["path"] for one in status["directories"]] == ["/open/d"]
        shown = {(one["field"], one["type"]) for one in status["indexes"]}
        assert ("title", "exact") in shown
        assert ("title", "phonetic") not in shown
        assert not [one for one in status["indexes"] if "documents" in one or "size" in one]
        assert any(line.split() == ["title", "exact"] for line in status_lines(status))


def test_the_status_shows_configurations_to_who_may_read_their_files(configured: Any, user: Any) -> None:
    def shown(flags: dict[str, str], path: str) -> list[str]:
        configured.become(user(flags))
        return [one["path"] for one in configured.get("/query/status", path=path).json["directories"]]

    assert shown({"/open": "rl"}, "/open/d") == ["/open", "/open/d"]
    assert shown({"/open/d": "rl", "/.svc-config/indexes.json": "r"}, "/open/d") == ["/", "/open/d"]
    assert shown({"/open/d": "y"}, "/open/d") == []
    assert shown({"/": "rl"}, "/open/d") == ["/", "/open", "/open/d"]


def test_the_status_of_a_part_counts_no_files_of_work_above_it(configured: Any, user: Any, key: Any) -> None:
    assert configured.post("/query/rebuild", {}).status_code == 202
    assert configured.get("/query/status", path="/open/d").json["jobs"][0]["total"] > 5
    for identity in callers_of_one_directory(user, key):
        configured.become(identity)
        (job,) = configured.get("/query/status", path="/open/d").json["jobs"]
        assert sorted(job) == ["path", "reason", "since", "waits_for_room"]
        assert job["path"] == "/open/d"
        assert any(
            line.startswith("rebuild of /open/d: since ")
            for line in status_lines(configured.get("/query/status", path="/open/d").json)
        )


def test_root_begins_a_rebuild_and_answers_stay_the_same(library: Any) -> None:
    before = library.query(YEAR, "/books", limit=1000)["results"]
    answer = library.post("/query/rebuild", {"path": "/books"})
    assert answer.status_code == 202
    assert answer.json == {"rebuilding": True, "path": "/books"}
    during = library.query(YEAR, "/books", limit=1000)
    assert during["results"] == before
    library.finish()
    after = library.query(YEAR, "/books", limit=1000)
    assert after["results"] == before
    assert "meta" not in after
    assert library.post("/query/rebuild", {"path": "/nowhere"}).status_code == 404
