"""The plugin keeps the contracts of plugins and of parsers."""

from __future__ import annotations

import subprocess
import sys
from typing import ClassVar

import pytest
from made_files import FILES
from svc_parsers.json_documents import JsonParser
from svc_parsers.office import WordParser
from svc_query.testing.parsers import ParserContract

from svc_testing import PluginContract


class TestPlugin(PluginContract):
    plugin_id = "parsers"


class TestJson(ParserContract):
    plugin_id = "parsers"
    samples: ClassVar = {
        "book.json": FILES["book.json"](),
        "book.utf16.json": '\ufeff{"a": 1}'.encode("utf-16-le"),
    }
    documents: ClassVar = {"book.utf16.json": {"a": 1}}
    unreadable: ClassVar = {"a.json": b"{", "b.json": b""}

    @pytest.fixture
    def extension(self):
        return JsonParser()


class TestWord(ParserContract):
    plugin_id = "parsers"
    samples: ClassVar = {"report.docx": FILES["report.docx"]()}
    unreadable: ClassVar = {"sheet.docx": FILES["books.xlsx"](), "text.docx": b"text"}

    @pytest.fixture
    def extension(self):
        return WordParser()


LIBRARIES = (
    "yaml", "defusedxml", "lxml", "selectolax", "pypdfium2", "python_calamine", "docx", "pptx", "odfdo",
    "PIL", "tinytag", "striprtf", "charset_normalizer",
)  # fmt: skip


def test_the_libraries_are_imported_by_children_alone() -> None:
    code = f"import sys, svc_parsers.parsers\nprint([name for name in {LIBRARIES!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
