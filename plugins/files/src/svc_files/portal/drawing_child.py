"""The process that makes HTML of Markdown, or of a program's text, from standard input to standard output.

The patterns of a lexer may take for ever, and hold the interpreter's lock: so it has limits of its own. The
input is a task, a line of JSON, then the text. The output is HTML in which no mark of the text is one.
"""

from __future__ import annotations

import gc
import os
import posixpath
import resource
import sys
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

import msgspec

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = ["DrawingTask", "code_html", "main", "markdown_html"]

_SECONDS = 3
_BYTES = 1 << 30
_MOST_DRAWN = 2 << 20


class DrawingTask(msgspec.Struct, frozen=True):
    """What to draw.

    Attributes:
        name: of the file; its ending tells the language.
        content_type: its media type.
        directory: where it stands, as a path that is not quoted; links begin there.
        pages: where the pages of files begin, such as ``/portal/files``.
        files: where the bytes of files begin.
    """

    name: str
    content_type: str
    directory: str
    pages: str
    files: str

    @property
    def is_markdown(self) -> bool:
        """Whether it is Markdown; else it is a program."""
        return self.content_type in ("text/markdown", "text/x-markdown")


def main() -> None:
    """Does what standard input says."""
    gc.disable()
    os.nice(10)  # Whoever is served meanwhile comes first.
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
    line, _, content = sys.stdin.buffer.read().partition(b"\n")
    task = msgspec.json.decode(line, type=DrawingTask)
    text = content.decode("utf-8", "replace")
    html = markdown_html(task, text) if task.is_markdown else code_html(task, text)
    if len(html) <= _MOST_DRAWN:  # References may repeat an address very often.
        sys.stdout.buffer.write(html.encode())
    sys.stdout.buffer.flush()


def code_html(task: DrawingTask, text: str) -> str:
    """Returns a text with its words in classes; empty where no lexer knows the language."""
    from pygments.lexers import get_lexer_for_filename, get_lexer_for_mimetype
    from pygments.lexers.special import TextLexer
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_for_filename(task.name, stripnl=False)
    except ClassNotFound:
        try:
            lexer = get_lexer_for_mimetype(task.content_type, stripnl=False)
        except ClassNotFound:
            return ""
    return "" if isinstance(lexer, TextLexer) else _coloured(text, lexer)


def markdown_html(task: DrawingTask, text: str) -> str:
    """Returns a document as HTML: what it has of HTML is text, links lead to pages, pictures are of here."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    rules: dict[str, Callable[..., str]] = {
        "link_open": _link,
        "image": _image,
        "heading_open": _heading,
        "heading_close": _heading,
    }
    for name, rule in {**rules, "fence": _fence, "code_block": _fence}.items():
        parser.add_render_rule(name, rule)
    return str(parser.render(text, {"task": task}))


def _link(self: Any, tokens: list[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    target = _target(env["task"], str(token.attrs.get("href", "")), env["task"].pages)
    # What leads nowhere stays as a text with a mark.
    token.attrs = {"href": target, "rel": "noopener noreferrer nofollow"} if target else {"class": "hint"}
    return str(self.renderToken(tokens, index, options, env))


def _image(self: Any, tokens: list[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    source = str(token.attrs.get("src", ""))
    described = self.renderInlineAsText(token.children, options, env) or source
    parts = urlsplit(source)
    target = "" if parts.scheme or parts.netloc else _target(env["task"], source, env["task"].files)
    if not target:
        return f'<span class="hint">[{escape(described)}]</span>'
    return f'<img src="{escape(target)}" alt="{escape(described)}" loading="lazy">'


def _heading(self: Any, tokens: list[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    token.tag = f"h{min(int(token.tag[1:]) + 1, 6)}"  # the first of the page is the name of the file
    return str(self.renderToken(tokens, index, options, env))


def _fence(_self: Any, tokens: list[Token], index: int, *_: Any) -> str:
    token = tokens[index]
    language = token.info.strip().split(" ")[0][:40] if token.info else ""
    drawn = _code_of(language, token.content) if language else ""
    return f'<pre tabindex="0" class="code">{drawn or escape(token.content)}</pre>\n'


def _code_of(language: str, text: str) -> str:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return _coloured(text, get_lexer_by_name(language))
    except ClassNotFound:
        return ""


def _coloured(text: str, lexer: Any) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter

    return str(highlight(text, lexer, HtmlFormatter(nowrap=True, classprefix="c-")))


def _target(task: DrawingTask, url: str, base: str) -> str:
    """Where a link leads: to another host, to a place in the document, or to what stands at a path."""
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        is_foreign = parts.scheme == "mailto" or (parts.scheme in ("http", "https") and parts.netloc)
        return url if is_foreign else ""
    if not parts.path:
        return f"#{parts.fragment}" if parts.fragment else ""
    path = posixpath.normpath(posixpath.join("/", task.directory, unquote(parts.path)))
    return base + quote("/" + path.lstrip("/"), safe="/")
