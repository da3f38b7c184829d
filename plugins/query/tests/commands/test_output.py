"""What commands make of options and answers, without a database."""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace

import pytest
from svc_query.commands.contents import samples_of
from svc_query.commands.options import aggregate_of, fields_of, filter_of, orders_of
from svc_query.commands.plans import plan_lines
from svc_query.commands.sampling import Spread, parse_plainly
from svc_query.commands.snippets import marked
from svc_query.commands.tables import cell_text, print_csv, print_rows

from svc.errors import InvalidInput, NotFound, ServiceUnavailable, UsageError
from svc.plugin import EntryKind
from svc_cli import Source

EVIL = "\x1b[31mred\x07\u202e[bold]x[/bold] :smile:"


def test_a_filter_is_text_or_json_or_both() -> None:
    text, where = "a = 1", '{"field": "b", "op": "exists", "value": true}'
    leaf = {"field": "a", "op": "eq", "value": 1}
    assert filter_of(text, None) == leaf
    assert filter_of(None, where) == json.loads(where)
    assert filter_of(text, where) == {"and": [leaf, json.loads(where)]}
    assert filter_of(None, None) == filter_of(" ", None) == []
    with pytest.raises(InvalidInput) as pointed:
        filter_of("a =", None)
    assert pointed.value.message.split("\n")[1:] == ["  a =", "     ^"]
    with pytest.raises(InvalidInput) as plain:
        filter_of("a =", None, pointed=False)
    assert "\n" not in plain.value.message
    with pytest.raises(InvalidInput, match="--where takes JSON"):
        filter_of(None, "{")


def test_fields_and_orders_are_parted_by_commas() -> None:
    assert fields_of(["a,b", " c ", ""]) == ["a", "b", "c"]
    assert orders_of(["year:desc,title", "a:b:ASC"]) == [
        {"field": "year", "direction": "desc"},
        {"field": "title", "direction": "asc"},
        {"field": "a:b", "direction": "asc"},
    ]
    for wrong in ("year:up", ":desc"):
        with pytest.raises(UsageError, match="--order takes"):
            orders_of([wrong])


def test_groups_are_counted() -> None:
    nothing: dict[str, list[str]] = {"sums": [], "averages": [], "least": [], "greatest": [], "group_by": []}
    assert aggregate_of(count=False, **nothing) is None
    assert aggregate_of(count=True, **nothing) == {"count": True}
    assert aggregate_of(count=False, **{**nothing, "group_by": ["a,b"], "least": ["c"]}) == {
        "min": ["c"],
        "group_by": ["a", "b"],
        "count": True,
    }


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("colours", [False, True])
def test_no_control_code_of_a_file_reaches_a_terminal(colours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    output = Terminal() if colours else io.StringIO()
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_rows(("path", "title", EVIL), [{"path": EVIL, "title": [EVIL], EVIL: {EVIL: 1}}])
    shown = output.getvalue()
    assert ("\x1b[" in shown) is colours
    assert "\x1b[31mred" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
    assert "[bold]x[/bold] :smile:" in shown, "nothing in it is taken for markup"


def test_csv_of_a_terminal_is_safe_and_elsewhere_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"path": "/a,b", "title": EVIL, "tags": ["x", "y"], "year": None}]
    for output, raw in ((Terminal(), False), (io.StringIO(), True)):
        monkeypatch.setattr(sys, "stdout", output)
        print_csv(("path", "title", "tags", "year"), rows)
        heading, line = output.getvalue().split("\n")[:2]
        assert heading == "path,title,tags,year"
        assert line.startswith('"/a,b",')
        assert line.endswith(',"[""x"", ""y""]",')
        assert ("\x1b" in line) is raw


def test_values_are_shown_as_people_read_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cell_text("x", None) == "-"
    assert cell_text("x", True) == "true"
    assert cell_text("x", [1, "a"]) == '[1, "a"]'
    assert cell_text("matched_by", ["a", "b"]) == "a, b"
    assert cell_text("score", 0.98765) == "0.988"
    assert cell_text("updated_at", 0)[:4] in ("1969", "1970")
    assert cell_text("x", "a\nb") == "a\\nb"


