"""``svc query``, ``svc search`` and ``svc index``, against a file and against a server that has it open."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from svc_query.models import QueryBody, SearchBody, StatusQuery
from svc_query.operations import query_files, search_files, show_index_status
from svc_query.syntax import FilterSyntaxError, parse_filter

from svc.plugin import Database
from svc_cli import main
from svc_client import Client
from svc_testing import Server, start_server

PLUGINS = "files,history,versions,users,query,parsers,index.exact,index.trigram,index.fulltext,index.phonetic"
BOOKS = {
    "war": {"title": "War and Peace", "author": "Leo Tolstoy", "year": 1869, "tags": ["russian", "long"],
            "text": "Well, Prince, so Genoa and Lucca are now just family estates of the Buonapartes."},
    "warden": {"title": "The Warden", "author": "Anthony Trollope", "year": 1855, "tags": ["english"],
               "text": "The Reverend Septimus Harding was, a few years since, a beneficed clergyman."},
    "idiot": {"title": "The Idiot", "author": "Fyodor Dostoevsky", "year": 1869, "tags": ["russian"],
              "text": "Towards the end of November, at nine o'clock in the morning, a prince came by train."},
    "evil": {"title": "\x1b[31mred\x07", "author": None, "year": 2000, "tags": [],
             "text": "a \x1b[2J prince of \u202eevil"},
}  # fmt: skip
CONFIGURATION = {
    "glob": "*.json",
    "indexes": [
        {"name": "title", "type": ["exact", "trigram"]},
        {"name": "author", "type": ["exact", "trigram", "phonetic"]},
        {"name": "year", "type": "exact", "value_type": "integer"},
        {"name": "tags", "type": "exact", "source": ["tags", ""]},
        {"name": "text", "type": "fulltext", "value_type": "text"},
    ],
}
Run = Callable[..., str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on a database with some books."""
    path = tmp_path_factory.mktemp("commands") / "x.svcdb"
    with start_server(path, plugins=tuple(PLUGINS.split(","))) as server:
        with Database(path) as database, database.transaction() as transaction:
            put = transaction.put
            put(
                ("books", ".svc-config", "indexes.json"),
                encoded(CONFIGURATION),
                content_type="application/json",
            )
            for name, book in BOOKS.items():
                put(("books", f"{name}.json"), encoded(book), content_type="application/json")
        yield server


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.fixture(params=["file", "server"])
def run(
    request: pytest.FixtureRequest,
    served: Server,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Runs a command; returns what it printed, or what it said when it failed."""
    monkeypatch.setenv("SVC_PLUGINS", PLUGINS)
    monkeypatch.setenv("TZ", "UTC")
    where = str(served.database_path) if request.param == "file" else served.url

    def run_command(*words: str, check: int = 0) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*words, "-D", where])
        out, err = capsys.readouterr()
        assert (ended.value.code or 0) == check, (out, err)
        return out if check == 0 else err

    return run_command


def paths(output: str) -> list[str]:
    return [line.split()[0] for line in output.splitlines()]


def test_a_query_prints_a_line_for_each_file(run: Run) -> None:
    assert paths(run("query", "/books", 'year < 1860 and title ~ "war"')) == ["/books/warden.json"]
    assert paths(run("query", "/books", "year = 1869")) == ["/books/idiot.json", "/books/war.json"]
    found = run("query", "/books", 'author fuzzy "Tolstoi" (1)', "--select", "title,author,@size")
    assert found.startswith("War and Peace  Leo Tolstoy  ")
    assert "0.929" in run("query", "/books", 'author fuzzy "Leo Tolstoi" (1)') or "0.9" in run(
        "query", "/books", 'author fuzzy "Leo Tolstoi" (1)'
    )
    assert run("query", "/books", "year = 3000") == ""


def test_json_and_csv_are_what_programs_read(run: Run) -> None:
    found = json.loads(run("query", "/books", "year = 1869", "--json", "--order", "title:desc"))
    assert [row["path"] for row in found["results"]] == ["/books/war.json", "/books/idiot.json"]
    assert found["has_more"] is False
    rows = list(
        csv.DictReader(
            run("query", "/books", "year > 0", "--csv", "--select", "title,year,tags").splitlines()
        )
    )
    assert {row["year"] for row in rows} == {"1869", "1855", "2000"}
    assert {row["tags"] for row in rows} >= {'["russian", "long"]', "english", ""}


def test_all_pages_come_with_no_limit(run: Run) -> None:
    whole = run("query", "/books", "year > 0", "-n", "0")
    assert len(whole.splitlines()) == 4
    assert len(run("query", "/books", "year > 0", "-n", "2").splitlines()) == 2
    assert run("query", "/books", "year > 0", "-n", "0", "--offset", "1") == "\n".join(whole.split("\n")[1:])


def test_counts_sums_and_groups(run: Run) -> None:
    assert run("query", "/books", "year > 0", "--count") == "4\n"
    sums = list(
        csv.DictReader(
            run("query", "/books", "year > 0", "--min", "year", "--max", "year", "--csv").splitlines()
        )
    )
    assert sums == [{"min(year)": "1855", "max(year)": "2000"}]
    groups = run("query", "/books", "year > 0", "--group-by", "year", "--csv").splitlines()
    assert groups == ["year,count", "1855,1", "1869,2", "2000,1"]
    by_tag = json.loads(run("query", "/books", "tags exists", "--group-by", "tags", "--json"))
    assert {group["key"]["tags"]: group["count"] for group in by_tag["groups"]} == {
        "russian": 2,
        "long": 1,
        "english": 1,
    }


def test_nothing_that_a_file_holds_reaches_the_terminal_as_it_is(run: Run) -> None:
    for output in (
        run("query", "/books", "year = 2000", "--select", "title,text"),
        run("search", "prince"),
        run("index", "suggest", "/books"),
    ):
        assert output
        assert not {"\x1b", "\x07", "\u202e"} & set(output)


def test_a_plan_is_a_tree(run: Run) -> None:
    lines = run("query", "/books", 'year > 0 and not title ~ "war"', "--explain").splitlines()
    assert lines[0].startswith("query ")
    assert any(line.strip().startswith("gt year by ") for line in lines)
    analyzed = run("query", "/books", "year > 0", "--explain", "analyze")
    assert " ms" in analyzed
    assert "4 rows" in analyzed


def test_an_error_of_the_language_has_a_caret(run: Run) -> None:
    told = run("query", "/books", "year > and", check=2)
    assert told.startswith("svc: Expected a value")
    assert told.splitlines()[1:] == ["  year > and", "         ^"]
    as_json = json.loads(run("query", "/books", "year >", "--json", check=2))
    assert as_json["code"] == "INVALID_INPUT"
    assert "\n" not in as_json["error"]


def test_what_can_not_be_asked_is_refused_in_words(run: Run) -> None:
    assert "fulltext" in run("query", "/books", 'title search "war"', check=2)
    run("query", "/nowhere", "year > 1", check=3)
    run("query", "/books", "--where", "{", check=2)
    run("query", "/books", "--csv", "--json", check=2)
    run("query", "/books", "--order", "year:up", check=2)
    run("query", "/books", "year > 0", "--snapshot", "none", check=3)


def test_the_filter_can_be_shown_as_json(run: Run) -> None:
    shown = json.loads(run("query", "/books", "year > 1", "--show-json"))
    assert shown == {"field": "year", "op": "gt", "value": 1}
    assert paths(run("query", "/books", "--where", json.dumps(shown), "-n", "1")) == ["/books/evil.json"]


def test_an_older_version_is_asked_without_indexes(run: Run, served: Server) -> None:
    with Database(served.database_path) as database:
        version = database.head().root.hex()
    assert paths(run("query", "/books", "year = 1855", "--version", version)) == ["/books/warden.json"]


def test_a_search_shows_what_was_found(run: Run) -> None:
    lines = run("search", "prince", "--path", "/books").splitlines()
    assert {line.split()[0] for line in lines if line.startswith("/")} == {
        "/books/war.json",
        "/books/idiot.json",
        "/books/evil.json",
    }
    assert any(line.startswith("  text: ") and "Prince" in line for line in lines)
    assert paths(run("search", "prince", "-n", "1", "--where", "year > 1900"))[0] == "/books/evil.json"
    assert json.loads(run("search", '"so Genoa"', "--json"))["total_count"] == 1


def test_the_status_says_what_is_indexed(run: Run) -> None:
    shown = run("index", "status", "/books")
    assert "/books" in shown
    assert "title (exact+trigram)" in shown
    assert any(line.split()[:2] == ["text", "fulltext"] for line in shown.splitlines())
    document = json.loads(run("index", "status", "/books", "--json"))
    assert {one["field"] for one in document["indexes"]} >= {"title", "author", "year", "tags", "text"}


def test_the_fields_of_a_file_are_shown_with_their_origin(run: Run) -> None:
    lines = [line.split() for line in run("index", "show", "/books/war.json").splitlines()]
    assert lines[0] == ["FIELD", "TYPES", "VALUES", "SOURCE", "FILES", "FROM"]
    assert ["year", "exact", "integer", "*.json", "/books"] in lines
    assert "default" in run("index", "show", "/elsewhere")


def test_a_rebuild_gives_the_same_answers(run: Run) -> None:
    run("index", "rebuild", "/books")
    assert paths(run("query", "/books", "year = 1855")) == ["/books/warden.json"]
    run("index", "rebuild", "/nowhere", check=3)


def test_a_proposal_is_one_that_can_be_stored(run: Run, served: Server) -> None:
    proposed = json.loads(run("index", "suggest", "/books"))
    assert proposed["glob"] == "**/*.json" or proposed["glob"] == "*.json"
    assert {entry["name"] for entry in proposed["indexes"]} >= {"title", "year", "author"}
    told = json.loads(run("index", "suggest", "/books", "--json"))
    assert {reason["field"] for reason in told["reasons"]} >= {"title", "year"}
    run("index", "suggest", "/books", "--write", check=4)
    run("index", "suggest", "/empty", check=3)
    with Database(served.database_path) as database, database.transaction() as transaction:
        for name, book in BOOKS.items():
            transaction.put(("more", name + ".json"), encoded(book), content_type="application/json")
        if database.at().get(("more", ".svc-config")) is not None:
            transaction.delete(("more", ".svc-config"), recursive=True)
    run("index", "suggest", "/more", "--write")
    assert paths(run("query", "/more", "year = 1855")) == ["/more/warden.json"]


def test_the_sample_for_programs_runs(served: Server, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
    (sample,) = re.findall(r"^```py\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    with Client(served.url) as client:
        exec(compile(sample.replace("> 1990", "> 1860"), "client.md", "exec"), {"client": client})
        printed = capsys.readouterr().out
        assert printed.startswith("/books/war.json 1.0\n0\n")
        body = QueryBody(path="/books", where=parse_filter("year > 0"), limit=2, include_total=True)
        page = client.call(query_files, body)
        assert (page.has_more, page.total_count, len(page.results)) == (True, 4, 2)
        assert len(list(client.items(query_files, body))) == 4
        assert client.call(show_index_status, StatusQuery(path="/books")).documents >= 4
        where = parse_filter("year < 1900")
        found = client.call(search_files, SearchBody(query="prince", path="/books", where=where)).results
        assert {row["path"] for row in found} == {"/books/war.json", "/books/idiot.json"}
        assert found[0]["matches"][0]["snippet"]
        with pytest.raises(FilterSyntaxError):
            parse_filter("year >")
