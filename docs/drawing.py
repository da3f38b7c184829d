"""The directive ``drawing``: a graph in the DOT language, drawn by Graphviz while the pages are built.

    ```{drawing} drawings/log.dot
    What the picture shows, in a sentence.
    ```

The SVG stands within the page, so that its colours follow the page's: ``_static/drawing.css`` gives them by
the classes ``new`` and ``old`` of nodes and edges. The sentence is the caption, and what screen readers say.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from pygraphviz import AGraph
from sphinx.util.docutils import SphinxDirective

_DEFAULTS = """{
    graph [bgcolor=transparent nodesep=0.25 ranksep=0.45 pad=0.1]
    node [fontname="Helvetica,Arial,sans-serif" fontsize=11
        shape=box style=rounded height=0.32 margin="0.12,0.06"]
    edge [fontname="Helvetica,Arial,sans-serif" fontsize=11 arrowsize=0.7]
"""


class Drawing(SphinxDirective):
    """Draws the file that is named, beside the page."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Returns a figure with the picture and its caption."""
        relative, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        caption = nodes.caption()
        self.state.nested_parse(self.content, self.content_offset, caption)
        self.assert_has_content()
        paragraph = caption.next_node(nodes.paragraph)
        assert paragraph is not None
        caption.children = paragraph.children
        figure = nodes.figure(classes=["drawing"])
        figure += nodes.raw("", _svg(Path(path), caption.astext()), format="html")
        figure += caption
        return [figure]


def setup(app: Any) -> dict[str, bool]:
    """Adds the directive to Sphinx."""
    app.add_directive("drawing", Drawing)
    app.add_css_file("drawing.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _svg(source: Path, title: str) -> str:
    graph = AGraph(string=source.read_text().replace("{", _DEFAULTS, 1))
    drawn = graph.draw(format="svg", prog="dot").decode()
    svg = drawn[drawn.index("<svg") :]
    # Titles would be shown as hints, and are the names of nodes; ids are the same in all pictures of a page.
    svg = re.sub(r"<title>.*?</title>\n?|<!--.*?-->\n?| id=\"[^\"]*\"", "", svg, flags=re.DOTALL)
    svg = svg.replace('"black"', '"currentColor"').replace("<text ", '<text fill="currentColor" ')
    width = re.search(r'<svg width="(\d+)pt"', svg)
    assert width is not None
    svg = re.sub(r'<svg width="\d+pt" height="\d+pt"', f'<svg role="img" width="{width[1]}pt"', svg, count=1)
    return svg.replace(">", f"><title>{escape(title)}</title>", 1)
