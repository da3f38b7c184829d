"""Searches through the driver: a real database, its index, and the route of queries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from falcon.testing import TestClient
from svc_query.indexing import finish_work

from svc.errors import InvalidInput
from svc_testing import load_with_testing_auth, serve_in_process

PLAIN = {"name": "@filename", "type": "fulltext"}
ENGLISH = {**PLAIN, "language": "english"}
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "common", "common", "common"]


class Searched:
    """A database that is asked by its routes."""

    def __init__(self, app: Any, database: Any) -> None:
        self.client = TestClient(app)
        self.database = database

    def write(self, *paths: str) -> None:
        transaction = self.database.transaction()
        for path in paths:
            transaction.put(tuple(path.split("/")), b"", content_type="text/plain")
        transaction.commit()

    def delete(self, path: str) -> None:
        transaction = self.database.transaction()
        transaction.delete(tuple(path.split("/")))
        transaction.commit()

    def index(self, directory: str, *entries: dict[str, Any]) -> None:
        content = json.dumps({"glob": "**/*", "indexes": list(entries)}).encode()
        transaction = self.database.transaction()
        transaction.put((directory, ".svc-config", "indexes.json"), content, content_type="application/json")
        transaction.commit()

    def ask(self, text: str, path: str = "/", **members: Any) -> Any:
        where = {"field": "@filename", "op": "search", "value": text}
        return self.client.simulate_post("/query", json={"path": path, "where": where, **members})

    def found(self, text: str, path: str = "/", **members: Any) -> list[str]:
        answer = self.ask(text, path, limit=1_000, **members)
        assert answer.status_code == 200, answer.text
        return [row["path"].rpartition("/")[2] for row in answer.json["results"]]

    def finish(self) -> None:
        assert finish_work(self.database)


@pytest.fixture
def searched(tmp_path) -> Iterator[Searched]:
    plugins = load_with_testing_auth("query", "index.fulltext")
    with serve_in_process(tmp_path / "words.svcdb", plugins) as (app, database, _):
        yield Searched(app, database)


def make(count: int) -> list[str]:
    """Files whose words follow from their numbers."""
    return [
        f"docs/d{number % 10}/{number:04} {' '.join(WORDS[number % 7 : number % 7 + 2 + number % 3])}"
        for number in range(count)
    ]


def numbers(names: list[str]) -> list[int]:
    return sorted(int(name[:4]) for name in names)


def test_what_was_written_is_found_before_and_after_a_flush(searched):
    searched.index("docs", PLAIN)
    searched.write(*make(300))
    meant = {
        "alpha beta": [n for n in range(300) if n % 7 == 0],
        "epsil*": [n for n in range(300) if n % 7 <= 4 < n % 7 + 2 + n % 3],
        '"beta gamma" -delta': [n for n in range(300) if n % 7 <= 1 and n % 7 + 2 + n % 3 == 3],
    }
    assert all(meant.values())
    for _ in range(2):
        assert {text: numbers(searched.found(text, "/docs")) for text in meant} == meant
        searched.finish()
    searched.delete("docs/d0/0000 alpha beta")
    searched.write("docs/d1/0300 alpha beta")
    assert numbers(searched.found("alpha beta", "/docs")) == [*meant["alpha beta"][1:], 300]
    assert numbers(searched.found("0300")) == [300]
    assert searched.found("0300", "/docs/d1") == ["0300 alpha beta"]
    assert searched.found("0300", "/docs/d2") == []


def test_the_best_come_first_also_those_that_were_just_written(searched):
    searched.index("docs", PLAIN)
    searched.write(*make(400))
    searched.finish()
    searched.write("docs/rare", "docs/common common common rare")
    assert searched.found("rare", "/docs") == ["rare", "common common common rare"]
    before = searched.found("common OR rare", "/docs")
    assert before[:2] == ["rare", "common common common rare"]
    searched.finish()
    assert searched.found("rare", "/docs") == ["rare", "common common common rare"]
    assert searched.found("common OR rare", "/docs")[:2] == before[:2]


def test_each_directory_has_its_own_words(searched):
    searched.index("plain", PLAIN)
    searched.index("english", ENGLISH)
    searched.write("plain/p foxes jumping", "english/e foxes jumping")
    for _ in range(2):
        assert sorted(searched.found("foxes jumping")) == ["e foxes jumping", "p foxes jumping"]
        assert searched.found("fox jumps") == ["e foxes jumping"]
        assert searched.found("fox jumps", "/english") == ["e foxes jumping"]
        assert searched.found("fox jumps", "/plain") == []
        searched.finish()


def test_a_search_that_can_not_be_read_is_refused_with_its_place(searched):
    searched.index("docs", PLAIN)
    searched.write(*make(3))
    answer = searched.ask('alpha "beta', "/docs")
    assert (answer.status_code, answer.json["code"], answer.json["position"]) == (400, "INVALID_INPUT", 6)


def test_a_bad_language_is_refused_when_the_configuration_is_stored(searched):
    with pytest.raises(InvalidInput):
        searched.index("docs", {**PLAIN, "language": "klingon"})


def test_the_best_of_a_file_alone_are_found_although_it_has_no_term_of_its_own(searched, monkeypatch):
    from svc_index_fulltext.layout import directory_key
    from svc_query.executing import ranked

    searched.index("a", PLAIN)
    searched.write(*(f"a/b{number % 3}/common {number}.txt" for number in range(40)))
    searched.finish()
    monkeypatch.setattr(ranked, "_parts", lambda matching: matching.scope.parts)
    assert searched.found("common", "/a/b1/common 7.txt") == ["common 7.txt"]
    assert len(searched.found("common", "/a/b1")) == 13
    assert directory_key(("a", "b1")) != directory_key(("a", "b1", "common 7.txt"))


def test_equally_good_files_come_in_the_order_of_their_paths(searched):
    names = [f"a/{number % 5}/common word {number:03}.txt" for number in range(300)]
    searched.index("a", PLAIN)
    searched.write(*names)
    searched.finish()
    expected = [name.rpartition("/")[2] for name in sorted(names)]
    answer = searched.ask("common word", limit=25)
    found = [row["path"].rpartition("/")[2] for row in answer.json["results"]]
    assert found == expected[:25]
    assert answer.json["has_more"]
    second = searched.ask("common word", limit=25, after=answer.json["next_cursor"])
    assert [row["path"].rpartition("/")[2] for row in second.json["results"]] == expected[25:50]
