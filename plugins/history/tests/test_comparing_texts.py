"""Which lines of a text differ, and how they stand beside each other."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from svc.plugin import matching_blocks
from svc_history.models import TextLine
from svc_history.portal.words import side_by_side
from svc_history.texts import AROUND, _differences

TEXTS = st.lists(st.sampled_from([b"a\n", b"b b\n", b"c b\n", b"d\n"]), max_size=30)


@given(before=TEXTS, after=TEXTS)
def test_the_lines_tell_one_text_from_the_other(before: list[bytes], after: list[bytes]) -> None:
    lines = list(_differences(before, after, matching_blocks(before, after)))
    removed = {line.before for line in lines if line.after is None}
    added = {line.after for line in lines if line.before is None}
    kept = [line for number, line in enumerate(before, start=1) if number not in removed]
    assert kept == [line for number, line in enumerate(after, start=1) if number not in added]
    for line in lines:
        for number, text in ((line.before, before), (line.after, after)):
            assert number is None or text[number - 1].decode().rstrip("\n") == line.text
    for numbers in ([one.before for one in lines if one.before], [one.after for one in lines if one.after]):
        assert numbers == sorted(set(numbers))
    if before == after:
        assert lines == []


@given(before=TEXTS, after=TEXTS)
def test_beside_each_other_nothing_is_lost(before: list[bytes], after: list[bytes]) -> None:
    lines = list(_differences(before, after, matching_blocks(before, after)))
    rows = side_by_side(lines)
    for side, name in (([row.before for row in rows], "before"), ([row.after for row in rows], "after")):
        shown = [(cell.number, "".join(text for text, _ in cell.parts)) for cell in side if cell]
        assert shown == [(getattr(line, name), line.text) for line in lines if getattr(line, name)]


def test_only_lines_around_a_difference_are_there() -> None:
    before = [b"%d\n" % number for number in range(100)]
    after = [*before[:50], b"new\n", *before[50:]]
    lines = list(_differences(before, after, matching_blocks(before, after)))
    assert [line.before for line in lines] == [48, 49, 50, None, 51, 52, 53]
    assert len(lines) == 2 * AROUND + 1
    assert [row.skips for row in side_by_side(lines)] == [True, *[False] * 6]


def test_words_that_differ_are_told_apart() -> None:
    (row,) = side_by_side([TextLine(1, None, "a big dog"), TextLine(None, 1, "a small dog")])
    assert row.before is not None
    assert row.after is not None
    assert row.before.parts == [("a ", False), ("big", True), (" dog", False)]
    assert row.after.parts == [("a ", False), ("small", True), (" dog", False)]
    (row,) = side_by_side([TextLine(1, None, "x y"), TextLine(None, 1, "p q")])
    assert row.before is not None
    assert row.before.parts == [("x y", False)]
    long = "word " * 500
    (row,) = side_by_side([TextLine(1, None, long), TextLine(None, 1, f"{long}!")])
    assert row.before is not None
    assert row.before.parts == [(long, False)]


def test_a_reader_without_rights_learns_nothing(http: Any, commit: Any, make_user: Any) -> None:
    first = commit({"/a": b"1\n", "/gone": b"secret\n"})
    commit({"/a": b"2\n", "/gone": None})
    url = "/versions/compare-text/{}?from=" + first
    assert len(http.get(url.format("gone")).json["lines"]) == 1
    http.become(make_user({"/a": "r", "/gone": "r"}))
    assert [line["text"] for line in http.get(url.format("a")).json["lines"]] == ["1", "2"]
    assert http.get(url.format("gone")).status_code == 404
    http.become(make_user({"/b": "r"}))
    assert http.get(url.format("a")).status_code in (403, 404)
    http.become(make_user({"/a": "r"}))
    assert http.get("/versions/compare-text/a?from=").status_code == 400
