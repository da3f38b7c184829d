"""A page costs what it answers: it looks at so many entries, and its cursor goes on from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc.plugin import Database
from svc.plugins import Plugins, configure
from svc_files.cursors import Cursors
from svc_files.globs import Glob
from svc_testing import serve_in_process

from .conftest import Http, scoped_root, user  # noqa: TID252


def pages(http: Http, path: str, **params: object) -> Iterator[dict[str, Any]]:
    """All pages of a listing, one after the other."""
    for _ in range(10_000):
        page = http.get(path, params={name: str(value) for name, value in params.items()}).json
        yield page
        assert page["has_more"] == (page["next_cursor"] is not None)
        if not page["has_more"]:
            return
        params.pop("offset", None)
        params["after"] = page["next_cursor"]
    raise AssertionError("the pages never end")


def paths_of(all_pages: list[dict[str, Any]]) -> list[str]:
    return [item["path"] for page in all_pages for item in page["items"]]


def test_a_page_that_has_looked_at_enough_may_be_empty_and_goes_on(
    http: Http, set_limits: Callable[..., None]
) -> None:
    http.fill(*[f"/f{number:02}" for number in range(25)], "/zzz")
    set_limits(scan_entries=10)
    found = list(pages(http, "/files", glob="zzz"))
    assert [len(page["items"]) for page in found] == [0, 0, 1]
    assert {page["total"] for page in found} == {None}


@pytest.mark.parametrize(("files", "pages_needed"), [(9, 1), (10, 1), (11, 2), (20, 2), (21, 3)])
def test_the_bound_is_exact(
    http: Http, set_limits: Callable[..., None], files: int, pages_needed: int
) -> None:
    http.fill(*[f"/f{number:02}" for number in range(files)])
    set_limits(scan_entries=10)
    for query in ({"glob": "nothing"}, {"glob": "nothing", "depth": "-1"}, {"depth": "1", "glob": "f*"}):
        assert len(list(pages(http, "/files", **query))) == pages_needed


def test_directories_on_the_way_are_looked_at_too(http: Http, set_limits: Callable[..., None]) -> None:
    http.fill("/a/b/c/d/e/f/g/h", "/x")
    set_limits(scan_entries=4)
    found = list(pages(http, "/files", glob="**/*", depth=-1))
    assert [len(page["items"]) for page in found] == [0, 1, 1]


def test_an_offset_that_is_looked_for_goes_on_with_the_cursor(
    http: Http, set_limits: Callable[..., None]
) -> None:
    names = [f"/f{number:02}" for number in range(30)]
    http.fill(*names)
    set_limits(scan_entries=7)
    for offset in (0, 3, 7, 20, 29, 30, 31):
        found = list(pages(http, "/files", glob="*", offset=offset, limit=4))
        assert paths_of(found) == names[offset:]


@pytest.mark.parametrize("depth", [0, -1])
def test_an_offset_that_the_tree_counts_is_no_look(
    http: Http, set_limits: Callable[..., None], depth: int
) -> None:
    http.fill(*[f"/d/f{number:02}" for number in range(30)])
    set_limits(scan_entries=3)
    page = http.get("/files/d", params={"depth": str(depth), "offset": "28"}).json
    assert [item["name"] for item in page["items"]] == ["f28", "f29"]
    assert (page["total"], page["has_more"]) == (30, False)
    past = http.get("/files/d", params={"depth": str(depth), "offset": str(10**9)}).json
    assert (past["items"], past["total"], past["has_more"]) == ([], 30, False)


def test_what_is_hidden_is_looked_at_and_the_cursor_does_not_tell_it(
    http: Http, set_limits: Callable[..., None]
) -> None:
    http.fill(*[f"/d/secret-{number:02}" for number in range(25)], "/d/zzz")
    set_limits(scan_entries=10)
    for identity in (
        scoped_root(("/d/secret-*", "--------"), ("/d/**", "-r--l---")),
        user({"/d": "l", "/d/zzz": "r", **{f"/d/secret-{number:02}": "" for number in range(25)}}),
    ):
        http.become(identity)
        for query in ({"depth": 0}, {"depth": -1}, {"offset": 0, "glob": "**"}):
            found = list(pages(http, "/files/d", **query))
            assert [len(page["items"]) for page in found] == [0, 0, 1]
            for page in found[:-1]:
                with pytest.raises(Exception, match="cursor"):
                    Cursors(bytes(16), sealed=False).decode(page["next_cursor"])
                lengths = {len(page["next_cursor"]) for page in found[:-1]}
                assert len(lengths) == 1


def test_a_cursor_of_one_caller_works_for_another(http: Http) -> None:
    http.fill("/d/a", "/d/b", "/d/c")
    http.become(user({"/d": "rl"}))
    page = http.get("/files/d", params={"limit": "1"}).json
    http.become(user({"/d": "rl"}, name="bob"))
    assert http.items("/files/d", params={"after": page["next_cursor"]}) == ["/d/b", "/d/c"]


@given(
    st.lists(st.text("aü/\\0"[:2], min_size=1, max_size=40).filter(bool), max_size=4).map(tuple),
    st.integers(0, 10**17),
    st.booleans(),
)
def test_a_cursor_says_what_it_was_given(place: tuple[str, ...], skip: int, sealed: bool) -> None:
    cursors = Cursors(b"0123456789abcdef", sealed=sealed)
    text = cursors.encode(place, skip)
    assert cursors.decode(text) == (place, skip)
    assert text == cursors.encode(place, skip)
    if sealed:
        with pytest.raises(Exception, match="cursor"):
            Cursors(b"another database", sealed=True).decode(text)
        for changed in (text[:-2] + ("AA" if text[-2:] != "AA" else "BB"), text[:30], "AA" + text[2:] + "AA"):
            with pytest.raises(Exception, match="cursor"):
                cursors.decode(changed)


SEGMENTS = ["a", "b", "bb", "c.txt", "é"]
PATHS = st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=4).map(tuple)
GLOBS = st.one_of(
    st.none(),
    st.lists(st.sampled_from(["*", "**", "?", "a", "b*", "*.txt"]), min_size=1, max_size=3).map("/".join),
)


def without_overlaps(chosen: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    return {path for path in chosen if not any(path[:depth] in chosen for depth in range(1, len(path)))}


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory, plugins: Plugins) -> Iterator[tuple[Http, Plugins]]:
    path: Path = tmp_path_factory.mktemp("listings") / "test.svcdb"
    with serve_in_process(path, plugins) as (app, database, mode):

        def become(other: Any) -> None:
            mode.identity = other

        yield Http(app, database, become), plugins


def refill(database: Database, files: set[tuple[str, ...]]) -> None:
    with database.transaction() as transaction:
        for name, _ in list(database.at().entries(())):
            transaction.delete((name,), recursive=True)
        for path in files:
            transaction.put(path, b"x")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.sets(PATHS, max_size=25).map(without_overlaps),
    GLOBS,
    st.integers(-1, 2),
    st.integers(1, 6),
    st.integers(1, 9),
    st.integers(0, 8),
    st.booleans(),
)
def test_all_pages_are_the_listing_nothing_twice_and_nothing_left_out(
    lasting: tuple[Http, Plugins],
    files: set[tuple[str, ...]],
    glob: str | None,
    depth: int,
    limit: int,
    scan: int,
    offset: int,
    hides: bool,
) -> None:
    http, plugins = lasting
    refill(http.database, files)
    configure(http.database, plugins, "files", {"scan_entries": scan})
    query: dict[str, object] = {"depth": depth, "limit": limit, "offset": offset}
    if glob is not None:
        query["glob"] = glob
    identity = user({"/": "rl", "/a": "", "/b/a": ""}) if hides else scoped_root()
    http.become(identity)
    candidates = {path[:1] for path in files} if depth == 0 else files
    pattern = None if glob is None else Glob(glob)
    expected = sorted(
        path
        for path in candidates
        if (depth < 0 or len(path) <= depth + 1)
        and (pattern is None or pattern.matches(path, 0))
        and not (hides and (path[:1] == ("a",) or path[:2] == ("b", "a")))
    )
    found = list(pages(http, "/files", **query))
    assert paths_of(found) == ["/" + "/".join(path) for path in expected[offset:]]
    assert all(len(page["items"]) <= min(limit, scan) for page in found)
    for page in found:
        assert page["total"] in (None, len(expected))
    http.become(scoped_root())


def test_deleted_files_are_looked_at_too(http: Http, set_limits: Callable[..., None]) -> None:
    names = [f"/f{number:02}" for number in range(20)]
    http.fill(*names)
    for name in names[::2]:
        http.delete(f"/files{name}")
    set_limits(scan_entries=3)
    for depth in (0, -1):
        found = list(pages(http, "/files", deleted="true", depth=depth))
        assert paths_of(found) == names
        assert all(len(page["items"]) <= 3 for page in found)
