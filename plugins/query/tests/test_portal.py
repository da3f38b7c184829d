"""The page of searches: names and contents, types, pages, requests as JSON, plans, what is not indexed."""

from __future__ import annotations

import html
import json
import re
import shlex
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from falcon.testing import TestClient
from svc_portal.testing import OWN_FORM, PortalPageContract
from svc_query.indexing import finish_work
from svc_query.portal import search
from svc_query.portal.building import BuilderPage
from svc_query.portal.indexes import IndexesPage
from svc_query.portal.search import SearchPage
from svc_query.saving import SEARCH_TYPE
from svc_query.syntax import parse_filter

from svc.plugin import Database, Identity
from svc_testing import PathRights

HOSTILE = "<img src=x onerror=alert(1)>\"'.txt"
INDEXES = {"glob": "**/*", "indexes": [{"name": "text", "type": "fulltext"}]}
USER = "00000000-0000-0000-0000-000000000009"


def asked(**members: Any) -> str:
    return urlencode({"body": json.dumps(members)})


class TestSearchPage(PortalPageContract):
    plugin_id = "query"
    beside = ("files", "index.trigram", "index.exact", "index.fulltext", "parsers")
    is_for_everyone = True
    urls = (
        "search",
        "search?q=whale",
        "search?q=whale&explain=1",
        "search?q=&type=text/plain",
        "search?q=whale&since=day&path=/books",
        "search?q=whale&path=/nowhere",
        "search?q=%22&offset=99999999999",
        "search?q=" + quote(HOSTILE),
    )
    forms = (
        ("search", asked(query="whale")),
        ("search", asked(path="/", where=[], aggregate={"group_by": ["@extension"]})),
        ("search", "body=%7B"),
    )

    def fill(self, database: Database) -> None:
        self.database = database
        with database.transaction() as changes:
            for number in range(30):
                changes.put(
                    ("books", f"{number:02}.txt"), b"Call me Ishmael. A whale.", content_type="text/plain"
                )
            changes.put(("books", HOSTILE), b"<script>whale</script>", content_type="text/plain")
            changes.put(("whale.json",), b'{"text": "Ishmael"}', content_type="application/json")

    @pytest.fixture
    def extension(self) -> SearchPage:
        return SearchPage()

    def test_words_are_found_in_names_where_no_contents_are_indexed(
        self, served: tuple[TestClient, Any]
    ) -> None:
        text = served[0].simulate_get("/portal/search?q=whale").text
        assert 'href="/portal/files/whale.json"' in text
        assert "No contents of files are indexed here" in text
        assert "svc index suggest / --write" in text

    def test_contents_are_found_with_what_matched_marked(self, indexed: TestClient) -> None:
        text = indexed.simulate_get("/portal/search?q=whale&path=/books").text
        assert "A <mark>whale</mark>." in text
        assert "31 files" in text
        assert 'rel="next"' in text
        second = indexed.simulate_get("/portal/search?q=whale&path=/books&offset=25").text
        assert second.count('<li>\n<p><a href="/portal/files/books/') == 6
        assert 'rel="next"' not in second

    def test_types_are_filters_with_how_many_they_have(self, indexed: TestClient) -> None:
        text = indexed.simulate_get("/portal/search?q=whale OR ishmael").text
        assert 'type=text%2Fplain">text/plain</a> <span class="hint">31<' in text
        assert "type=application%2Fjson" in text
        narrowed = indexed.simulate_get("/portal/search?q=whale OR ishmael&type=application/json").text
        assert "1 file<" in narrowed

    def test_the_request_can_be_changed_as_json(self, indexed: TestClient) -> None:
        def ask(text: str) -> str:
            return str(indexed.simulate_post("/portal/search", body=text, headers=OWN_FORM).text)

        groups = ask(asked(path="/", where=[], aggregate={"group_by": ["@extension"]}))
        assert '<span class="hint">count:</span> 31' in groups
        page = ask(asked(path="/books", where=[], limit=7))
        assert page.count('<a href="/portal/files/books/') == 7
        assert "&#34;after&#34;:" in page
        assert "no request" in ask("body=%7B%22query%22%3A1%7D")
        assert "between takes value and value2" in ask(
            asked(path="/", where=[{"field": "@size", "op": "between", "value": 1}])
        )

    def test_a_plan_is_a_tree(self, indexed: TestClient) -> None:
        text = indexed.simulate_get("/portal/search?q=whale&since=day&explain=1").text
        assert "<code>and</code>" in text
        assert "by the index fulltext" in text
        assert '<rect class="box"' in text
        assert text.count('<rect class="time"') == text.count('<rect class="box"')

    def test_directories_and_times_are_filters_too(self, indexed: TestClient) -> None:
        text = indexed.simulate_get("/portal/search?since=year").text
        assert 'since=year">books</a> <span class="hint">31<' in text
        assert 'since=day">the last day</a> <span class="hint">32<' in text

    def test_where_very_many_match_nothing_is_counted(
        self, indexed: TestClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(search, "_MOST_COUNTED", 31)
        text = indexed.simulate_get("/portal/search?since=year").text
        assert "More than 31 files match" in text
        assert "the last day</a>" not in text
        assert "the last day</a>" in indexed.simulate_get("/portal/search?q=whale&path=/books").text

    def test_the_last_word_is_a_beginning_while_it_is_typed(self, indexed: TestClient) -> None:
        assert "Nothing was found" in indexed.simulate_get("/portal/search?q=ishma").text
        typed = indexed.simulate_get("/portal/search?q=ishma&typing=1").text
        assert "<mark>Ishmael</mark>" in typed
        assert "typing" not in typed.partition('<div id="results">')[2].partition("<details")[0]

    def test_mail_is_shown_as_its_parser_reads_it(self, indexed: TestClient) -> None:
        mail = b"From: ann@example.com\r\nSubject: <b>Hello</b>\r\n\r\nDear <i>Bob</i>\r\n"
        headers = {"Content-Type": "message/rfc822"}
        assert indexed.simulate_put("/files/a.eml", body=mail, headers=headers).status_code == 201
        page = indexed.simulate_get("/portal/files/a.eml").text
        preview = page.partition('<section aria-label="Preview">')[2]
        assert "<dd>&lt;b&gt;Hello&lt;/b&gt;</dd>" in preview
        assert "Dear &lt;i&gt;Bob&lt;/i&gt;" in preview
        assert "Subject:" not in preview

    def test_a_search_is_explained_and_counted_by_its_operation(self, indexed: TestClient) -> None:
        headers = {"Content-Type": "application/json"}
        body = {
            "query": "whale OR ishmael",
            "aggregate": {"group_by": ["@content_type"]},
            "explain": "analyze",
        }
        answer = indexed.simulate_post("/files/search", body=json.dumps(body), headers=headers).json
        assert [group["count"] for group in answer["groups"]] == [1, 31]
        assert answer["plan"]["strategy"] == "aggregate"
        assert "results" not in answer

    def test_who_may_read_a_part_finds_and_counts_that_part(
        self, indexed: TestClient, served: tuple[TestClient, Any]
    ) -> None:
        rights = PathRights({"/books/00.txt": "rl"})
        served[1].identity = Identity(user_id=USER, name="reader", rights=rights)
        text = indexed.simulate_get("/portal/search?q=whale OR ishmael").text
        assert "1 file<" in text
        assert "/books/01.txt" not in text
        assert "application/json" not in text

    @pytest.fixture
    def indexed(self, served: tuple[TestClient, Any]) -> TestClient:
        client, _ = served
        headers = {"Content-Type": "application/json"}
        stored = client.simulate_put(
            "/files/.svc-config/indexes.json", body=json.dumps(INDEXES), headers=headers
        )
        assert stored.status_code < 300, stored.text
        assert finish_work(self.database)
        return client


class TestBuilderPage(PortalPageContract):
    plugin_id = "query"
    beside = ("files", "index.exact", "index.trigram", "index.fulltext", "parsers")
    is_for_everyone = True
    urls = (
        "search/build",
        "search/build?field-0=@size&op-0=%3E&value-0=10MiB",
        "search/build?expression=title+is+nonsense",
        "search/build?expression=%28&path=/nowhere",
    )
    forms = (("search/build", urlencode({"action": "save", "body": "{}", "name": "/kept.json"})),)

    def fill(self, database: Database) -> None:
        with database.transaction() as changes:
            changes.put(("books", "whale.txt"), b"A whale.", content_type="text/plain")

    @pytest.fixture
    def extension(self) -> BuilderPage:
        return BuilderPage()

    def test_rows_become_a_filter_for_the_shell_and_as_json(self, served: tuple[TestClient, Any]) -> None:
        rows = [
            ("@filename", "~", 'it\'s "a" \\ 5'),
            ("and", "=", "5"),
            ("@updated_at", ">=", "2026-03-01"),
            ("title", "!~", "7"),
            ("no blank` here", "exists", "unused"),
        ]
        fields = {
            f"{name}-{number}": value
            for number, row in enumerate(rows)
            for name, value in zip(("field", "op", "value"), row, strict=True)
        }
        page = served[0].simulate_get(f"/portal/search/build?{urlencode({**fields, 'path': '/books'})}").text
        command = html.unescape(re.findall(r'aria-label="Command">([^<]*)<', page)[0])
        program, verb, path, expression = shlex.split(command)
        assert (program, verb, path) == ("svc", "query", "/books")
        made = json.loads(html.unescape(re.findall(r'name="body" value="([^"]*)"', page)[0]))
        assert made["where"] == parse_filter(expression)
        leaves = made["where"]["and"]
        assert leaves[0] == {"field": "@filename", "op": "contains", "value": 'it\'s "a" \\ 5'}
        assert leaves[1] == {"field": "and", "op": "eq", "value": 5}
        assert leaves[2]["op"] == "gte"
        assert leaves[3] == {"not": {"field": "title", "op": "contains", "value": "7"}}
        assert leaves[4] == {"field": "no blank` here", "op": "exists", "value": True}
        read = served[0].simulate_get(f"/portal/search/build?{urlencode({'expression': expression})}").text
        assert (
            json.loads(html.unescape(re.findall(r'name="body" value="([^"]*)"', read)[0]))["where"]
            == made["where"]
        )

    def test_a_search_is_saved_as_a_file_and_found_again(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        form = urlencode(
            {"action": "save", "name": "/kept/mine.json", "body": json.dumps({"path": "/books", "where": []})}
        )
        saved = client.simulate_post("/portal/search/build", body=form, headers=OWN_FORM)
        assert saved.headers["location"] == "/portal/files/kept/mine.json"
        assert (
            'href="/portal/files/kept/mine.json">/kept/mine.json</a>'
            in client.simulate_get("/portal/search").text
        )
        page = client.simulate_get("/portal/files/kept/mine.json").text
        body = html.unescape(re.findall(r'name="body" value="([^"]*)"', page)[0])
        found = client.simulate_post("/portal/search", body=urlencode({"body": body}), headers=OWN_FORM).text
        assert 'href="/portal/files/books/whale.txt"' in found
        assert client.simulate_get("/files/kept/mine.json").headers["content-type"] == SEARCH_TYPE

    @pytest.mark.parametrize(
        ("path", "said", "status"),
        [
            ("/books", {}, 409),
            ("/", {}, 400),
            ("/x/", {}, 400),
            ("/.svc-system/x", {}, 404),
            ("/x", {"query": 1}, 400),
            ("/x", {"path": "/", "where": []}, 201),
        ],
    )
    def test_what_is_saved_is_a_request_at_the_path_of_a_file(
        self, served: tuple[TestClient, Any], path: str, said: dict[str, Any], status: int
    ) -> None:
        body = json.dumps({"path": path, "request": said})
        headers = {"Content-Type": "application/json"}
        answer = served[0].simulate_post("/query/searches", body=body, headers=headers)
        assert answer.status_code == status, answer.text

    def test_saving_needs_the_right_to_create_there(self, served: tuple[TestClient, Any]) -> None:
        client, mode = served
        mode.identity = Identity(user_id=USER, name="reader", rights=PathRights({"/books": "rl"}))
        body = json.dumps({"path": "/books/x.json", "request": {}})
        headers = {"Content-Type": "application/json"}
        answer = client.simulate_post("/query/searches", body=body, headers=headers)
        assert answer.status_code == 403


class TestIndexesPage(PortalPageContract):
    plugin_id = "query"
    beside = ("files", "index.exact", "index.trigram", "index.fulltext", "parsers")
    is_for_everyone = True
    urls = ("search/indexes", "search/indexes?path=/books", "search/indexes?path=/nowhere")
    forms = (("search/indexes", urlencode({"action": "store", "path": "/books", "configuration": "{"})),)

    def fill(self, database: Database) -> None:
        self.database = database
        with database.transaction() as changes:
            for number in range(5):
                content = json.dumps({"title": f"A book {number}", "year": 1900 + number}).encode()
                changes.put(("books", f"{number}.json"), content, content_type="application/json")

    @pytest.fixture
    def extension(self) -> IndexesPage:
        return IndexesPage()

    def test_a_proposal_is_made_stored_and_followed(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        page = client.simulate_get("/portal/search/indexes?path=/books&suggest=1").text
        assert "A proposal for /books" in page
        assert "<dt>year</dt>" in page
        text = html.unescape(re.findall(r"<textarea[^>]*>\n([^<]*)</textarea>", page)[0])
        assert {"title", "year"} <= {entry["name"] for entry in json.loads(text)["indexes"]}
        form = urlencode({"action": "store", "path": "/books", "configuration": text})
        stored = client.simulate_post("/portal/search/indexes", body=form, headers=OWN_FORM)
        assert stored.headers["location"] == "/portal/search/indexes?path=%2Fbooks"
        assert json.loads(client.simulate_get("/files/books/.svc-config/indexes.json").text) == json.loads(
            text
        )
        finish_work(self.database)
        assert '<th scope="row">year</th>' in client.simulate_get("/portal/search/indexes?path=/books").text

    def test_a_configuration_that_is_not_good_is_refused(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        body = json.dumps(
            {"path": "/books", "configuration": {"indexes": [{"name": "x", "type": "nonsense"}]}}
        )
        headers = {"Content-Type": "application/json"}
        refused = client.simulate_post("/query/configuration", body=body, headers=headers)
        assert refused.status_code == 400
        assert client.simulate_get("/files/books/.svc-config/indexes.json").status_code == 404

    def test_who_may_only_read_is_offered_no_form(self, served: tuple[TestClient, Any]) -> None:
        client, mode = served
        mode.identity = Identity(user_id=USER, name="reader", rights=PathRights({"/books": "crudl"}))
        page = client.simulate_get("/portal/search/indexes?path=/books&suggest=1").text
        assert "<textarea" not in page
        body = json.dumps({"path": "/books", "configuration": {"indexes": []}})
        headers = {"Content-Type": "application/json"}
        answer = client.simulate_post("/query/configuration", body=body, headers=headers)
        assert answer.status_code == 403
