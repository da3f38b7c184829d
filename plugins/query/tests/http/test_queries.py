"""Queries over HTTP, on a real index."""

from __future__ import annotations

from typing import Any

import pytest


def leaf(field: str, op: str, value: Any = None, **options: Any) -> dict[str, Any]:
    return {"field": field, "op": op, "value": value, **options}


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize(
    ("where", "names"),
    [
        ([], "anna gull idiot notes war"),
        (leaf("year", "eq", 1869), "idiot war"),
        (leaf("year", "ne", 1869), "anna gull notes"),
        (leaf("year", "gt", 1869), "anna gull"),
        (leaf("year", "gte", 1878), "anna gull"),
        (leaf("year", "lt", 1869), "notes"),
        (leaf("year", "lte", 1869), "idiot notes war"),
        (leaf("year", "between", 1865, value2=1880), "anna idiot war"),
        (leaf("year", "in", [1864, 1896, 3]), "gull notes"),
        (leaf("tags", "eq", "novel"), "anna war"),
        (leaf("title", "prefix", "The"), "gull idiot"),
        (leaf("title", "contains", "AND"), "war"),
        (leaf("title", "search", "war peace"), "war"),
        (leaf("price", "exists", True), "gull notes"),
        (leaf("price", "exists", False), "anna idiot war"),
        (leaf("year2", "exists"), "gull"),
        (leaf("year2", "eq", None), "gull"),
        ([leaf("year", "eq", 1869), leaf("author", "eq", "Tolstoi")], "war"),
        ({"or": [leaf("price", "gt", 10), leaf("tags", "eq", "history")]}, "gull war"),
        ({"not": leaf("author", "eq", "Tolstoi")}, "gull idiot notes"),
        (
            {"and": [{"not": {"or": [leaf("year", "eq", 1864)]}}, leaf("author", "phonetic", "Dostojevski")]},
            "idiot",
        ),
        (leaf("author", "similar", "Tolstoj"), "anna war"),
        (leaf("author", "fuzzy", "Tolstoj"), "anna war"),
        (leaf("author", "match", "tolst"), "anna war"),
        (leaf("@filename", "eq", "war.json"), "war"),
        (leaf("@size", "gt", 1), "anna gull idiot notes war"),
    ],
    ids=str,
)
def test_a_filter_finds_its_files(books: Any, flushed: bool, where: Any, names: str) -> None:
    if flushed:
        books.finish()
    found = sorted(books.paths(where, "/books/ru"))
    assert found == [f"/books/ru/{name}.json" for name in names.split()]


def test_a_write_that_was_acknowledged_is_seen(books: Any) -> None:
    for number in range(5):
        books.write({"/books/ru/new.json": {"title": f"t{number}", "year": number}})
        assert books.paths(leaf("year", "eq", number), "/books/ru") == ["/books/ru/new.json"]
        assert books.paths(leaf("year", "eq", number - 1), "/books/ru") == []
    books.write({"/books/ru/new.json": None})
    assert books.paths(leaf("year", "lt", 100), "/books/ru") == []


def test_the_row_of_a_file(books: Any) -> None:
    (row,) = books.query(leaf("year", "eq", 1878), "/books/ru")["results"]
    entry = books.database.at().get(("books", "ru", "anna.json"))
    assert row == {
        "path": "/books/ru/anna.json",
        "total_size": entry.size,
        "content_type": "application/json",
        "created_at": entry.created_ms,
        "updated_at": entry.updated_ms,
        "score": 1.0,
        "matched_by": ["year"],
    }


def test_a_projection_keeps_the_envelope(books: Any) -> None:
    names = ["@path", "title", "tags", "price", "nobody", "@hash"]
    answer = books.query([], "/books/ru", select=names, limit=2, include_total=True)
    entry = books.database.at().get(("books", "ru", "anna.json"))
    assert answer["results"][0] == {
        "path": "/books/ru/anna.json", "title": "Anna Karenina", "tags": "novel", "hash": entry.hash.hex(),
    }  # fmt: skip
    assert answer["has_more"]
    assert answer["total_count"] == 5
    assert answer["next_cursor"]


def test_orders(books: Any) -> None:
    def names(*order: Any) -> list[str]:
        fields = [
            {"field": name.lstrip("-"), "direction": "desc" if name[0] == "-" else "asc"} for name in order
        ]
        return [path[10:-5] for path in books.paths([], "/books/ru", order_by=fields)]

    assert names("year") == ["notes", "idiot", "war", "anna", "gull"]
    assert names("-year") == ["gull", "anna", "idiot", "war", "notes"]
    assert names("-year", "-@path") == ["gull", "anna", "war", "idiot", "notes"]
    assert names("price") == ["notes", "gull", "anna", "idiot", "war"]
    assert names("-price") == ["gull", "notes", "anna", "idiot", "war"]
    books.finish()
    assert names("price") == ["notes", "gull", "anna", "idiot", "war"]
    assert names("author", "-year") == ["idiot", "notes", "anna", "war", "gull"]


