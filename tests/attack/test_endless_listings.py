"""Listings without an end: a page costs what it answers, however large the tree and whatever is asked.

What is counted is the entries that the tree gave out, not seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from attack.scale import scaled
from svc.database import Database, Version
from svc.errors import SvcError
from svc.plugins import ROOT_IDENTITY, Identity, Plugins, ScopedRule, configure
from svc.tree import EntryKind
from svc_files.globs import Glob
from svc_testing import PathRights, load_with_testing_auth, serve_in_process

SCAN = 100_000
FILES = 300_000
DOUBLINGS = 25
DEEP = 1_000
SLACK = 2
"""A page looks one entry ahead to see whether there is more."""


class Looked:
    """Counts what the tree gives out, in all listings."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for name in ("walk_files", "entries"):
            monkeypatch.setattr(Version, name, self._counted(getattr(Version, name)))

    def _counted(self, method: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def counted(version: Version, *arguments: Any, **options: Any) -> Iterator[Any]:
            for row in method(version, *arguments, **options):
                self.count += 1
                yield row

        return counted

    def during(self, work: Callable[[], Any]) -> tuple[Any, int]:
        before = self.count
        return work(), self.count - before


class Site:
    """One application, and who calls it."""

    def __init__(self, app: Any, database: Database, mode: Any, plugins: Plugins) -> None:
        self._client = TestClient(app)
        self._mode = mode
        self._plugins = plugins
        self.database = database

    def become(self, identity: Identity) -> None:
        self._mode.identity = identity

    def configure(self, **values: int) -> None:
        configure(self.database, self._plugins, "files", values)

    def page(self, path: str, **query: object) -> dict[str, Any]:
        answer = self._client.simulate_get(
            f"/files{path}", params={name: str(value) for name, value in query.items()}
        )
        assert answer.status_code == 200, answer.text
        page: dict[str, Any] = answer.json
        assert page["has_more"] == (page["next_cursor"] is not None)
        return page

    def pages(self, path: str, **query: object) -> Iterator[dict[str, Any]]:
        while True:
            page = self.page(path, **query)
            yield page
            if not page["has_more"]:
                return
            query = {name: value for name, value in query.items() if name != "offset"}
            query["after"] = page["next_cursor"]


def opened(path: Path) -> Iterator[Site]:
    plugins = load_with_testing_auth("files")
    with serve_in_process(path, plugins) as (app, database, mode):
        yield Site(app, database, mode, plugins)


@pytest.fixture(scope="module")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """300,000 files, 2^25 paths to one, and files below a thousand directories."""
    for site in opened(tmp_path_factory.mktemp("huge") / "huge.svcdb"):
        database = site.database
        content = database.store_bytes(b"x")
        with database.transaction() as transaction:
            for number in range(1000):
                transaction.put(("one", f"f{number:04}"), content)
            transaction.put(("bomb",), content)
            transaction.put(("many", "zz", "last.txt"), content)
            transaction.put((*["d"] * DEEP, "f"), content)
        one = database.at().get(("one",))
        bottom = database.at().get(("d",) * DEEP)
        assert one is not None
        assert bottom is not None
        with database.transaction() as transaction:
            for number in range(FILES // 1000):
                transaction.put_entry(("many", f"d{number:04}"), one)
            for number in range(1000):
                transaction.put_entry((*["d"] * (DEEP - 1), f"e{number:04}"), bottom)
        with database.transaction() as transaction:
            transaction.mkdir(("power",))
            transaction.move(("bomb",), ("power", "f"))
            for _ in range(DOUBLINGS):
                transaction.copy(("power",), ("next", "a"))
                transaction.copy(("power",), ("next", "b"))
                transaction.delete(("power",), recursive=True)
                transaction.move(("next",), ("power",))
        assert database.at().totals(("many",)).files == FILES + 1
        assert database.at().totals(("power",)).files == 2**DOUBLINGS
        yield site


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Looked:
    return Looked(monkeypatch)


PARTLY = Identity(
    ROOT_IDENTITY.user_id,
    "root",
    is_root=True,
    key_id="key",
    rules=(ScopedRule("/power/**", "--------"), ScopedRule("/**", "----l---")),
)


@pytest.mark.parametrize("directory", ["/", "/many", "/power", "/d"])
@pytest.mark.parametrize(
    "query",
    [
        {"depth": -1, "glob": "**/zzz"},
        {"depth": -1, "glob": "zzz"},
        {"depth": -1, "glob": "/" + "**/a/" * 200 + "b"},
        {"depth": -1, "glob": "*a" * 500 + "b"},
        {"depth": -1, "glob": "**", "limit": 10_000},
        {"depth": -1, "glob": "**", "offset": 10**9},
        {"depth": 4000, "offset": 10**9},
        {"depth": 3, "glob": "**/*", "limit": 1},
        {"depth": -1, "deleted": "true", "glob": "zzz"},
        {"depth": -1, "limit": 10_000},
        {},
    ],
)
def test_one_page_looks_at_a_bounded_number_of_entries(
    huge: Site, looked: Looked, directory: str, query: dict[str, object]
) -> None:
    page, count = looked.during(lambda: huge.page(directory, **query))
    assert count <= SCAN + SLACK
    assert page["has_more"] or count < SCAN + SLACK
    again, count = looked.during(lambda: huge.page(directory, **query))
    assert again == page


@pytest.mark.parametrize("directory", ["/", "/many", "/power", "/one"])
@pytest.mark.parametrize("depth", [0, -1])
def test_an_offset_costs_nothing(huge: Site, looked: Looked, directory: str, depth: int) -> None:
    past, count = looked.during(lambda: huge.page(directory, depth=depth, offset=10**9))
    assert (past["items"], past["has_more"], count) == ([], False, 0)
    total = past["total"]
    last, count = looked.during(lambda: huge.page(directory, depth=depth, offset=total - 1))
    assert (len(last["items"]), last["has_more"], last["total"]) == (1, False, total)
    assert count <= 1 + DOUBLINGS + SLACK
    middle, count = looked.during(lambda: huge.page(directory, depth=depth, offset=total // 2, limit=5))
    assert count <= 6 + 2 * DOUBLINGS + SLACK
    assert len(middle["items"]) == min(5, total - total // 2)


def test_a_cursor_deep_in_a_tree_goes_on_at_once(huge: Site, looked: Looked) -> None:
    middle = huge.page("/power", depth=-1, offset=2 ** (DOUBLINGS - 1) - 3, limit=2)
    after, count = looked.during(lambda: huge.page("/power", depth=-1, after=middle["next_cursor"], limit=2))
    assert count <= 4 * DOUBLINGS
    by_offset = huge.page("/power", depth=-1, offset=2 ** (DOUBLINGS - 1) - 1, limit=2)
    assert after["items"] == by_offset["items"]


def test_paths_of_many_levels_count_for_what_they_cost(huge: Site, looked: Looked) -> None:
    page, count = looked.during(lambda: huge.page("/d", depth=-1, glob="nothing", limit=10_000))
    assert count == DEEP - 2 + 2 * 1001  # every directory once, and a file in each at the bottom
    assert page["has_more"] is False
    huge.configure(scan_entries=5_000)
    page, count = looked.during(lambda: huge.page("/d", depth=-1, glob="nothing"))
    assert page["has_more"] is True
    assert count < 1_000
    huge.configure(scan_entries=SCAN)


def test_what_is_hidden_is_no_way_around_the_bound(huge: Site, looked: Looked) -> None:
    huge.become(PARTLY)
    try:
        for query in ({"depth": -1}, {"depth": -1, "offset": 10**9}, {"depth": -1, "glob": "**"}):
            _, count = looked.during(lambda query=query: huge.page("/", **query))
            assert count <= SCAN + SLACK
    finally:
        huge.become(ROOT_IDENTITY)


@pytest.mark.parametrize("glob", ["**/zzz", "last.txt", "d02*/f099?", "/many/d0299/*", "*1"])
def test_all_pages_of_a_glob_over_300_000_files_are_what_matches(
    huge: Site, looked: Looked, glob: str
) -> None:
    pattern = Glob(glob)
    expected = [
        "/" + "/".join(path)
        for path, entry in huge.database.at().walk(("many",), files_only=True)
        if pattern.matches(path, 1)
    ]
    found: list[str] = []
    before = looked.count
    pages = 0
    for page in huge.pages("/many", depth=-1, glob=glob):
        found += [item["path"] for item in page["items"]]
        pages += 1
    assert found == expected
    if glob.startswith("/"):
        assert looked.count - before <= FILES // 1000 + 1000 + 10, "only one directory could hold any"
    assert looked.count - before <= FILES + FILES // 1000 + 10 + pages * SLACK


def test_a_search_through_two_to_the_25_paths_comes_forward(huge: Site) -> None:
    cursors = [page["next_cursor"] for page in islice(huge.pages("/power", depth=-1, glob="**/zzz"), 5)]
    assert len(set(cursors)) == 5


SEGMENTS = ["a", "b", "c", "ab", "é"]
PATHS = st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=4).map(tuple)
GLOB = st.lists(st.sampled_from(["*", "**", "?", "a", "a*", "b"]), min_size=1, max_size=4).flatmap(
    lambda parts: st.sampled_from(["/".join(parts), "/" + "/".join(parts)])
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "link", "mkdir", "copy"]), PATHS, PATHS), min_size=1, max_size=25
)
IDENTITIES = st.sampled_from(
    [
        ROOT_IDENTITY,
        Identity("00000000-0000-0000-0000-000000000008", "bob", rights=PathRights({"/": "l", "/a/b": ""})),
        Identity(
            ROOT_IDENTITY.user_id,
            "root",
            is_root=True,
            key_id="key",
            rules=(ScopedRule("/b/**", "--------"), ScopedRule("/**", "-r--l---")),
        ),
    ]
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from opened(tmp_path_factory.mktemp("small") / "small.svcdb")


def build(database: Database, steps: list[tuple[str, tuple[str, ...], tuple[str, ...]]]) -> None:
    """Makes a tree of its own from steps; what cannot be is left out."""
    with database.transaction() as transaction:
        for name, _ in list(database.at().entries(())):
            transaction.delete((name,), recursive=True)
    for kind, path, other in steps:
        try:
            with database.transaction() as transaction:
                if kind == "put":
                    transaction.put(path, b"x")
                elif kind == "link":
                    transaction.link(path, "/a")
                elif kind == "mkdir":
                    transaction.mkdir(path)
                else:
                    transaction.copy(path, other)
        except SvcError:
            continue  # the step does not fit the tree


def hidden(identity: Identity, path: tuple[str, ...]) -> bool:
    if identity.rules:
        return path[:1] == ("b",)
    return identity.rights is not None and path[:2] == ("a", "b")


def brute_force(
    version: Version, base: tuple[str, ...], depth: int, glob: str | None, identity: Identity
) -> list[str]:
    pattern = None if glob is None else Glob(glob)
    return [
        "/" + "/".join(path)
        for path, entry in version.walk(base, max_depth=depth)
        if (depth == 0 or entry.kind is EntryKind.FILE)
        and (pattern is None or pattern.matches(path, len(base)))
        and not hidden(identity, path)
    ]


@settings(max_examples=scaled(150), deadline=None)
@given(
    st.data(),
    STEPS,
    st.one_of(st.none(), GLOB),
    st.integers(-1, 3),
    st.integers(1, 5),
    st.integers(1, 12),
    st.integers(0, 10),
    IDENTITIES,
)
def test_all_pages_of_any_tree_are_its_listing(
    small: Site,
    data: st.DataObject,
    steps: list[tuple[str, tuple[str, ...], tuple[str, ...]]],
    glob: str | None,
    depth: int,
    limit: int,
    scan: int,
    offset: int,
    identity: Identity,
) -> None:
    build(small.database, steps)
    version = small.database.at()
    directories = [path for path, entry in version.walk() if entry.kind is EntryKind.DIRECTORY]
    base = data.draw(st.sampled_from([(), *(path for path in directories if not hidden(identity, path))]))
    expected = brute_force(version, base, depth, glob, identity)
    small.configure(scan_entries=scan)
    small.become(identity)
    try:
        query: dict[str, object] = {"depth": depth, "limit": limit, "offset": offset}
        found = list(small.pages("/" + "/".join(base), **query, **({} if glob is None else {"glob": glob})))
    finally:
        small.become(ROOT_IDENTITY)
    assert [item["path"] for page in found for item in page["items"]] == expected[offset:]
    assert {page["total"] for page in found} <= {None, len(expected)}


@settings(max_examples=scaled(60), deadline=None)
@given(
    st.sets(PATHS, min_size=1, max_size=15), st.sets(PATHS, max_size=6), st.integers(1, 4), st.integers(1, 6)
)
def test_what_did_not_change_comes_once_while_others_write(
    small: Site, first: set[tuple[str, ...]], written: set[tuple[str, ...]], limit: int, scan: int
) -> None:
    build(small.database, [("put", path, path) for path in sorted(first)])
    small.configure(scan_entries=scan)
    stays = set(brute_force(small.database.at(), (), -1, None, ROOT_IDENTITY))
    waiting = sorted(written)
    found: list[str] = []
    for page in small.pages("/", depth=-1, limit=limit, glob="**"):
        found += [item["path"] for item in page["items"]]
        if waiting:
            path = waiting.pop()
            before = set(brute_force(small.database.at(), (), -1, None, ROOT_IDENTITY))
            with small.database.transaction() as transaction:
                if small.database.at().get(path) is not None:
                    transaction.delete(path, recursive=True)
                else:
                    for length in range(1, len(path)):
                        above = small.database.at().get(path[:length])
                        if above is not None and above.kind is not EntryKind.DIRECTORY:
                            transaction.delete(path[:length])
                    transaction.put(path, b"y")
            after = set(brute_force(small.database.at(), (), -1, None, ROOT_IDENTITY))
            stays &= before & after
    assert [path for path in found if path in stays] == sorted(stays, key=lambda text: text.split("/"))
