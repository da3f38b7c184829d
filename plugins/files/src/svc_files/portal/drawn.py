"""Previews that another process draws: Markdown as a page, and programs in colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from svc_portal.api import PreviewedFile

from svc.plugin import format_path, run_blocking
from svc_files.child_process import run_in_child
from svc_files.portal.drawing_child import DrawingTask
from svc_files.portal.previews import TextPreview

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["CodePreview", "MarkdownPreview"]

MOST_DRAWN = 64 * 1024
_PLAIN = ("", "txt", "text", "log")


class CodePreview(TextPreview):
    """A text in the colours of its language; as it is where nobody knows the language, or it is large."""

    name: ClassVar[str] = "files.code"
    content_types: ClassVar[tuple[str, ...]] = (
        *("text/*", "application/javascript", "application/xml", "application/yaml", "application/toml"),
        *("application/x-sh", "application/x-yaml", "application/x-ndjson", "message/*"),
    )
    template: ClassVar[str] = "text.html"

    def values(self, request: PortalRequest, file: PreviewedFile) -> Mapping[str, Any] | None:
        """Its beginning, drawn where all of it can be."""
        values = {"html": "", **(super().values(request, file) or {})}
        if values["is_whole"] and 0 < file.size <= MOST_DRAWN and not _is_plain(file):
            values["html"] = _drawn(request, file, values["text"])
        return values


class MarkdownPreview(CodePreview):
    """Markdown, as a page of its own would show it; as it is where it is large."""

    name: ClassVar[str] = "files.markdown"
    content_types: ClassVar[tuple[str, ...]] = ("text/markdown", "text/x-markdown")
    template: ClassVar[str] = "markdown.html"


def _is_plain(file: PreviewedFile) -> bool:
    ending = file.path[-1].rpartition(".")[2].lower() if "." in file.path[-1] else ""
    return file.content_type == "text/plain" and ending in _PLAIN


def _drawn(request: PortalRequest, file: PreviewedFile, text: str) -> str:
    """HTML; empty where it took too long, or is no language."""
    from markupsafe import Markup

    task = DrawingTask(
        name=file.path[-1],
        content_type=file.content_type,
        directory=format_path(file.path[:-1]),
        pages=request.url("files", path=()).rstrip("/"),
        files="/files",
    )
    drawn = run_blocking(
        run_in_child, "svc_files.portal.drawing_child", msgspec.json.encode(task), b"\n", text.encode()
    )
    return Markup(drawn.decode("utf-8", "replace"))