def test_the_default_limit_is_told(books: Any) -> None:
    books.write({f"/books/ru/{number:02}.json": {"year": 1} for number in range(30)})
    answer = books.query(leaf("year", "eq", 1), "/books/ru")
    assert len(answer["results"]) == 20
    assert answer["default_limit_hit"] is True
    assert answer["default_limit"] == 20
    assert "default_limit" not in books.query(leaf("year", "eq", 1), "/books/ru", limit=20)


def test_aggregates(books: Any) -> None:
    answer = books.query(
        [], "/books/ru",
        aggregate={
            "count": True, "sum": ["year", "price"], "avg": ["price"],
            "min": ["year", "title"], "max": ["year"],
        },
    )  # fmt: skip
    assert answer == {
        "count": 5,
        "sum": {"year": 1869 + 1878 + 1869 + 1864 + 1896, "price": 21.5},
        "avg": {"price": 10.75},
        "min": {"year": 1864, "title": "Anna Karenina"},
        "max": {"year": 1896},
    }
    answer = books.query([], "/books/ru", aggregate={"group_by": ["author"], "max": ["year"]}, limit=2)
    assert answer == {
        "groups": [
            {"key": {"author": "Dostojewski"}, "count": 2, "max": {"year": 1869}},
            {"key": {"author": "Tolstoi"}, "count": 2, "max": {"year": 1878}},
        ],
        "has_more": True,
    }
    answer = books.query([], "/books/ru", aggregate={"group_by": ["tags"]}, limit=9,
                         order_by=[{"field": "@count", "direction": "desc"}])  # fmt: skip
    assert answer["groups"] == [
        {"key": {}, "count": 3},
        {"key": {"tags": "novel"}, "count": 2},
        {"key": {"tags": "history"}, "count": 1},
    ]  # fmt: skip


def test_sums_of_integers_are_exact(books: Any) -> None:
    books.write({f"/books/ru/big{number}.json": {"price": 2**60 + number} for number in range(3)})
    answer = books.query(leaf("price", "gt", 2**59), "/books/ru", aggregate={"sum": ["price"]})
    assert answer["sum"]["price"] == 3 * 2**60 + 3


def test_plans(books: Any) -> None:
    books.finish()
    where = {
        "and": [leaf("year", "gt", 1865), {"not": leaf("title", "contains", "war")}, leaf("@size", "gt", 0)]
    }
    plan = books.query(where, "/books/ru", explain="plan")
    assert "results" not in plan
    tree = plan["plan"]["children"][0]
    assert tree["operator"] == "and"
    indexes = {one.get("field"): one.get("index") for one in tree["children"]}
    assert indexes["year"] == "exact"
    analyzed = books.query(where, "/books/ru", explain="analyze")
    assert [row["path"] for row in analyzed["results"]] == [
        "/books/ru/anna.json", "/books/ru/gull.json", "/books/ru/idiot.json",
    ]  # fmt: skip
    assert analyzed["plan"]["actual_rows"] == 3
    assert analyzed["plan"]["duration_ms"] > 0
    assert all("actual_rows" in one for one in analyzed["plan"]["children"][0]["children"])
    assert books.query(where, "/books/ru", explain=True)["plan"]["strategy"]


def test_cursors_over_http(books: Any) -> None:
    books.write({f"/books/ru/{number:03}.json": {"year": number % 7} for number in range(60)})
    order = [{"field": "year", "direction": "desc"}]
    whole = books.paths([], "/books/ru", order_by=order, limit=100)
    seen: list[str] = []
    answer: dict[str, Any] = {"next_cursor": None, "has_more": True}
    while answer["has_more"]:
        place = {"after": answer["next_cursor"]} if answer["next_cursor"] else {}
        answer = books.query([], "/books/ru", order_by=order, limit=9, **place)
        seen += [row["path"] for row in answer["results"]]
        books.finish()  # what was in the tail is flushed between pages
    assert seen == whole


