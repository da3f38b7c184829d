"""The contract of operations, for those of the history."""

from __future__ import annotations

from typing import ClassVar

from svc.errors import NotFound
from svc_history import operations as op
from svc_history.models import BlameQuery, CompareQuery, HistoryQuery, LogQuery, TextQuery
from svc_testing import OperationsContract, Teller


class TestOperations(OperationsContract):
    plugin_id = "history"
    files: ClassVar = {"/a.txt": b"one\ntwo\n", "/d/b.txt": b"three\n"}

    def story(self, call: Teller) -> None:
        commits = call(op.list_commits).commits
        call(op.list_commits, LogQuery(path="/d"))
        call.refused(NotFound, op.list_commits, LogQuery(fork="none"))
        details = call(op.show_commit, commits[0].version)
        assert [change.path for change in details.changes] == ["/a.txt", "/d", "/d/b.txt"]
        call.refused(NotFound, op.show_commit, "0" * 64)
        rows = call(op.show_history, ("a.txt",), HistoryQuery(commits=True)).history
        assert [row.change_type for row in rows] == ["added"]
        call.refused(NotFound, op.show_history, (".svc-system",))
        call.stream(op.compare_versions, CompareQuery(source="HEAD"))
        call.refused(NotFound, op.compare_versions, CompareQuery(source="none"))
        call.stream(op.compare_versions, CompareQuery(source="HEAD", limit=2))
        lines = call(op.compare_texts, ("a.txt",), TextQuery(source=commits[0].parent)).lines
        assert [(line.before, line.after, line.text) for line in lines] == [
            (None, 1, "one"),
            (None, 2, "two"),
        ]
        call.refused(NotFound, op.compare_texts, ("none",), TextQuery(source="HEAD"))
        call.stream(op.blame_path, ("a.txt",))
        call.stream(op.blame_path, ("d",), BlameQuery(text=False))
        call.refused(NotFound, op.blame_path, ("none",))
