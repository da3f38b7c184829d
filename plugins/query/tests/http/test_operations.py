"""The contract of operations, for those of queries; and what the OpenAPI document says of a filter."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from svc_query.indexing import finish_work
from svc_query.models import (
    AggregateBody,
    FilterBody,
    IndexConfigurationBody,
    OrderBody,
    QueryAnswer,
    QueryBody,
    RebuildBody,
    SaveSearchBody,
    SearchBody,
    StatusQuery,
)
from svc_query.operations import (
    configure_index,
    query_files,
    rebuild_index,
    save_search,
    search_files,
    show_index_status,
)

from svc.errors import Conflict, NotFound
from svc.plugin import Database
from svc.plugins import Plugins
from svc_testing import OperationsContract, Teller, load_with_testing_auth

from .conftest import BOOKS, INDEXES, PLUGINS  # noqa: TID252

OLD = FilterBody(field="year", op="lt", value=1870)
TITLED = FilterBody(and_=[FilterBody(field="title", op="contains", value="an"), FilterBody(not_=OLD)])


class TestOperations(OperationsContract):
    plugin_id = "query"

    @pytest.fixture(scope="class")
    @classmethod
    def plugins(cls) -> Plugins:
        """With indexes to ask."""
        return load_with_testing_auth(*PLUGINS)

    def prepare(self, database: Database) -> None:
        files = {f"{name}.json": book for name, book in BOOKS.items()}
        with database.transaction() as transaction:
            transaction.put(("books", ".svc-config", "indexes.json"), json.dumps(INDEXES).encode())
            for name, book in files.items():
                content = json.dumps(book).encode()
                transaction.put(("books", name), content, content_type="application/json")
            transaction.put(("books", "broken.json"), b"{no", content_type="application/json")
        finish_work(database)

    def story(self, call: Teller) -> None:
        assert len(call(query_files, QueryBody(path="/books", where=OLD)).results) == 3
        assert [
            row["path"] for row in call(query_files, QueryBody(path="/books", where=[TITLED])).results
        ] == ["/books/anna.json"]
        by_year = [OrderBody("year", "desc")]
        page = call(query_files, QueryBody(path="/books", where=[], order_by=by_year, limit=2))
        call(
            query_files, QueryBody(path="/books", where=[], order_by=by_year, limit=2, after=page.next_cursor)
        )
        call(query_files, QueryBody(path="/books", where=OLD, include_total=True, include_matches=True))
        call(query_files, QueryBody(path="/books", where=[], select=["year", "@hash"]))
        for explain in ("plan", "analyze"):
            call(query_files, QueryBody(path="/books", where=TITLED, explain=explain))
        sums = AggregateBody(count=True, sum=["year"], avg=["price"], min=["year"], max=["year"])
        call(query_files, QueryBody(path="/books", where=[], aggregate=sums))
        groups = AggregateBody(group_by=["author"])
        call(query_files, QueryBody(path="/books", where=[], aggregate=groups, include_total=True))
        call.refused(NotFound, query_files, QueryBody(path="/none", where=[]))
        assert call(search_files, SearchBody(query="war", path="/books")).results[0]["matches"]
        call.refused(NotFound, search_files, SearchBody(query="war", path="/none"))
        assert call(show_index_status, StatusQuery(path="/books")).failures[0].path == "/books/broken.json"
        call.refused(NotFound, show_index_status, StatusQuery(path="/none"))
        call(rebuild_index, RebuildBody("/books"))
        call.refused(NotFound, rebuild_index, RebuildBody("/none"))
        assert call(save_search, SaveSearchBody("/kept/war.json", {"query": "war"})).created
        assert not call(save_search, SaveSearchBody("/kept/war.json", {"query": "peace"})).created
        call.refused(Conflict, save_search, SaveSearchBody("/books", {"query": "war"}))
        call.refused(NotFound, save_search, SaveSearchBody("/.svc-system/x", {"query": "war"}))
        names = {"glob": "*", "indexes": [{"name": "@filename", "type": "exact"}]}
        assert call(configure_index, IndexConfigurationBody("/kept", names)).path.endswith("/indexes.json")
        call.refused(NotFound, configure_index, IndexConfigurationBody("/.svc-system", names))
        call(save_search, SaveSearchBody("/odd/.svc-config/indexes.json/x", {"query": "war"}))
        call.refused(Conflict, configure_index, IndexConfigurationBody("/odd", names))


def test_an_answer_is_shown_in_the_order_of_the_server(books: Any) -> None:
    answer = books.query([], "/books", limit=2, offset=1)
    assert list(msgspec.to_builtins(msgspec.convert(answer, QueryAnswer))) == list(answer)


def test_a_filter_is_described(http: Any) -> None:
    schemas = http.get("/system/openapi.json").json["components"]["schemas"]
    reference = {"$ref": "#/components/schemas/FilterBody"}
    where = schemas["QueryBody"]["properties"]["where"]
    assert where["type"] == ["object", "array"]
    assert reference in where["anyOf"]
    assert {"type": "array", "items": reference} in where["anyOf"]
    members = schemas["FilterBody"]["properties"]
    assert {"field", "op", "value", "value2", "threshold", "fuzziness", "algorithm", "and", "or"} < set(
        members
    )
    assert members["not"]["$ref"] == reference["$ref"]
    assert "default_limit_hit" in schemas["QueryAnswer"]["properties"]


@pytest.mark.parametrize("where", [3, "year", [[]], {"and": {}}, {"field": 1, "op": "eq"}, {"op": "eq"}])
def test_what_is_no_filter_is_refused_in_the_words_of_filters(books: Any, where: Any) -> None:
    error = books.refused(where, "/books")
    assert error["field"].startswith("where")
    assert "Expected" not in error["error"], "msgspec's words"


def test_filters_of_programs_are_sent_as_they_read() -> None:
    body = msgspec.to_builtins(QueryBody(path="/", where=TITLED))
    assert body["where"]["and"][1] == {"not": {"field": "year", "op": "lt", "value": 1870}}