def test_a_query_of_the_past_walks(books: Any) -> None:
    old = books.database.at().root.hex()
    books.write({"/books/ru/anna.json": None, "/books/ru/war.json": {"year": 1}})
    where = leaf("year", "gt", 1865)
    assert books.paths(where, "/books/ru") == ["/books/ru/gull.json", "/books/ru/idiot.json"]
    answer = books.query(where, "/books/ru", version=old, order_by=[{"field": "year"}])
    assert [row["path"][10:-5] for row in answer["results"]] == ["idiot", "war", "anna", "gull"]
    assert answer["meta"] == {"unindexed": True}
    plan = books.query(where, "/books/ru", version=old, explain="plan")["plan"]
    assert plan["children"][0]["index"] == "walk"
    assert books.query(leaf("title", "search", "seagull"), "/books/ru", version=old)["results"][0]["path"]


def test_a_walk_of_more_files_than_one_query_looks_at_goes_on_by_cursor(books: Any, monkeypatch: Any) -> None:
    old = books.database.at().root.hex()
    monkeypatch.setattr("svc_query.walking.walk._most_entries", lambda settings: 2)
    where, seen, pages = leaf("year", "lt", 1870), [], 0
    answer: dict[str, Any] = {"has_more": True}
    while answer["has_more"]:
        place = {"after": answer["next_cursor"]} if pages else {}
        answer = books.query(where, "/books", version=old, limit=1, **place)
        seen += [row["path"][10:-5] for row in answer["results"]]
        pages += 1
        assert pages < 12
    assert seen == ["idiot", "notes", "war"]
    for members in (
        {"include_total": True},
        {"order_by": [{"field": "year"}]},
        {"aggregate": {"count": True}},
    ):
        assert "order of the paths" in books.refused(where, "/books", version=old, **members)["error"]


def test_pages_of_a_walk_that_are_ordered_by_score_are_whole(books: Any) -> None:
    old = books.database.at().root.hex()
    where = leaf("author", "similar", "Tolstoi Dostojewski", threshold=0.1)
    whole = books.paths(where, "/books", version=old)
    first = books.query(where, "/books", version=old, limit=1)
    rest = books.paths(where, "/books", version=old, after=first["next_cursor"])
    assert [first["results"][0]["path"], *rest] == whole
    assert len(whole) >= 2


def test_search_finds_words_wherever_they_are(books: Any) -> None:
    books.write({
        "/notes/.svc-config/indexes.json": {"glob": "**/*.md", "indexes": [
            {"name": "text", "type": "fulltext", "source": ["text"], "value_type": "text"}]},
        "/notes/a.md": "# Peace\n\nThere was no peace in the house of the Oblonskis.\n",
    })  # fmt: skip
    answer = books.post("/files/search", {"query": "peace"}).json
    assert {row["path"] for row in answer["results"]} == {"/books/ru/war.json", "/notes/a.md"}
    assert answer["total_count"] == 2
    assert answer["has_more"] is False
    hits = {row["path"]: row["matches"] for row in answer["results"]}
    (title,) = hits["/books/ru/war.json"]
    assert title["snippet"] == "War and Peace"
    assert title["highlights"] == [[8, 13]]
    assert title["json_pointer"] == "/title"
    for hit in hits["/notes/a.md"]:
        for start, end in hit["highlights"]:
            assert hit["snippet"][start:end].lower() == "peace"
    narrowed = books.post("/files/search", {"query": "peace", "where": leaf("year", "eq", 1869)}).json
    assert [row["path"] for row in narrowed["results"]] == ["/books/ru/war.json"]
    assert books.post("/files/search", {"query": "peace", "path": "/notes"}).json["total_count"] == 1


def test_search_without_full_text_looks_at_names(http: Any) -> None:
    http.write({"/a/report.txt": "x", "/b/other.txt": "y"})
    answer = http.post("/files/search", {"query": "report"})
    assert answer.status_code == 200, answer.text
    assert answer.json["results"][0]["path"] == "/a/report.txt"


@pytest.mark.parametrize(
    ("where", "members", "field"),
    [
        (leaf("year", "contains", "x"), {}, "year"),
        (leaf("nobody", "eq", 1), {}, "nobody"),
        (leaf("@nothing", "eq", 1), {}, "where.field"),
        (leaf("@score", "gt", 0.5), {}, "where.field"),
        (leaf("year", "resembles", 1), {}, "where.op"),
        ({"field": "year", "op": "eq"}, {}, "where.value"),
        (leaf("year", "eq", 1, threshold=0.5), {}, "where.threshold"),
        (leaf("year", "between", 1), {}, "value2"),
        ([], {"limit": 0}, "limit"),
        ([], {"limit": 1001}, "limit"),
        ([], {"limit": 1.5}, "limit"),
        ([], {"offset": -1}, "offset"),
        ([], {"offset": 100_000}, "offset"),
        ([], {"after": "x"}, "after"),
        ([], {"before": "x"}, "before"),
        ([], {"after": "x", "before": "y"}, "before"),
        ([], {"order_by": [{"field": "nobody"}]}, "nobody"),
        ([], {"order_by": [{"field": "year", "direction": "up"}]}, None),
        ([], {"select": ["@nothing"]}, "select"),
        ([], {"aggregate": {"sum": ["nobody"]}}, "nobody"),
        ([], {"aggregate": {"median": ["year"]}}, None),
        ([], {"explain": "deeply"}, None),
        ([], {"unknown": 1}, None),
        ([], {"version": "nothex"}, None),
    ],
    ids=str,
)
def test_what_cannot_be_answered_is_refused_in_words(
    books: Any, where: Any, members: Any, field: Any
) -> None:
    error = books.refused(where, "/books/ru", **members)
    assert error["code"] == "INVALID_INPUT"
    if field is not None:
        assert error["field"] == field


