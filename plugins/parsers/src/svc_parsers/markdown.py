"""Markdown: its front matter, its headings and its text."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, BinaryIO

from svc_query.api import InPart, Parser, ParserInput

from svc_parsers.encodings import read_text
from svc_parsers.shapes import text_members, without_empty

__all__ = ["MarkdownParser"]

_MAXIMUM_HEADINGS = 10_000
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_MEMBER = re.compile(r"^([A-Za-z_][\w -]{0,99}?)[ \t]*[:=][ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")


class MarkdownParser(Parser):
    """The front matter as it is, every heading with its level, and the text behind the front matter."""

    name = "markdown"
    content_types = frozenset({"text/markdown", "text/x-markdown"})
    extensions = frozenset({"md", "markdown", "mdown", "mkd", "mdx"})

    def parse(self, content: BinaryIO, source: ParserInput) -> Any:
        """Returns ``title``, ``front_matter``, ``headings`` and ``text``."""
        found = read_text(content, source)
        matter, text, problem = _split(found.text.replace("\r\n", "\n"))
        headings = _headings(text)
        title = matter.get("title") if isinstance(matter, Mapping) else None
        if not isinstance(title, str):
            title = headings[0]["text"] if headings else None
        members = {"title": title, "front_matter": matter, "headings": headings}
        document = {**without_empty(members), **text_members([text])}
        return found.told(InPart(document, problem) if problem else document)


def _split(text: str) -> tuple[Any, str, str]:
    """The front matter, the rest, and what is wrong with it: then its lines are taken one by one.

    One that has no such lines is text, as it is to every other reader.
    """
    for fence in ("---", "+++"):
        if text.startswith(fence + "\n"):
            end = text.find(f"\n{fence}\n", len(fence))
            if end < 0 and text.endswith(f"\n{fence}"):
                end = len(text) - len(fence) - 1
            if end > 0:
                inside, rest = text[len(fence) + 1 : end + 1], text[end + len(fence) + 2 :]
                matter = _load(inside, fence)
                if matter is not None:
                    return matter, rest, ""
                lines = dict(_MEMBER.findall(inside))
                if lines:
                    return lines, rest, "its front matter can't be read as it should be"
    return {}, text, ""


def _load(text: str, fence: str) -> Any:
    try:
        if fence == "+++":
            return tomllib.loads(text)
        from svc_parsers.safe_yaml import load_yaml

        return next(iter(load_yaml(text).documents), None)
    except ValueError:
        return None


def _headings(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    fence = ""
    before = ""
    for line in text.split("\n"):
        if len(found) >= _MAXIMUM_HEADINGS:
            break
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
            continue
        if mark:
            fence, before = mark[1], ""
            continue
        heading = _HEADING.match(line)
        underline = _UNDERLINE.match(line) if before else None
        if heading:
            found.append({"level": len(heading[1]), "text": (heading[2] or "").strip().rstrip("#").rstrip()})
        elif underline:
            found.append({"level": 1 if underline[1][0] == "=" else 2, "text": before})
        before = "" if heading or underline or line.startswith(("    ", ">", "-", "*")) else line.strip()
    return [item for item in found if item["text"]]
