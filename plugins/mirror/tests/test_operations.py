"""The contract of operations, for those of the mirror."""

from __future__ import annotations

import json
from typing import ClassVar

from svc_mirror import operations as op
from svc_mirror.models import ChunksQuestion, DiffQuestion

from svc.errors import InvalidInput, NotFound, PreconditionFailed
from svc_testing import OperationsContract, Teller


class TestOperations(OperationsContract):
    plugin_id = "mirror"
    files: ClassVar = {"/a.txt": b"one", "/d/b.txt": b"two"}

    def story(self, call: Teller) -> None:
        page = call(op.read_changes, DiffQuestion())
        assert [file.path for file in page.changes.files_added] == ["/a.txt", "/d/b.txt"]
        assert not call(op.read_changes, DiffQuestion(since=page.since)).changes.files_added
        (file, _) = page.changes.files_added
        question = ChunksQuestion(hashes=[file.hash, "0" * 64])
        answer = json.loads(call.stream(op.read_chunks, question) or "{}")
        assert answer in ({}, {**answer, "missing": ["0" * 64]})
        call.stream(op.read_chunks, ChunksQuestion(path="/a.txt", content_hash=file.hash))
        call.refused(NotFound, op.read_changes, DiffQuestion(since_root_hash="0" * 64))
        call.refused(InvalidInput, op.read_changes, DiffQuestion(since="none"))
        call.refused(InvalidInput, op.read_changes, DiffQuestion(paths=["/a/" + "*a" * 101] * 2))
        call.refused(NotFound, op.read_chunks, ChunksQuestion(path="/none"))
        call.refused(PreconditionFailed, op.read_chunks, ChunksQuestion(path="/a.txt", content_hash="0" * 64))