def test_an_operator_without_its_index_names_what_to_add(books: Any) -> None:
    error = books.refused(leaf("year", "contains", "x"), "/books/ru")
    assert error["field"] == "year"
    assert error["operator"] == "contains"
    assert error["index_type"] == "trigram"
    assert "'contains'" in error["error"]


@pytest.mark.parametrize("path", ["/nowhere", "/.svc-system", "/.system/x", "/books/ru/anna.json/x"])
def test_a_path_that_is_not_there_is_404(books: Any, path: str) -> None:
    assert books.refused([], path, status=404)["code"] == "NOT_FOUND"


def test_unknown_versions_are_404(books: Any) -> None:
    for members in ({"snapshot": "x"}, {"fork": "x"}, {"version": "0" * 64}):
        books.refused([], "/books/ru", status=404, **members)


def test_a_file_that_no_configuration_takes_has_its_virtual_fields(http: Any) -> None:
    http.write(
        {
            "/.svc-config/indexes.json": {"glob": "*.json", "indexes": [{"name": "year", "type": "exact"}]},
            "/d/x.txt": "x",
        }
    )
    version = http.database.head().root.hex()
    for members in ({}, {"version": version}):
        for where in ([], leaf("@extension", "eq", "txt"), leaf("@filename", "contains", "x.t")):
            assert http.paths(where, "/d", **members) == ["/d/x.txt"], (where, members)
        assert http.paths(leaf("year", "eq", 1), "/d", **members) == []
        assert http.paths(leaf("year", "exists", False), "/d", **members) == ["/d/x.txt"]


def test_links_are_followed(books: Any) -> None:
    transaction = books.database.transaction()
    transaction.link(("link",), "/books/ru")
    transaction.commit()
    assert books.paths(leaf("year", "eq", 1878), "/link") == ["/books/ru/anna.json"]


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize(
    "where",
    [
        leaf("@filename", "eq", "Mu\u0308ller.txt"),
        leaf("@path", "prefix", "/n/Mu\u0308"),
        leaf("@filename", "in", ["x", "Mu\u0308ller.txt"]),
        leaf("@filename", "contains", "u\u0308ll"),
        leaf("@filename", "between", "Mu\u0308l", value2="Mu\u0308m"),
    ],
    ids=str,
)
def test_a_name_in_another_unicode_form_is_the_same(http: Any, flushed: bool, where: Any) -> None:
    http.write({"/n/M\u00fcller.txt": "x", "/n/other.txt": "y"})
    if flushed:
        http.finish()
    assert http.paths(where, "/n") == ["/n/M\u00fcller.txt"]


@pytest.mark.parametrize("flushed", [False, True])
def test_configuration_is_no_document_unless_it_is_asked_for(books: Any, flushed: bool) -> None:
    books.write({"/books/ru/.svc-config/indexes.json": {"indexes": []}})
    if flushed:
        books.finish()
    five = sorted(f"/books/ru/{name}.json" for name in ("anna", "gull", "idiot", "notes", "war"))
    for members in ({}, {"version": books.database.head().root.hex()}):
        assert sorted(books.paths([], "/books", **members)) == five
        assert sorted(books.paths({"not": leaf("year", "eq", 0)}, "/", **members)) == five
        assert sorted(books.paths(leaf("@extension", "eq", "json"), "/", **members)) == five
        counted = books.query([], "/books", aggregate={"count": True}, **members)
        assert counted["count"] == 5
        asked = books.paths([], "/books/.svc-config", **members)
        assert asked == ["/books/.svc-config/indexes.json"]
        assert books.paths([], "/books/.svc-config/indexes.json", **members) == asked
    search = books.post("/files/search", {"where": leaf("@filename", "prefix", "i"), "path": "/"})
    assert [row["path"] for row in search.json["results"]] == ["/books/ru/idiot.json"]