def test_a_snippet_has_its_marks_and_no_control_codes() -> None:
    line = marked("the \x1bwar\n and  peace", [[5, 8], [15, 20], [16, 17], [50, 60]])
    assert line.plain == "the \\x1bwar and peace"
    assert [line.plain[span.start : span.end] for span in line.spans] == ["war", "peace"]


def test_a_plan_has_a_line_for_each_node() -> None:
    plan = {
        "operator": "and",
        "estimated_rows": 10,
        "children": [
            {"operator": "gt", "field": "year", "index": "exact", "estimated_rows": 1234, "actual_rows": 3,
             "duration_ms": 0.5, "order": "first"},
            {"operator": "not", "children": [{"operator": "eq", "field": "x", "index": None}]},
        ],
    }  # fmt: skip
    assert list(plan_lines(plan)) == [
        "and ~10 rows",
        "  gt year by exact ~1,234 rows = 3 rows in 0.50 ms (order: first)",
        "  not",
        "    eq x",
    ]


def test_a_spread_keeps_items_from_everywhere() -> None:
    spread: Spread[int] = Spread(100)
    for number in range(10_000):
        spread.add(number)
    assert len(set(spread.items)) == 100
    assert min(spread.items) < 1_000
    assert max(spread.items) > 9_000


def test_json_and_texts_are_read_without_a_parser() -> None:
    assert parse_plainly(("a.json",), None, b'{"x": 1}') == {"x": 1}
    assert parse_plainly(("a",), "application/ld+json; charset=utf-8", b"[1]") == [1]
    assert parse_plainly(("a.txt",), None, "ä".encode()) == {"text": "ä"}
    assert parse_plainly(("a.txt",), None, b"\xff") is None
    assert parse_plainly(("a.json",), None, b"{") is None
    assert parse_plainly(("a.json",), None, b"[" * 100_000) is None
    assert parse_plainly(("a.png",), "image/png", b"{}") is None


def test_a_file_of_a_server_that_is_gone_again_is_a_sample_without_a_document() -> None:
    def read(path: tuple[str, ...]) -> bytes:
        if path == ("gone.json",):
            raise NotFound("There is nothing at this path.")
        return b'{"a": 1}'

    listed = [
        SimpleNamespace(
            path=f"/{name}.json", entry_type=EntryKind.FILE, content_type="application/json", size=8
        )
        for name in ("gone", "here")
    ]
    client = SimpleNamespace(files=SimpleNamespace(list=lambda *_args, **_options: listed, read=read))
    found = samples_of(client, Source("http://localhost"), (), 10)
    assert [(sample.path, sample.document) for sample in found] == [
        (("gone.json",), None),
        (("here.json",), {"a": 1}),
    ]


def test_the_shell_waits_for_the_index_and_says_so_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from svc_query.commands import contents

    pauses: list[float] = []
    monkeypatch.setattr(contents.time, "sleep", pauses.append)
    answers: list[object] = [
        ServiceUnavailable("behind", files_waiting=3, retry_after=1),
        ServiceUnavailable("behind", files_waiting=1, retry_after=100),
        ServiceUnavailable("behind", commits_behind=1),
        "found",
    ]

    def call() -> object:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert contents.patiently(call) == "found"
    assert pauses == [1.0, 5.0, 1.0]
    assert capsys.readouterr().err == "svc: the index has still to read 3 changed files; waiting for it.\n"
    answers = [ServiceUnavailable("too busy", retry_after=1)]
    with pytest.raises(ServiceUnavailable, match="busy"):
        contents.patiently(call)


def test_the_shell_gives_up_on_an_index_that_does_not_get_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from svc_query.commands import contents

    now = [0.0]
    monkeypatch.setattr(contents.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(contents.time, "monotonic", lambda: now[0])

    def call() -> None:
        raise ServiceUnavailable("behind", files_waiting=3, retry_after=5)

    with pytest.raises(ServiceUnavailable, match="behind"):
        contents.patiently(call)
    assert 60 < now[0] < 70
