"""A change of an ``indexes.json`` reaches the files that it is for, and reads only what must be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path as FilePath
from types import SimpleNamespace
from typing import Any

import pytest
from svc_query.index_configuration import parse_configuration
from svc_query.indexing import IndexesCheck, applying, rebuild, view
from svc_query.snapshot import VIRTUAL_FIELDS
from svc_query.testing.indexed_database import Indexed, JsonHere, Source, Words

from svc.errors import InvalidInput, ServiceUnavailable
from svc.plugin import Database, PluginContext

TITLE = {"name": "title", "type": "exact"}
YEAR = {"name": "year", "type": "exact", "value_type": "integer"}


class Counted(JsonHere):
    """Counts what it reads."""

    def __init__(self) -> None:
        self.count = 0

    def parse(self, content: Any, source: Any) -> Any:
        self.count += 1
        return super().parse(content, source)


@pytest.fixture
def parser(source: Source) -> Counted:
    counted = Counted()
    source.parsers["json"] = counted
    source.use()
    return counted


@pytest.mark.parametrize("at_once", [0, 500])
def test_a_new_configuration_reaches_the_files_below_it(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(applying, "SMALL_DIRECTORY", at_once)
    indexed.put({f"/b/{number}.json": {"title": f"t{number}"} for number in range(20)})
    assert len(indexed.contents()) == 20
    indexed.configure("/b", TITLE)
    if not at_once:
        progress = indexed.read(lambda snapshot: snapshot.progress(("b", "0.json")))
        assert progress.total == 21
        assert indexed.read(lambda snapshot: snapshot.progress(("c",))) is None
        assert "title" not in indexed.contents()["/b/3.json"]
        indexed.finish()
    assert indexed.contents()["/b/3.json"]["title"] == ["t3"]
    assert indexed.read(lambda snapshot: snapshot.progress(())) is None
    indexed.put({"/b/.svc-config/indexes.json": None})
    indexed.finish()
    assert "title" not in indexed.contents()["/b/3.json"]


def test_only_what_must_be_read_is_read_again(indexed: Indexed, parser: Counted) -> None:
    long = "word " * 500
    indexed.configure("/", TITLE, YEAR)
    indexed.put({f"/{number}.json": {"title": long, "year": number, "new": 1} for number in range(10)})
    indexed.contents()
    read = parser.count
    indexed.configure("/", TITLE, {**YEAR, "type": ["exact", "names"]})
    assert indexed.contents()["/7.json"]["year"] == [7]
    assert indexed.contents()["/7.json"]["title"] == [long]
    assert parser.count == read
    indexed.configure("/", TITLE, YEAR, {"name": "new", "type": "exact"})
    assert indexed.contents()["/7.json"]["new"] == [1]
    assert parser.count == read + 10
    with indexed.database.transaction() as transaction:
        transaction.put(("7.json",), b'{"title": "x"}', content_type="application/json")
    assert indexed.contents()["/7.json"]["title"] == ["x"]
    assert parser.count == read + 11


def test_the_nearest_configuration_decides_for_each_field(indexed: Indexed) -> None:
    indexed.configure("/", TITLE, {"name": "@path", "type": "exact"})
    indexed.configure("/a", {"name": "title", "type": "exact", "source": ["other"]}, glob="**/*.json")
    indexed.configure("/a/own", YEAR, glob=None)
    value = {"title": "t", "other": "o", "year": 3}
    indexed.put(
        dict.fromkeys(("/x.json", "/a/x.json", "/a/x.data", "/a/own/x.json", "/a/own/d/x.json"), value)
    )
    found = indexed.contents()
    fields = {path: {name: one for name, one in row.items() if name[0] != "@"} for path, row in found.items()}
    assert fields["/x.json"] == {"title": ["t"]}
    assert fields["/a/x.json"] == {"title": ["o"]}
    assert fields["/a/x.data"] == {"title": ["t"]}
    assert fields["/a/own/x.json"] == {"title": ["o"], "year": [3]}
    assert fields["/a/own/d/x.json"] == {"title": ["o"]}
    coverage = indexed.read(lambda snapshot: snapshot.coverage(("a", "own")))
    assert coverage.fields["title"].everywhere
    assert set(coverage.fields) == {"title", "year", *VIRTUAL_FIELDS}
    whole = indexed.read(lambda snapshot: snapshot.coverage(()))
    assert whole.fields["@path"].everywhere


def test_every_file_is_a_document_whatever_configurations_take(indexed: Indexed) -> None:
    indexed.configure("/", YEAR, {"name": "@size", "type": ["exact", "names"]}, glob="taken/*.json")
    indexed.configure("/own", glob="nothing")
    files = {"/taken/a.json": {"year": 1}, "/b.json": {"year": 2}, "/own/c.json": {"year": 3}}
    indexed.put(files)
    indexed.finish()
    found = indexed.contents()
    assert set(found) == set(files)
    assert [row["year"] for row in found.values() if "year" in row] == [[1]]
    assert not indexed.read(lambda snapshot: snapshot.coverage(())).fields["@size"].everywhere
    assert indexed.read(lambda snapshot: snapshot.coverage(())).fields["@hash"].everywhere
    assert indexed.read(lambda snapshot: snapshot.coverage(("own",))).fields["@size"].index_types == {
        "exact",
        "names",
    }


def test_the_space_of_a_dropped_index_comes_back(indexed: Indexed) -> None:
    indexed.configure("/", TITLE, YEAR)
    indexed.put({f"/{number}.json": {"title": f"t{number}", "year": number} for number in range(300)})
    indexed.finish()
    assert len(indexed.found("year", b"")) == 0
    directory = indexed.reader.read(lambda storage: storage.directory)
    before = len(list(directory.glob("index-*")))
    indexed.configure("/", TITLE)
    indexed.finish()
    assert len(list(directory.glob("index-*"))) == before - 1
    assert indexed.read(lambda snapshot: [index.type.name for index in snapshot.indexes("year")]) == [
        "presence"
    ]


def test_a_directory_with_its_configuration_can_be_moved_and_copied(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(applying, "LARGE_DIRECTORY", 3)
    indexed.configure("/z", TITLE)
    indexed.put({f"/z/{number}.json": {"title": f"t{number}"} for number in range(8)})
    with indexed.database.transaction() as transaction:
        transaction.move(("z",), ("y",))
        transaction.copy(("y",), ("deep", "x"))
    indexed.finish()
    found = indexed.contents()
    assert len(found) == 16
    assert found["/y/3.json"]["title"] == found["/deep/x/3.json"]["title"] == ["t3"]
    with indexed.database.transaction() as transaction:
        transaction.delete(("deep",), recursive=True)
    indexed.finish()
    assert len(indexed.contents()) == 8
    assert set(indexed.read(lambda snapshot: snapshot.coverage(("deep",))).fields) == set(
        indexed.read(lambda snapshot: snapshot.coverage(("nowhere",))).fields
    )


def test_another_index_type_makes_documents_anew(indexed: Indexed, source: Source) -> None:
    names = source.types.pop("names")
    source.use()
    with indexed.database.transaction() as transaction:
        transaction.put(
            ("d", ".svc-config", "indexes.json"),
            b'{"indexes": [{"name": "title", "type": ["exact", "names"]}]}',
        )
    indexed.put({"/d/a.json": {"title": "A"}})
    indexed.finish()
    assert indexed.read(lambda snapshot: snapshot.coverage(("d",))).fields["title"].index_types == {"exact"}
    source.types["names"] = names
    source.use()
    indexed.finish()
    coverage = indexed.read(lambda snapshot: snapshot.coverage(("d",)))
    assert coverage.fields["title"].index_types == {"exact", "names"}
    types = indexed.read(lambda snapshot: {index.type.name for index in snapshot.indexes("title")})
    assert types == {"exact", "names", "presence"}
    known = indexed.read(
        lambda snapshot: [index.tail.known for index in snapshot.indexes("title") if index.tail is not None]
    )
    assert [list(one.values()) for one in known] == [[["A"]]]


BAD = [
    (b"{", ""),
    (b"[]", ""),
    (b'{"indexes": 3}', "indexes"),
    (b'{"glob": 3, "indexes": []}', "glob"),
    (b'{"glob": "../x", "indexes": []}', "glob"),
    (b'{"unknown": 1}', "unknown"),
    (b'{"indexes": [{"name": "a"}]}', "indexes[0].type"),
    (b'{"indexes": [{"name": "a", "type": "nothing"}]}', "indexes[0].type"),
    (b'{"indexes": [{"name": "", "type": "exact"}]}', "indexes[0].name"),
    (b'{"indexes": [{"name": "@no", "type": "exact"}]}', "indexes[0].name"),
    (b'{"indexes": [{"name": "a", "type": "exact", "fold": 3}]}', "indexes[0].fold"),
    (b'{"indexes": [{"name": "a", "type": "exact", "colour": 3}]}', "colour"),
    (b'{"indexes": [{"name": "a", "type": "exact", "source": []}]}', "indexes[0].source"),
    (b'{"indexes": [{"name": "a", "type": "exact", "source": 5}]}', "indexes[0].source"),
    (b'{"indexes": [{"name": "a", "type": "exact", "source": true}]}', "indexes[0].source"),
    (b'{"indexes": [{"name": "a", "type": "exact", "source": ["/(?=a)/"]}]}', "indexes[0].source"),
    (b'{"indexes": [{"name": "a", "type": "exact", "source": ["/(/"]}]}', "indexes[0].source"),
    (b'{"indexes": [{"name": "a", "type": "exact", "source": [18446744073709551616]}]}', "indexes[0].source"),
    (b'{"indexes": [{"name": "a", "type": "exact", "source": [-9223372036854775809]}]}', "indexes[0].source"),
    (b'{"indexes": [{"name": "a", "type": "exact", "value_type": "x"}]}', "indexes[0].value_type"),
    (b'{"indexes": [{"name": "@size", "type": "exact", "value_type": "string"}]}', "indexes[0].value_type"),
    (b'{"indexes": [{"name": "a", "type": "exact"}, {"name": "a", "type": "exact"}]}', "indexes[1].name"),
    (b'{"parser": "none", "indexes": []}', "parser"),
    (b'{"compression": "lz4", "indexes": []}', "compression"),
    (b'{"logging": 1, "indexes": []}', "logging"),
    (b'{"indexes": ' + b"[" * 5000, ""),
]


@pytest.mark.parametrize(("content", "field"), BAD)
def test_a_bad_file_is_refused_with_the_reason(indexed: Indexed, content: bytes, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        IndexesCheck().check((".svc-config", "indexes.json"), content, indexed.context)
    assert refused.value.details.get("field", "") == field
    parse = parse_configuration
    good = parse(b'{"indexes": [{"name": "a", "type": "exact"}]}', {"exact": Words()})
    assert good.entries["a"].types == {"exact": {"fold": False}}


def test_one_that_came_in_all_the_same_counts_as_absent(indexed: Indexed) -> None:
    with indexed.database.transaction() as transaction:
        transaction.put((".svc-config", "indexes.json"), b"nonsense")
        transaction.put(("a.json",), b"{}", content_type="application/json")
    assert "/a.json" in indexed.contents()
    from svc_query.indexing import index_status

    status = indexed.read(index_status)
    assert "JSON" in status["directories"][0]["problem"]


def test_a_status_names_all(indexed: Indexed, open_index: Callable[..., Indexed]) -> None:
    from svc_query.indexing import index_status

    del open_index
    indexed.configure("/d", TITLE, YEAR)
    indexed.put({"/d/a.json": {"title": "A", "year": "x"}, "/d/b.json": b"{"})
    status = indexed.read(lambda snapshot: index_status(snapshot, ("d",)))
    assert status["documents"] == 2
    assert [one["path"] for one in status["directories"]] == ["/", "/d"]
    assert {(one["field"], one["type"]) for one in status["indexes"]} >= {
        ("title", "exact"),
        ("year", "exact"),
    }
    failures = {one["path"]: one for one in status["failures"]}
    assert failures["/d/a.json"]["not_converted"] == {"year": 1}
    assert "json" in failures["/d/b.json"]["error"]
    more = indexed.read(lambda snapshot: index_status(snapshot, ("d",), "/d/a.json", 10))
    assert [one["path"] for one in more["failures"]] == ["/d/b.json"]
    indexed.put({"/d/b.json": {"year": 3}})
    assert len(indexed.read(lambda snapshot: index_status(snapshot, ("d",)))["failures"]) == 1


def test_a_process_without_a_plugin_that_is_enabled_leaves_the_index_to_others(
    open_index: Callable[..., Indexed], source: Source, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    enabled = {"index.names"}
    monkeypatch.setattr(PluginContext, "is_enabled", lambda _, plugin_id: plugin_id in enabled)
    source.contexts["names"] = SimpleNamespace(plugin_id="index.names")
    source.use()
    other = Source()
    del other.types["names"]
    other.use()
    whole = open_index()
    part = Indexed(tmp_path / "indexed.svcdb", other)
    whole.configure("/", {"name": "title", "type": ["exact", "names"]})
    whole.put({f"/{number}.json": {"title": f"t{number}"} for number in range(50)})
    whole.finish()
    numbers = whole.read(lambda snapshot: snapshot.live())
    part.finish()
    whole.finish()
    assert part.read(lambda snapshot: snapshot.live()) == numbers, "nothing was made anew"
    part.put({"/new.json": {"title": "new"}})
    with pytest.raises(ServiceUnavailable, match=r"index\.names"):
        part.contents()
    rebuild(part.database, ())
    with pytest.raises(ServiceUnavailable, match=r"index\.names"):
        part.finish()
    whole.finish()
    assert part.contents()["/new.json"]["title"] == ["new"]
    enabled.clear()
    part.finish()
    numbers = part.read(lambda snapshot: snapshot.live())
    whole.finish()
    assert whole.read(lambda snapshot: snapshot.live()) == numbers, (
        "one that still has it does not take it back"
    )
    part.put({"/newer.json": {}})
    assert "/newer.json" in part.contents()
    part.close()


def test_the_indexes_of_a_plugin_that_broke_rest_and_the_others_answer(
    open_index: Callable[..., Indexed], source: Source, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PluginContext, "is_enabled", lambda _, plugin_id: plugin_id == "index.names")
    source.contexts["names"] = SimpleNamespace(plugin_id="index.names")
    source.use()
    whole = open_index()
    whole.configure("/names", {"name": "title", "type": ["names"]})
    whole.configure("/exact", {"name": "title", "type": ["exact"]})
    for where in ("names", "exact"):
        whole.put({f"/{where}/{number}.json": {"title": "t"} for number in range(9)})
    whole.finish()
    whole.close()
    broken = Source()
    del broken.types["names"]
    broken.broken.add("index.names")
    broken.use()
    with closing(Indexed(tmp_path / "indexed.svcdb", broken)) as part:
        part.put({"/exact/new.json": {"title": "t"}, "/names/new.json": {"title": "t"}})
        assert len(part.found("title", b"st")) == 10
        part.finish()
        assert part.contents()["/names/new.json"]["title"] == ["t"]
    mended = open_index()
    mended.finish()
    types = mended.read(lambda snapshot: [one.type.name for one in snapshot.indexes("title")])
    assert sorted(types) == ["exact", "names", "presence"]
    assert len(mended.found("title", b"st")) == 10


def test_configurations_count_before_the_first_build_has_come_to_them(
    tmp_path: FilePath, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "SMALL_DIRECTORY", 10)
    files = {f"/{name}/{number}.json": {"title": "t", "year": 1} for number in range(20) for name in "abz"}
    with closing(Database(tmp_path / "indexed.svcdb")) as database, database.transaction() as transaction:
        for path, value in files.items():
            where = tuple(path.strip("/").split("/"))
            transaction.put(where, json.dumps(value).encode(), content_type="application/json")
        for directory, field in (((), TITLE), (("z",), YEAR)):
            content = json.dumps({"glob": "**/*", "indexes": [field]}).encode()
            transaction.put((*directory, ".svc-config", "indexes.json"), content)
    with closing(Indexed(tmp_path / "indexed.svcdb", source)) as indexed:

        def fields(*path: str) -> set[str]:
            found = indexed.read(lambda snapshot: snapshot.coverage(path))
            return set(found.fields) - set(VIRTUAL_FIELDS)

        assert indexed.read(lambda snapshot: snapshot.progress(())).total == 62
        assert fields() == fields("a") == {"title"}
        assert fields("z") == fields("z", "3.json") == {"title", "year"}
        assert indexed.read(lambda snapshot: [one.type.name for one in snapshot.indexes("title")]) == [
            "presence"
        ]
        indexed.finish()
        assert fields() == {"title", "year"}
        assert indexed.contents()["/z/3.json"]["year"] == [1]
